//! What a caller says about the turn: the types of spec 004.
//!
//! They depend on nothing of the caller's own; the caller maps its agents, policies and workflow
//! state onto them.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Templates;
use crate::Message;

/// Everything `compose` needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComposeOptions {
    /// The stored conversation.
    pub messages: Vec<Message>,
    /// What kind of session this is.
    pub mode: SessionMode,
    /// Who the model is to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentInfo>,
    /// Which tools it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_policy: Option<ToolPolicy>,
    /// Where in a workflow it stands; said to the model in [`SessionMode::Run`] only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_context: Option<RunContext>,
    /// How to build.
    pub settings: Settings,
    /// The templates that the prompt is made from.
    #[serde(skip)]
    pub templates: Templates,
}

/// What kind of session this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    /// A conversation.
    Chat,
    /// A conversation with an agent.
    Agent,
    /// A step of a workflow.
    Run,
}

impl SessionMode {
    /// Every mode, for tables and messages.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Agent, Self::Run];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Agent => "agent",
            Self::Run => "run",
        }
    }

    /// The mode of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

/// Who the model is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Its identity in the caller's world; not shown.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// What it does.
    pub role: String,
    /// Who it is, in more words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// How it speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication_style: Option<String>,
    /// What it holds to. Written as a list or as one string, of which each line is a principle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub principles: Vec<String>,
    /// A finished prompt; unless blank it stands verbatim for all of the above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}

/// Which tools may be used. How the lists work together is said at [`ToolPolicy::allows`].
///
/// The lists are optional because absent and empty differ: no list allows everything, an empty one
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPolicy {
    /// Categories whose tools may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_categories: Option<Vec<String>>,
    /// Categories whose tools may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_categories: Option<Vec<String>>,
    /// Tools that may be used, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_tools: Option<Vec<String>>,
    /// Rules in words: told to the model, and not enforceable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_rules: Option<Vec<String>>,
}

/// Where in a workflow the model stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunContext {
    /// The package that the workflow belongs to.
    pub package_name: String,
    /// The workflow.
    pub workflow_name: String,
    /// The step to carry out.
    pub current_step: Step,
    /// What has happened so far.
    pub state: RunState,
    /// Where it can go from here.
    pub graph: Graph,
}

/// A step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its identity in the workflow.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// What to do.
    pub instruction: String,
}

/// What has happened in a workflow so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunState {
    /// The workflow's variables; for the caller, not shown.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    /// The steps that are done, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps_completed: Vec<String>,
    /// What has been made; for the caller, not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
}

/// The part of the workflow's graph around the current step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// Ways out of the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outgoing_edges: Vec<Edge>,
}

/// A way from one step to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// What the model calls it by.
    pub label: String,
    /// The step it leads to.
    pub target_node_id: String,
    /// Whether it is taken when nothing speaks for another.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
}

/// How to build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Whether the system prompt is put before the messages.
    pub include_system_prompt: bool,
    /// The most messages to send; tool calls stay with their results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_messages: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            include_system_prompt: true,
            max_messages: None,
        }
    }
}
