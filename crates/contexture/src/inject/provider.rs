use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AgentInstanceMeta, Archetype, Item, Offer, Scope};
use crate::prompt::Stability;

/// A subsystem that has something to say when a session begins. All three sockets are optional.
///
/// An error is a sentence for people: it is in the receipt, and the session begins without this provider
/// unless it is required.
pub trait ContextProvider: Send + Sync {
    /// Its name, which is its identity: another provider of the same name takes its place.
    fn name(&self) -> &str;

    /// How its items are to be treated.
    fn traits(&self) -> Traits {
        Traits::default()
    }

    /// Whether it answers from memory. All others are asked beside each other, with a time limit.
    fn is_quick(&self) -> bool {
        false
    }

    /// MCP servers for the agent.
    fn mcp_servers(&self, _meta: &AgentInstanceMeta) -> Result<Vec<Item<McpServerStdio>>, String> {
        Ok(Vec::new())
    }

    /// Internal tools for the agent.
    fn tools(&self, _meta: &AgentInstanceMeta) -> Result<Vec<Item<ToolDefinition>>, String> {
        Ok(Vec::new())
    }

    /// Text for its system prompt.
    fn system_context(&self, _meta: &AgentInstanceMeta) -> Result<Vec<Item<String>>, String> {
        Ok(Vec::new())
    }

    /// Answers a call of one of its tools: a text, or data, for the model. An error is a sentence for it.
    fn call(&self, call: &ProviderCall) -> Result<Value, String> {
        Err(format!(
            "the provider answers no calls of `{}`",
            call.rpc_method
        ))
    }

    /// All three, in the order of the spec. A provider that looks them up together does it here.
    fn offer(&self, meta: &AgentInstanceMeta) -> Result<Offer, String> {
        Ok(Offer {
            mcp_servers: self.mcp_servers(meta)?,
            tools: self.tools(meta)?,
            system_context: self.system_context(meta)?,
        })
    }
}

/// A call of a tool that a provider offered. Scope and arguments have been checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderCall {
    /// The tool's name.
    pub tool: String,
    /// The method behind it.
    pub rpc_method: String,
    /// Its arguments, as its schema allows.
    pub arguments: Map<String, Value>,
    /// The agent that calls.
    pub agent_name: String,
    /// The agent's archetype.
    pub archetype: Archetype,
    /// The session in which it calls.
    pub session_id: String,
}

/// How a provider's items are to be treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits {
    /// Without it no session begins.
    pub required: bool,
    /// Whether its text is the same for a whole session.
    pub stability: Stability,
    /// Its rank when there is too little room for all texts: the lowest are left out first.
    pub priority: i32,
}

/// An MCP server that an agent starts and speaks with over its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServerStdio {
    /// Its name, which is its identity.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of its environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVariable>,
}

/// A variable of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A tool that the host itself offers to its agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// Its name, which is its identity.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// The method behind it.
    pub rpc_method: String,
    /// The least that an agent must be to have it.
    pub scope: Scope,
    /// How to use it, where its description does not say enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The provider that answers its calls. A provider can only name itself: [`weave`](super::weave) sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}
