//! What an agent needs of the configuration.

use std::path::{Path, PathBuf};

use contexture::ContextError;
use contexture::prompt::{AgentInfo, RunContext, SessionMode, ToolPolicy};
use contexture_tools::mcp::{self, ServerConfig};
use serde_json::Value;

use super::layers::{Chosen, Layers};

/// How an agent runs.
#[derive(Debug, Default)]
pub struct AgentConfig {
    /// The model, as `provider:name`.
    pub model: Option<Chosen<String>>,
    /// The address of its endpoint.
    pub base_url: Option<Chosen<String>>,
    /// MCP servers. A project's stands in the place of the user's of the same name.
    pub mcp_servers: Vec<ServerConfig>,
    /// Which tools may be used: each policy must allow one.
    pub tool_policies: Vec<ToolPolicy>,
    /// The system prompt for requests that have none.
    pub system_prompt: Option<String>,
    pub mode: Option<SessionMode>,
    pub persona: Option<AgentInfo>,
    pub run_context: Option<RunContext>,
    /// What shell commands may do.
    pub shell: ShellConfig,
    /// Whether skills are looked for.
    pub skills: bool,
    /// How much of the machine a model in this process may take.
    pub local: LocalConfig,
    pub max_steps: usize,
    pub max_injected_messages: usize,
    pub max_chat_messages: usize,
    pub keep_chat_messages: usize,
    pub memory_window: usize,
}

/// How much of the machine a model in this process may take.
#[derive(Debug, Default, Clone, Copy)]
#[cfg_attr(
    not(feature = "local"),
    allow(dead_code, reason = "there is no such model")
)]
pub struct LocalConfig {
    pub threads: Option<usize>,
    pub window: Option<usize>,
}

/// What shell commands may do.
#[derive(Debug, Default)]
pub struct ShellConfig {
    /// Whether they may use the network.
    pub network: bool,
    /// Folders beside the project's that they may write to.
    pub writable: Vec<PathBuf>,
    /// What they must not read, beside all credentials. Both files add to it.
    pub deny_read: Vec<PathBuf>,
    pub sandbox: Sandbox,
    /// Beginnings of commands that nobody needs to be asked about.
    pub allow: Vec<String>,
}

/// What to do where there is no sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sandbox {
    /// Run nothing.
    #[default]
    Require,
    /// Run what is allowed, without one.
    Prefer,
}

const DENY_READ: &str = "shell.denyRead";
pub(super) const PERSONA: &str = "agent.persona";
pub(super) const RUN_CONTEXT: &str = "agent.runContext";

impl AgentConfig {
    pub(super) fn read(layers: &Layers<'_>, root: &Path) -> Result<Self, ContextError> {
        let given = |path: &str| {
            let chosen = layers.get(path).and_then(|chosen| chosen.value.as_u64());
            chosen.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let number = |path: &str, usual: usize| given(path).unwrap_or(usual);
        let switch = |path: &str, usual: bool| {
            let chosen = layers.get(path).and_then(|chosen| chosen.value.as_bool());
            chosen.unwrap_or(usual)
        };
        Ok(Self {
            model: layers.text("model"),
            base_url: layers.text("baseUrl"),
            mcp_servers: servers(layers)?,
            tool_policies: policies(layers)?,
            system_prompt: layers.text("prompt.system").map(|chosen| chosen.value),
            mode: layers
                .text("agent.mode")
                .and_then(|chosen| SessionMode::parse(&chosen.value)),
            persona: layers
                .get(PERSONA)
                .map(|chosen| persona(chosen.value))
                .transpose()?,
            run_context: layers
                .get(RUN_CONTEXT)
                .map(|chosen| run_context(chosen.value))
                .transpose()?,
            shell: ShellConfig {
                network: switch("shell.network", false),
                writable: writable(layers, root),
                deny_read: [layers.of_user(DENY_READ), layers.of_project(DENY_READ)]
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_array)
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(PathBuf::from)
                    .collect(),
                sandbox: match layers.text("shell.sandbox") {
                    Some(chosen) if chosen.value == "prefer" => Sandbox::Prefer,
                    _ => Sandbox::Require,
                },
                allow: allowed(layers),
            },
            skills: switch("skills.enabled", true),
            local: LocalConfig {
                threads: given("local.threads"),
                window: given("local.window"),
            },
            max_steps: number("agent.maxSteps", 30),
            max_injected_messages: number("agent.maxInjectedMessages", 120),
            max_chat_messages: number("context.chatHistory.inMemoryMaxMessages", 60),
            keep_chat_messages: number("context.chatHistory.compactKeepLastMessages", 30),
            memory_window: number("context.agentContext.windowEntries", 200),
        })
    }
}

