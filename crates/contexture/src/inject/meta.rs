use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ContextError;

/// What is known of an agent before it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInstanceMeta {
    /// Its name.
    pub name: String,
    /// What it is for, which decides what it may do.
    pub archetype: Archetype,
    /// What runs it: `native`, `claude-code`, …
    pub backend_type: String,
    /// What becomes of its folder.
    #[serde(default)]
    pub workspace_policy: WorkspacePolicy,
    /// Who starts it.
    #[serde(default)]
    pub launch_mode: LaunchMode,
    /// What the host knows beside that.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl AgentInstanceMeta {
    /// Reads what came in as JSON, and says which field is wrong.
    pub fn read(value: Value) -> Result<Self, ContextError> {
        const KNOWN: &str = "archetype is repo, service or employee; workspacePolicy persistent or \
                             ephemeral; launchMode managed or direct";
        serde_json::from_value(value)
            .map_err(|error| ContextError::invalid("meta", error.to_string(), KNOWN))
    }
}

/// What an agent is for. The order is that of what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Archetype {
    /// Works in a repository, on request.
    Repo,
    /// Runs for long, and serves others.
    Service,
    /// Acts on its own account.
    Employee,
}

impl Archetype {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Repo, Self::Service, Self::Employee];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repo => "repo",
            Self::Service => "service",
            Self::Employee => "employee",
        }
    }
}

/// The least that an agent must be to have a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Any agent.
    All,
    /// A service or an employee.
    Service,
    /// An employee.
    Employee,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::All, Self::Service, Self::Employee];

    /// Whether an agent of this archetype is in it.
    pub fn has(self, archetype: Archetype) -> bool {
        let least = match self {
            Self::All => Archetype::Repo,
            Self::Service => Archetype::Service,
            Self::Employee => Archetype::Employee,
        };
        archetype >= least
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Service => "service",
            Self::Employee => "employee",
        }
    }
}

/// What becomes of an agent's folder when it stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspacePolicy {
    /// It stays.
    #[default]
    Persistent,
    /// It goes.
    Ephemeral,
}

impl WorkspacePolicy {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Persistent => "persistent",
            Self::Ephemeral => "ephemeral",
        }
    }
}

/// Who starts an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaunchMode {
    /// The daemon, which keeps it alive.
    #[default]
    Managed,
    /// Somebody else, who only asks for its context.
    Direct,
}
