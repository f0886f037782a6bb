use super::{AgentInstanceMeta, ContextProvider, McpServerStdio, ToolDefinition};

/// Something that a provider offers, and for whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Item<T> {
    /// What.
    pub value: T,
    /// For whom; whoever asks, where it does not say.
    pub audience: Audience,
}

/// For whom something is. A provider that serves many sessions may mix them up, so what is meant for
/// another agent or session is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audience {
    /// This agent alone.
    pub agent: Option<String>,
    /// This session alone.
    pub session_id: Option<String>,
}

impl Audience {
    /// Whether this session of this agent is meant.
    pub fn includes(&self, agent: &str, session_id: &str) -> bool {
        self.agent.as_deref().is_none_or(|only| only == agent)
            && self
                .session_id
                .as_deref()
                .is_none_or(|only| only == session_id)
    }
}

impl<T> From<T> for Item<T> {
    fn from(value: T) -> Self {
        Self {
            value,
            audience: Audience::default(),
        }
    }
}

/// All that a provider offers to one session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Offer {
    /// MCP servers.
    pub mcp_servers: Vec<Item<McpServerStdio>>,
    /// Internal tools.
    pub tools: Vec<Item<ToolDefinition>>,
    /// Pieces of system context.
    pub system_context: Vec<Item<String>>,
}

/// Asks a provider, in the order of the spec: servers, tools, text.
pub fn gather(provider: &dyn ContextProvider, meta: &AgentInstanceMeta) -> Result<Offer, String> {
    provider.offer(meta)
}
