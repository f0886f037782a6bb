use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use contexture::inject::McpServerStdio;
use contexture_tools::inherit::ChildKind;
use contexture_tools::secrets::mask::Mask;
use serde_json::{Map, Value};

/// How an agent is started.
#[derive(Clone)]
pub struct Launch {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Whether it is ours.
    pub kind: ChildKind,
    /// What its environment has beside the little that every program inherits.
    pub env: BTreeMap<String, String>,
    /// Where it works. What it asks us to read, write or run is in there.
    pub workspace: PathBuf,
    /// The command that ends all that it started when we are gone (see `contexture_tools::supervise`).
    pub supervisor: Option<Vec<OsString>>,
    /// How long it may take to begin, and to begin a session.
    pub patience: Duration,
    /// How long an answer to what it asks may take. Then it is a denial.
    pub longest_ask: Duration,
    /// What it may ask us to do.
    pub policy: Policy,
    /// Ways to sign in that need nobody, tried in this order when it asks for that.
    pub sign_in: Vec<String>,
    /// How it is installed, for the error's hint.
    pub install: Option<String>,
    /// What recognises secrets in what it says.
    pub mask: Arc<dyn Mask>,
}

/// What an agent may ask us to do for it. It is told beforehand, and does the rest itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Reading files of the workspace.
    pub fs_read: bool,
    /// Writing files of the workspace.
    pub fs_write: bool,
    /// Running commands in the workspace.
    pub terminal: bool,
}

impl Default for Policy {
    /// Everything: what goes through us is bounded and kept in the workspace, what an agent does itself is
    /// not.
    fn default() -> Self {
        Self {
            fs_read: true,
            fs_write: true,
            terminal: true,
        }
    }
}

/// How a session begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Begin {
    /// MCP servers that the agent connects to.
    pub mcp_servers: Vec<McpServerStdio>,
    /// `_meta`, where agents look for what the protocol has no field for.
    pub meta: Option<Map<String, Value>>,
    /// Text behind the agent's own system prompt. Only for agents that say that they take it
    /// ([`AgentFacts::system_prompt`](super::AgentFacts::system_prompt)).
    pub system_prompt: Option<String>,
}

impl Launch {
    /// A program in a workspace, with what is usual.
    pub fn new(program: impl Into<String>, workspace: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            kind: ChildKind::Agent,
            args: Vec::new(),
            env: BTreeMap::new(),
            workspace: workspace.into(),
            supervisor: None,
            patience: Duration::from_secs(60),
            longest_ask: Duration::from_secs(600),
            policy: Policy::default(),
            sign_in: Vec::new(),
            install: None,
            mask: Arc::new(()),
        }
    }
}

impl fmt::Debug for Launch {
    /// Without values of the environment, where keys are, and without arguments, where people put them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("workspace", &self.workspace)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
