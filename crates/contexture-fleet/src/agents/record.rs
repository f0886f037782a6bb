use std::path::{Path, PathBuf};

use contexture::inject::{AgentInstanceMeta, Archetype, LaunchMode, WorkspacePolicy};
use contexture_agent::clock;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What somebody asks for when an agent is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// What runs it: a known name, or any where there is a command.
    pub backend_type: String,
    /// What it is for.
    #[serde(default = "repo")]
    pub archetype: Archetype,
    /// What becomes of its folder.
    #[serde(default)]
    pub workspace_policy: WorkspacePolicy,
    /// Who starts it.
    #[serde(default)]
    pub launch_mode: LaunchMode,
    /// The command that starts it, where the backend's own will not do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The model that answers, for a native agent; the project's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its folder, where it is not ours to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// Variables of the daemon's environment that it gets, by name: values are not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Who answers when it asks whether it may do something.
    #[serde(default)]
    pub permissions: Permissions,
}

fn repo() -> Archetype {
    Archetype::Repo
}

/// Who answers an agent's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permissions {
    /// A person; nobody there is a no.
    #[default]
    Ask,
    /// Yes to everything, once each.
    Allow,
    /// No to everything.
    Deny,
}

/// In what state an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was never started.
    Created,
    /// Its program was started and has not said that it is ready.
    Starting,
    /// It can be prompted.
    Running,
    /// It was told to end.
    Stopping,
    /// It ended, as it was told.
    Stopped,
    /// It ended by itself.
    Crashed,
    /// It will be started again after a while.
    Restarting,
    /// It could not be started, or crashed too often.
    Failed,
}

impl State {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Crashed => "crashed",
            Self::Restarting => "restarting",
            Self::Failed => "failed",
        }
    }
}

/// An agent, as the log has it: each change is a record, and the last one counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// What was asked for.
    #[serde(flatten)]
    pub spec: Spec,
    /// In what state it is.
    pub state: State,
    /// Whether it is meant to run, so that a new daemon starts it again.
    pub wanted: bool,
    /// Why it is in this state, where somebody would ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Its session in our log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What it calls that session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_session_id: Option<String>,
    /// How often it was started again in a row.
    #[serde(default)]
    pub restarts: u32,
    /// When it was made.
    pub created_at: String,
    /// When this record was.
    pub updated_at: String,
}

impl Record {
    /// Corrects the state that a killed daemon left in the log: its agents ended with it.
    pub(super) fn correct_stale_state(&mut self) {
        if !matches!(self.state, State::Created | State::Stopped | State::Failed) {
            self.state = State::Stopped;
            self.why = Some("its daemon ended".to_owned());
        }
    }

    /// An agent that was never started.
    pub fn new(spec: Spec) -> Self {
        let now = clock::now();
        Self {
            spec,
            state: State::Created,
            wanted: false,
            why: None,
            session_id: None,
            own_session_id: None,
            restarts: 0,
            created_at: now.clone(),
            updated_at: now,
        }
    }

    /// The facts that providers are told of it beside the spec's fields.
    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        if let Some(folder) = &self.spec.workspace {
            let folder = folder.display().to_string();
            facts.insert("workspace".to_owned(), Value::from(folder));
        }
        // Ours under its own name is ours; any other command is somebody's, whatever its backend is called.
        let own = match &self.spec.command[..] {
            [] => true,
            [program, first, ..] => Path::new(program).ends_with("ctx") && first == "acp",
            _ => false,
        };
        if !own {
            facts.insert("ownCommand".to_owned(), Value::from(true));
        }
        facts
    }

    /// What providers are told of it.
    pub fn meta(&self) -> AgentInstanceMeta {
        let spec = &self.spec;
        AgentInstanceMeta {
            name: spec.name.clone(),
            archetype: spec.archetype,
            backend_type: spec.backend_type.clone(),
            workspace_policy: spec.workspace_policy,
            launch_mode: spec.launch_mode,
            more: self.facts(),
        }
    }
}
