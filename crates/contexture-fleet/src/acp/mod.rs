//! The host's side of the Agent Client Protocol: starts an agent as a program, speaks with it over its
//! standard input and output, and answers what it asks for.
//!
//! An agent is somebody else's program. Whatever it does (hang, die, lie, flood) is an [`AcpError`] or a
//! refusal to it, never a call that waits for ever or memory that grows: what it sends is read one line
//! after another, and the next is not read before the last was taken. The official SDK keeps what it reads
//! in queues without an end, so the connection is our own; its types are the tests' counterpart.

mod calls;
mod connection;
mod error;
mod facts;
mod files;
mod launch;
mod masked;
mod output;
pub mod record;
mod serve;
mod sessions;
pub(crate) mod shorten;
mod terminals;
mod wire;

use contexture::text::hidden::legible;

pub(crate) use calls::COMMANDS;
pub use connection::{Connection, Ended};
pub use error::AcpError;
pub use facts::{AgentFacts, AuthMethod};
pub use launch::{Begin, Launch, Policy};
pub use serve::{Answer, Ask, Choice, Host};

/// The version of the protocol that we speak.
pub const PROTOCOL_VERSION: u64 = 1;

/// The beginning of a text that may be long, on one line and with nothing hidden in it, with a mark where it was cut.
fn bounded(text: &str, most: usize) -> String {
    let (text, more) = match text.char_indices().nth(most) {
        Some((at, _)) => (&text[..at], "…"),
        None => (text, ""),
    };
    format!("{}{more}", legible(text).replace(['\n', '\t'], " "))
}
