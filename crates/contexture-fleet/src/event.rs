use contexture::json::held;
use contexture_tools::secrets::mask::{Mask, hide_in, hide_text};
use serde::Serialize;
use serde_json::Value;

/// What happens in a fleet: spec 000's events and those of agents, tools and canvases.
///
/// Nothing here holds a secret: a token appears by its first eight characters.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// A session's context is about to be collected.
    #[serde(rename = "session:preparing")]
    Preparing {
        /// Whose.
        agent: String,
        /// Which session.
        session_id: String,
        /// How many providers are asked.
        provider_count: usize,
    },
    /// It is there.
    #[serde(rename = "session:context-ready")]
    ContextReady {
        /// Whose.
        agent: String,
        /// Which session.
        session_id: String,
        /// How many MCP servers.
        mcp_server_count: usize,
        /// How many internal tools.
        tool_count: usize,
        /// How many pieces of system context.
        context_additions: usize,
    },
    /// A provider gave nothing: it failed, took too long, or gave too much.
    #[serde(rename = "session:provider-failed")]
    ProviderFailed {
        /// Whose session.
        agent: String,
        /// Which session.
        session_id: String,
        /// Which provider.
        provider: String,
        /// Why.
        why: String,
    },
    /// Tokens count no more.
    #[serde(rename = "session:tokens-revoked")]
    TokensRevoked {
        /// Whose.
        agent: String,
        /// How many.
        count: usize,
    },
    /// Tools came or went during a session.
    #[serde(rename = "session:tools-changed")]
    ToolsChanged {
        /// Whose.
        agent: String,
        /// Which session.
        session_id: String,
        /// Tools that came.
        add: Vec<String>,
        /// Tools that went.
        remove: Vec<String>,
        /// Why.
        reason: String,
    },
    /// An agent is in another state.
    #[serde(rename = "agent:state")]
    AgentState {
        /// Which.
        agent: String,
        /// `created`, `starting`, `running`, `stopping`, `stopped`, `crashed`, `restarting`, `failed`,
        /// `removed`.
        state: String,
        /// Why, where somebody would ask.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// An agent was prompted.
    #[serde(rename = "agent:prompted")]
    Prompted {
        /// Which.
        agent: String,
        /// In which session.
        session_id: String,
    },
    /// It has answered, or will not.
    #[serde(rename = "agent:answered")]
    Answered {
        /// Which.
        agent: String,
        /// In which session.
        session_id: String,
        /// Why it ended: `end_turn`, `cancelled`, …; or what went wrong.
        stop_reason: String,
        /// How long it took.
        millis: u64,
        /// What it used, where it says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Value>,
    },
    /// An agent says or does something in a session.
    #[serde(rename = "agent:update")]
    AgentUpdate {
        /// Which.
        agent: String,
        /// In which session.
        session_id: String,
        /// What: the update as the protocol has it.
        update: Value,
    },
    /// An agent asks whether it may do something.
    #[serde(rename = "permission:asked")]
    PermissionAsked {
        /// Which.
        agent: String,
        /// In which session.
        session_id: String,
        /// The question's name, to answer it by.
        request_id: String,
        /// What it wants to do.
        title: String,
        /// The tool, where the agent names it.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// Of what kind that is: `edit`, `execute`, …
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        /// The arguments that the tool would be called with; null where the agent does not tell.
        arguments: Value,
        /// What may be answered.
        options: Value,
    },
    /// The question was answered, or was left too long.
    #[serde(rename = "permission:answered")]
    PermissionAnswered {
        /// Which agent asked.
        agent: String,
        /// The question.
        request_id: String,
        /// The option that was chosen; none for a denial without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        option_id: Option<String>,
        /// Who decided: `policy`, `person`, `timeout`, `cancelled`.
        by: String,
    },
    /// An internal tool was called.
    #[serde(rename = "tool:called")]
    ToolCalled {
        /// By which agent.
        agent: String,
        /// In which session.
        session_id: String,
        /// Which.
        tool: String,
        /// With which token: its first characters.
        token: String,
        /// With what, long texts cut.
        arguments: Value,
        /// Whether it worked.
        success: bool,
        /// Why it did not.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A canvas has other content.
    #[serde(rename = "canvas:changed")]
    CanvasChanged {
        /// Whose.
        agent: String,
        /// Its title, where it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// How long it is; nothing when it was cleared.
        bytes: usize,
    },
    /// Something happened to a task.
    #[serde(rename = "task:changed")]
    TaskChanged {
        /// Which.
        task_id: String,
        /// What: `created`, `blocked`, `dispatched`, `started`, `finished`, `failed`, `cancelled`.
        change: String,
        /// Where it is now.
        state: String,
        /// Which attempt.
        attempt: u32,
        /// The task that it is a part of.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        /// Who has it, or had it last.
        #[serde(skip_serializing_if = "Option::is_none")]
        executor: Option<String>,
        /// Why, where somebody would ask.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A resource of the pool does something else.
    #[serde(rename = "resource:state")]
    ResourceState {
        /// Which.
        resource: String,
        /// What it is now.
        status: String,
    },
    /// The key that was given out for a worker no longer counts.
    #[serde(rename = "key:revoked")]
    KeyRevoked {
        /// Of which resource.
        resource: String,
    },
    /// A worker said what does not count: for another, of an attempt that is over, twice.
    #[serde(rename = "task:refused")]
    WordRefused {
        /// Who said it, as far as it is known.
        by: String,
        /// Of which task.
        #[serde(skip_serializing_if = "Option::is_none")]
        task_id: Option<String>,
        /// Why it does not count.
        why: String,
    },
    /// A hook failed or took too long.
    #[serde(rename = "hook:failed")]
    HookFailed {
        /// For which event.
        event: String,
        /// The command.
        command: String,
        /// Why.
        why: String,
    },
}

impl Event {
    /// Its type, as it is on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Preparing { .. } => "session:preparing",
            Self::ContextReady { .. } => "session:context-ready",
            Self::ProviderFailed { .. } => "session:provider-failed",
            Self::TokensRevoked { .. } => "session:tokens-revoked",
            Self::ToolsChanged { .. } => "session:tools-changed",
            Self::AgentState { .. } => "agent:state",
            Self::Prompted { .. } => "agent:prompted",
            Self::Answered { .. } => "agent:answered",
            Self::AgentUpdate { .. } => "agent:update",
            Self::PermissionAsked { .. } => "permission:asked",
            Self::PermissionAnswered { .. } => "permission:answered",
            Self::ToolCalled { .. } => "tool:called",
            Self::CanvasChanged { .. } => "canvas:changed",
            Self::TaskChanged { .. } => "task:changed",
            Self::ResourceState { .. } => "resource:state",
            Self::KeyRevoked { .. } => "key:revoked",
            Self::WordRefused { .. } => "task:refused",
            Self::HookFailed { .. } => "hook:failed",
        }
    }

    /// The memory that it takes, where somebody else decides how much that is.
    pub(crate) fn held(&self) -> usize {
        /// What any event takes.
        const EVENT: usize = 512;
        let values = match self {
            Self::AgentUpdate { update: value, .. }
            | Self::ToolCalled {
                arguments: value, ..
            } => held(value),
            Self::PermissionAsked {
                arguments, options, ..
            } => held(arguments) + held(options),
            Self::Answered {
                usage: Some(usage), ..
            } => held(usage),
            _ => 0,
        };
        EVENT + values
    }

    /// Which agent it is about.
    pub fn agent(&self) -> Option<&str> {
        match self {
            Self::Preparing { agent, .. }
            | Self::ContextReady { agent, .. }
            | Self::ProviderFailed { agent, .. }
            | Self::TokensRevoked { agent, .. }
            | Self::ToolsChanged { agent, .. }
            | Self::AgentState { agent, .. }
            | Self::Prompted { agent, .. }
            | Self::Answered { agent, .. }
            | Self::AgentUpdate { agent, .. }
            | Self::PermissionAsked { agent, .. }
            | Self::PermissionAnswered { agent, .. }
            | Self::ToolCalled { agent, .. }
            | Self::CanvasChanged { agent, .. } => Some(agent),
            Self::TaskChanged { .. }
            | Self::ResourceState { .. }
            | Self::KeyRevoked { .. }
            | Self::WordRefused { .. }
            | Self::HookFailed { .. } => None,
        }
    }
    /// Masks every text in it. Field by field, so that a new one is not forgotten; texts alone are looked at.
    pub(crate) fn hide(&mut self, mask: &(impl Mask + ?Sized)) {
        let mut texts: Vec<&mut String> = Vec::new();
        let mut values: Vec<&mut Value> = Vec::new();
        match self {
            Self::Preparing {
                agent,
                session_id,
                provider_count: _,
            }
            | Self::ContextReady {
                agent,
                session_id,
                mcp_server_count: _,
                tool_count: _,
                context_additions: _,
            }
            | Self::Prompted { agent, session_id } => texts.extend([agent, session_id]),
            Self::ProviderFailed {
                agent,
                session_id,
                provider,
                why,
            } => texts.extend([agent, session_id, provider, why]),
            Self::TokensRevoked { agent, count: _ } => texts.push(agent),
            Self::ToolsChanged {
                agent,
                session_id,
                add,
                remove,
                reason,
            } => {
                texts.extend([agent, session_id, reason]);
                texts.extend(add.iter_mut().chain(remove));
            }
            Self::AgentState { agent, state, why } => {
                texts.extend([agent, state]);
                texts.extend(why);
            }
            Self::Answered {
                agent,
                session_id,
                stop_reason,
                millis: _,
                usage,
            } => {
                texts.extend([agent, session_id, stop_reason]);
                values.extend(usage);
            }
            Self::AgentUpdate {
                agent,
                session_id,
                update,
            } => {
                texts.extend([agent, session_id]);
                values.push(update);
            }
            Self::PermissionAsked {
                agent,
                session_id,
                request_id,
                title,
                tool,
                kind,
                arguments,
                options,
            } => {
                texts.extend([agent, session_id, request_id, title]);
                texts.extend(tool.iter_mut().chain(kind));
                values.extend([arguments, options]);
            }
            Self::PermissionAnswered {
                agent,
                request_id,
                option_id,
                by,
            } => {
                texts.extend([agent, request_id, by]);
                texts.extend(option_id);
            }
            Self::ToolCalled {
                agent,
                session_id,
                tool,
                token,
                arguments,
                success: _,
                error,
            } => {
                texts.extend([agent, session_id, tool, token]);
                texts.extend(error);
                values.push(arguments);
            }
            Self::CanvasChanged {
                agent,
                title,
                bytes: _,
            } => {
                texts.push(agent);
                texts.extend(title);
            }
            Self::TaskChanged {
                task_id,
                change,
                state,
                attempt: _,
                parent,
                executor,
                why,
            } => {
                texts.extend([task_id, change, state]);
                texts.extend(parent.iter_mut().chain(executor).chain(why));
            }
            Self::KeyRevoked { resource } => texts.push(resource),
            Self::ResourceState { resource, status } => texts.extend([resource, status]),
            Self::WordRefused { by, task_id, why } => {
                texts.extend([by, why]);
                texts.extend(task_id);
            }
            Self::HookFailed {
                event,
                command,
                why,
            } => texts.extend([event, command, why]),
        }
        texts.into_iter().for_each(|text| hide_text(mask, text));
        values.into_iter().for_each(|value| hide_in(mask, value));
    }
}
