//! Who there is to work, what each can do, and who is free (spec 003).
//!
//! A [`Pool`] holds [`Resource`]s: agents, and what agents use. It is a fold of [`PoolEvent`]s, so that a log of
//! them is all that has to be kept; a change that does not fit the state is refused, and nothing is changed. What
//! is asked of it (the [`CatalogEntry`]s, a [`Matching`], an [`AgentContext`]) is read off indexes that follow each
//! event.
//!
//! Three things are kept apart. A resource *declares* a capability. It is *authorised* for it when it holds the tools
//! that the capability needs ([`CapabilityTools`]): what an agent says of itself makes nothing true. It is *available*
//! when it is free to take work now. A task gets those that are all three, and where there is none, a [`Shortage`]
//! says which of them is missing, and for whom.

mod allocate;
mod catalog;
mod context;
mod error;
mod event;
mod fold;
mod index;
mod matching;
mod name;
mod read;
mod render;
mod resource;
mod status;
mod tools;

pub use allocate::Allocation;
pub use catalog::{CatalogEntry, Summary};
pub use context::{AgentContext, ContextOptions, TaskContext};
pub use error::PoolError;
pub use event::{Change, PoolEvent, Task};
pub use fold::Pool;
pub use matching::{Candidate, Found, Lack, Matching, Outcome, Requirement, Shortage};
pub use name::Name;
pub use render::{Locale, SECTION, dynamic_system_prompt};
pub use resource::{Capability, Level, NewResource, Resource, ResourceType};
pub use status::Status;
pub use tools::CapabilityTools;
