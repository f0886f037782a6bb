//! The start of an agent: its command, environment and session, worked out from the table of those that are known
//! by name.

mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::inject::McpServerStdio;
use contexture::text::nearest;
use contexture_tools::inherit::{ChildKind, is_of_session};
use contexture_tools::secrets::mask::Mask;
use serde_json::{Map, Value, json};

use crate::acp::{AcpError, AgentFacts, Begin, Connection, Host, Launch};

use table::{ALL_INHERIT, MANY_PROVIDERS, PROVIDERS};
pub use table::{BACKENDS, Backend, Channel, NATIVE, backend};

/// What is to be started.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The name of a backend. Any name will do where there is a command.
    pub backend: &'a str,
    /// A command in the place of the backend's.
    pub command: &'a [String],
    /// More arguments of a native agent: what answers.
    pub native_args: &'a [String],
    /// Where the agent works.
    pub workspace: &'a Path,
    /// True if the user trusts that folder.
    pub trusted: bool,
    /// What it is told, in order.
    pub system_context: &'a [String],
    /// The MCP servers that it connects to.
    pub mcp_servers: &'a [McpServerStdio],
    /// Variables of its environment.
    pub env: BTreeMap<String, String>,
    /// More names of ours that it inherits.
    pub inherits: &'a [String],
    /// Our own program, which the native agent is.
    pub own: Option<PathBuf>,
    /// What ends it when we are gone.
    pub supervisor: Option<Vec<OsString>>,
}

impl<'a> Wanted<'a> {
    /// An agent in a workspace.
    pub fn new(backend: &'a str, workspace: &'a Path) -> Self {
        Self {
            backend,
            command: &[],
            native_args: &[],
            workspace,
            trusted: false,
            system_context: &[],
            mcp_servers: &[],
            env: BTreeMap::new(),
            inherits: &[],
            own: None,
            supervisor: None,
        }
    }
}

/// How an agent is started, and how its session begins.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How it is started.
    pub launch: Launch,
    /// How it is started where it is an older version, which ends at once otherwise.
    pub older: Option<Launch>,
    /// How its session begins.
    pub begin: Begin,
}

/// There is no such backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no backend `{name}`")]
pub struct UnknownBackend {
    /// The name.
    pub name: String,
}

impl UnknownBackend {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        let known: Vec<&str> = BACKENDS.iter().map(|backend| backend.name).collect();
        let all = known.join(", ");
        match nearest(&self.name, &known) {
            Some(near) => format!("did you mean `{near}`? There are {all}, and any other command"),
            None => format!("there are {all}, and any other command"),
        }
    }
}

