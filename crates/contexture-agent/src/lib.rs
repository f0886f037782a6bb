//! The tool loop: build, call, run tools, append, again.
//!
//! **Lives here:** the loop as a state machine without I/O ([`Run`]), the thin driver around it
//! ([`Agent`]), a conversation over a stored log ([`Chat`]), what a run tells on the way ([`Event`]) and
//! in the end ([`AgentResult`]), and summaries by a model.
//!
//! **Never lives here:** storage formats, HTTP, and any second way to make a request: each one is what
//! the core builds from the log, and is recorded in it.
//!
//! What holds, at whatever point a run ends, also by `kill -9`:
//! - an entry is durable before the next call is made;
//! - a call that was logged is never run again: what has no result is answered as interrupted;
//! - every request that was answered can be made again from the log, byte for byte.

mod agent;
mod budget;
mod cancel;
mod chat;
pub mod clock;
mod compact;
mod error;
mod event;
mod ids;
mod make_room;
mod offer;
mod remember;
mod result;
mod run;
mod said;
mod tools;
mod work;

pub use agent::{Agent, History, Options, Refresh, Stores};
pub use budget::{Budget, Price};
pub use cancel::Cancel;
pub use chat::Chat;
pub use compact::ModelCompactor;
pub use error::AgentError;
pub use event::{Event, ToolStatus};
pub use make_room::Compacted;
pub use result::{AgentResult, Ended, Failure, Spent, ToolRun};
pub use run::{Limits, Next, Run};
