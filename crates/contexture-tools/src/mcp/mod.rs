//! MCP servers: started in the background, kept alive, and never trusted.
//!
//! [`read`] reads `mcpServers`; [`Servers::start`] connects to all of them and returns at once. What a
//! server sends is bounded in size and in time, and whatever it does (hang, die, lie, flood) is a state
//! or a [`Notice`], never a turn that waits.

mod config;
mod connect;
mod error;
mod handler;
mod http;
mod life;
mod link;
mod prompts;
mod read;
mod registry;
mod resources;
mod result;
mod servers;
mod tool;

pub use config::{Secret, ServerConfig, Transport};
pub use error::McpError;
pub use prompts::{Prompt, PromptArgument};
pub use read::{read, schema};
pub use registry::{Notice, State, Status};
pub use servers::{Options, Servers};

/// The category of every tool of a server, and of those that read servers' resources.
pub const CATEGORY: &str = "mcp";

/// The most bytes of one message of a server's.
const MAX_MESSAGE_BYTES: usize = crate::process::LONGEST_LINE;
/// The most memory that one may take once it is parsed. The SDK holds it several times over.
const MAX_MESSAGE_HELD_BYTES: usize = 48 << 20;

/// What is said of a message above either.
fn too_large() -> String {
    format!(
        "too large: {} MiB of JSON, or {} MiB in memory, are read",
        MAX_MESSAGE_BYTES >> 20,
        MAX_MESSAGE_HELD_BYTES >> 20
    )
}

/// The beginning of a text that may be long, with a mark where it was cut.
fn bounded(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
