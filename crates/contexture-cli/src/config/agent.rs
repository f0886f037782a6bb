//! What an agent needs of the configuration.

use std::path::{Path, PathBuf};

use contexture::ContextError;
use contexture::prompt::ToolPolicy;
use contexture_tools::mcp::{self, ServerConfig};
use serde_json::Value;

use super::layers::{Chosen, Layers, Source};

/// How an agent runs.
#[derive(Debug, Default)]
pub struct AgentConfig {
    /// The model, as `provider:name`.
    pub model: Option<Chosen<String>>,
    /// The address of its endpoint.
    pub base_url: Option<Chosen<String>>,
    /// MCP servers. A project's stands in the place of the user's of the same name.
    pub mcp_servers: Vec<ServerConfig>,
    /// Which tools may be used.
    pub tool_policy: ToolPolicy,
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
        let texts = |path: &str| -> Vec<String> {
            let chosen = layers.get(path).and_then(|chosen| chosen.value.as_array());
            let texts = chosen.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Ok(Self {
            model: layers.text("model"),
            base_url: layers.text("baseUrl"),
            mcp_servers: servers(layers)?,
            tool_policy: policies(layers)?,
            shell: ShellConfig {
                network: switch("shell.network", false),
                writable: texts("shell.writable")
                    .iter()
                    .map(|folder| root.join(folder))
                    .collect(),
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
                allow: texts("shell.allow"),
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

/// The project's policy over the user's. Denials and rules add up: trust in a folder takes nothing
/// back that the user denied everywhere.
fn policies(layers: &Layers<'_>) -> Result<ToolPolicy, ContextError> {
    const KEY: &str = "toolPolicy";
    let user = policy(layers.of_user(KEY))?;
    let project = policy(layers.of_project(KEY))?;
    let both = |a: Option<Vec<String>>, b: Option<Vec<String>>| match (a, b) {
        (Some(mut a), Some(b)) => {
            a.extend(b);
            Some(a)
        }
        (a, b) => a.or(b),
    };
    Ok(ToolPolicy {
        allowed_categories: project.allowed_categories.or(user.allowed_categories),
        denied_categories: both(user.denied_categories, project.denied_categories),
        allowed_tools: project.allowed_tools.or(user.allowed_tools),
        denied_tools: both(user.denied_tools, project.denied_tools),
        custom_rules: both(user.custom_rules, project.custom_rules),
    })
}

/// A policy as a document has it.
pub(super) fn policy(value: Option<&Value>) -> Result<ToolPolicy, ContextError> {
    match value {
        None => Ok(ToolPolicy::default()),
        Some(value) => {
            ToolPolicy::from_value(value.clone()).map_err(|error| error.within("toolPolicy"))
        }
    }
}

impl<T> Chosen<T> {
    /// Whether the project chose it.
    pub fn is_projects(&self) -> bool {
        self.from == Source::Project
    }
}
