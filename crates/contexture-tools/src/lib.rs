//! What an agent can do.
//!
//! **Lives here:** the [`Tool`] trait, the built-in tools, skills, MCP servers, the sandboxed shell, and
//! what a tool may add to the conversation while it runs ([`RunContext`]).
//!
//! **Never lives here:** the loop, and anything that makes a request.

pub mod deferred;
pub mod mcp;
mod run;
pub mod schema;
pub mod supervise;
mod tool;

pub use run::{Refusal, RunContext};
pub use tool::{Calling, Effect, Outcome, Tool, ToolSpec};
