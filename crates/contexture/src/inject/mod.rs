//! What an agent's session begins with (spec 000): MCP servers, internal tools and pieces of system
//! context, from every provider that has something to say. A provider answers the calls of its tools, too.
//!
//! A [`ContextProvider`] has three sockets and fills those that it cares about. An [`Injector`] keeps the
//! providers in order; [`gather`] asks one; [`weave`] makes of all answers the [`SessionContext`], with an
//! account of every item: who offered it, what it is by its hash, what it costs, and why it is in or out.
//! Asking may fail or take long, so the host does it, one provider at a time; weaving is pure.

mod builtin;
mod injector;
mod meta;
mod offer;
mod provider;
mod receipt;
mod room;
mod weave;

pub use builtin::{CanvasProvider, CoreProvider, canvas_tools};
pub use injector::Injector;
pub use meta::{AgentInstanceMeta, Archetype, LaunchMode, Scope, WorkspacePolicy};
pub use offer::{Audience, Item, Offer, gather};
pub use provider::{
    ContextProvider, EnvVariable, McpServerStdio, ProviderCall, ToolDefinition, Traits,
};
pub use receipt::{Injected, InjectedKind, InjectedRule, InjectionReceipt};
pub use weave::{
    Offered, RESERVED, SessionContext, TOKEN_FILE_VARIABLE, TOKEN_VARIABLE, Weaving, instructions,
    weave,
};
