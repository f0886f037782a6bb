//! What an agent can do.
//!
//! **Lives here:** the [`Tool`] trait, the built-in tools, skills, MCP servers, the sandboxed shell, and
//! what a tool may add to the conversation while it runs ([`RunContext`]).
//!
//! **Never lives here:** the loop, and anything that makes a request.

mod run;
pub mod shell;
mod tool;

pub use run::{Refusal, RunContext};
pub use tool::{Calling, Effect, Outcome, Tool, ToolSpec};
