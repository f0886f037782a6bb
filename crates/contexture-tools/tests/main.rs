//! Tools as an agent calls them: built-in ones, skills, MCP servers and the shell.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    missing_docs
)]

mod builtin;
mod mcp;
#[cfg(target_os = "linux")]
mod shell;
mod skills;
mod system;