/// Both have servers; of two with the same name the project's is used.
fn servers(layers: &Layers<'_>) -> Result<Vec<ServerConfig>, ContextError> {
    const KEY: &str = "mcpServers";
    let of_user = layers.of_user(KEY).and_then(Value::as_object);
    let of_project = layers.of_project(KEY).and_then(Value::as_object);
    let mut all = of_user.cloned().unwrap_or_default();
    all.extend(of_project.cloned().unwrap_or_default());
    mcp::read(&Value::Object(all))
}

/// The user's policy and the project's. Each must allow a tool: trust in a folder takes nothing back that the user
/// denied everywhere, and a project's list of allowed tools only narrows the user's.
fn policies(layers: &Layers<'_>) -> Result<Vec<ToolPolicy>, ContextError> {
    const KEY: &str = "toolPolicy";
    let given = [layers.of_user(KEY), layers.of_project(KEY)];
    given.into_iter().flatten().map(policy).collect()
}

/// The folders beside the project's that commands may write to: of the project's those that lie in the user's, where
/// both name some.
fn writable(layers: &Layers<'_>, root: &Path) -> Vec<PathBuf> {
    const KEY: &str = "shell.writable";
    let folders = |value: &Value| -> Vec<PathBuf> {
        texts(value)
            .iter()
            .map(|folder| root.join(folder))
            .collect()
    };
    let users = layers.of_user(KEY).map(folders);
    let projects = layers.of_project(KEY).map(folders);
    match (users, projects) {
        (Some(users), Some(projects)) => {
            // By where they really are: a link may lead anywhere, and what is not there cannot be judged.
            let real = |folder: &PathBuf| folder.canonicalize().ok();
            let users: Vec<PathBuf> = users.iter().filter_map(real).collect();
            let mut both: Vec<PathBuf> = projects.iter().filter_map(real).collect();
            both.retain(|folder| users.iter().any(|own| folder.starts_with(own)));
            both
        }
        (users, projects) => users.or(projects).unwrap_or_default(),
    }
}

/// The beginnings of commands that nobody needs to be asked about: of the project's those that begin like one of the
/// user's, where both name some.
fn allowed(layers: &Layers<'_>) -> Vec<String> {
    const KEY: &str = "shell.allow";
    let users = layers.of_user(KEY).map(texts);
    let projects = layers.of_project(KEY).map(texts);
    match (users, projects) {
        (Some(users), Some(mut projects)) => {
            let begins = |command: &str, beginning: &str| {
                let mut words = command.split_whitespace();
                let mut wanted = beginning.split_whitespace().peekable();
                wanted.peek().is_some() && wanted.all(|word| words.next() == Some(word))
            };
            projects.retain(|command| users.iter().any(|own| begins(command, own)));
            projects
        }
        (users, projects) => users.or(projects).unwrap_or_default(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A policy as a document has it.
pub(super) fn policy(value: &Value) -> Result<ToolPolicy, ContextError> {
    ToolPolicy::from_value(value.clone()).map_err(|error| error.within("toolPolicy"))
}

/// A persona as a document has it.
pub(super) fn persona(value: &Value) -> Result<AgentInfo, ContextError> {
    AgentInfo::from_value(value.clone()).map_err(|error| error.within(PERSONA))
}

/// A step of a workflow as a document has it.
pub(super) fn run_context(value: &Value) -> Result<RunContext, ContextError> {
    RunContext::from_value(value.clone()).map_err(|error| error.within(RUN_CONTEXT))
}
