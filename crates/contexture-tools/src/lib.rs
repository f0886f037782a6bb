//! What an agent can do.
//!
//! **Lives here:** the [`Tool`] trait, the built-in tools, skills, MCP servers, the sandboxed shell, and
//! what a tool may add to the conversation while it runs ([`RunContext`]).
//!
//! **Never lives here:** the loop, and anything that makes a request.

pub mod approval;
pub mod builtin;
pub mod deferred;
pub mod descriptors;
mod file;
pub mod inherit;
pub mod mcp;
mod plain;
pub mod process;
mod run;
pub mod schema;
pub mod secrets;
pub mod shell;
pub mod skills;
pub mod supervise;
pub mod system;
mod template;
mod tool;
mod toolset;

pub use run::{Refusal, RunContext};
pub use secrets::{MaskedStream, Secrets};
pub use tool::{Calling, Effect, Outcome, Tool, ToolSpec};
pub use toolset::{LeftOut, Offer, Tools, Toolset};