/// Finds out how an agent is started and what it is told.
pub fn plan(wanted: Wanted<'_>) -> Result<Plan, UnknownBackend> {
    let known = backend(wanted.backend);
    // A command of somebody's is not ours, whatever it is called.
    let kind = match known {
        Some(known) if known.name == NATIVE && wanted.command.is_empty() => ChildKind::OwnAgent,
        _ => ChildKind::Agent,
    };
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut env = inherited(kind, known, wanted.inherits, ours);
    env.extend(wanted.env);
    let sets = known.map_or(&[][..], |known| known.sets);
    env.extend(
        sets.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    let mut launch = Launch {
        kind,
        env,
        supervisor: wanted.supervisor,
        ..Launch::new("", wanted.workspace)
    };
    match (wanted.command, known) {
        ([program, args @ ..], _) => {
            launch.program.clone_from(program);
            launch.args = args.to_vec();
        }
        ([], Some(known)) => {
            launch.args = owned(known.args);
            if known.name == NATIVE {
                launch.args.extend_from_slice(wanted.native_args);
            }
            if wanted.trusted {
                launch.args.extend(owned(known.trusted_args));
            }
            launch.program = match wanted.own {
                Some(own) if known.name == NATIVE => own.display().to_string(),
                _ => known.program.to_owned(),
            };
        }
        ([], None) => {
            return Err(UnknownBackend {
                name: wanted.backend.to_owned(),
            });
        }
    }
    let own_command = !wanted.command.is_empty();
    let mut older = None;
    if let Some(known) = known {
        launch.install = Some(known.install.to_owned()).filter(|_| !own_command);
        let has = |variable: &str| launch.env.contains_key(variable);
        let ways = known.sign_in.iter().filter(|(_, variable)| has(variable));
        launch.sign_in = ways.map(|(method, _)| (*method).to_owned()).collect();
        let args = known.older_args.filter(|_| !own_command);
        older = args.map(|args| Launch {
            args: owned(args),
            ..launch.clone()
        });
    }
    let mut plan = Plan {
        launch,
        older,
        begin: Begin {
            mcp_servers: wanted.mcp_servers.to_vec(),
            ..Begin::default()
        },
    };
    let pieces: Vec<&str> = wanted.system_context.iter().map(String::as_str).collect();
    let context = joined(&pieces);
    if !context.is_empty() {
        let channel = known.map_or(Channel::Prompt, |known| known.channel);
        plan.tell(context, channel);
    }
    Ok(plan)
}

impl Plan {
    /// With what recognises secrets in what the agent says.
    #[must_use]
    pub fn masked(mut self, mask: &Arc<dyn Mask>) -> Self {
        self.launch.mask = Arc::clone(mask);
        if let Some(older) = &mut self.older {
            older.mask = Arc::clone(mask);
        }
        self
    }

    fn tell(&mut self, text: String, channel: Channel) {
        match channel {
            Channel::Meta => {
                let append = json!({ "append": text });
                let meta = Map::from_iter([("systemPrompt".to_owned(), append)]);
                self.begin.meta = Some(meta);
            }
            Channel::Prompt => self.begin.system_prompt = Some(text),
        }
    }

    /// Now that it is known what the agent takes: what it does not take at the beginning of a session goes in front
    /// of a prompt.
    pub fn settle(&mut self, facts: &AgentFacts) {
        self.begin.system_prompt.take_if(|_| !facts.system_prompt);
    }

    /// Returns true if the agent is told its context as its session begins.
    pub fn tells_at_beginning(&self) -> bool {
        self.begin.meta.is_some() || self.begin.system_prompt.is_some()
    }

    /// Starts the agent, an older version of it in its own way, and settles how it is told.
    pub async fn connect(&mut self, host: Arc<dyn Host>) -> Result<Connection, AcpError> {
        let first = Connection::launch(self.launch.clone(), Arc::clone(&host)).await;
        let connection = match (first, self.older.take()) {
            (Err(AcpError::Ended { .. }), Some(older)) => {
                self.launch = older.clone();
                Connection::launch(older, host).await
            }
            (first, _) => first,
        }?;
        self.settle(connection.agent());
        Ok(connection)
    }
}

/// System context as a block of a prompt, for an agent that has no other place for it.
pub fn in_prompt(pieces: &[&str]) -> Value {
    let template = include_str!("../../templates/host-context.md");
    // Nothing that is told may end what is told.
    let told = joined(pieces).replace("</host-context", "&lt;/host-context");
    let whole = template.trim_end().replace("{{context}}", &told);
    json!({"type": "text", "text": whole})
}

fn joined(pieces: &[&str]) -> String {
    let pieces = pieces.iter().map(|text| text.trim());
    let pieces: Vec<&str> = pieces.filter(|text| !text.is_empty()).collect();
    pieces.join("\n\n")
}

/// What an agent inherits of these variables.
fn inherited(
    kind: ChildKind,
    known: Option<&Backend>,
    more: &[String],
    ours: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let many = known.is_some_and(|known| MANY_PROVIDERS.contains(&known.name));
    let mut patterns: Vec<&str> = ALL_INHERIT.to_vec();
    patterns.extend(known.map_or(&[][..], |known| known.inherits));
    patterns.extend(if many { PROVIDERS } else { &[] });
    patterns.extend(more.iter().map(String::as_str));
    let takes = |name: &str| {
        let fits = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(beginning) => !beginning.is_empty() && name.starts_with(beginning),
            None => name == *pattern,
        };
        kind.may_have(name) && !is_of_session(name) && patterns.iter().any(fits)
    };
    ours.filter(|(name, _)| takes(name)).collect()
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}
