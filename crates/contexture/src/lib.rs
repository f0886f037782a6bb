//! From a session to the exact request, with a receipt.
//!
//! **Lives here:** messages and their wire forms, the log's entries and their fold, token counts,
//! prompts, the injector, the pool and its tasks, the build and its replay, other tools' session files.
//!
//! **Never lives here:** I/O, the clock, randomness, threads, async. What is read comes in as bytes
//! or values, times come in with the input, and ids follow from content. So equal input gives equal
//! bytes, on any machine, and a request can be made again years later.
//!
//! The modules are in the order of the flow: [`message`] → [`entry`] → [`tokens`] → [`prompt`] →
//! [`inject`] → [`pool`] → [`task`] → [`build`] → [`replay`], [`diff`], [`export`]. [`import`] reads what other tools wrote.
//!
//! ```
//! use contexture::{ContextConfig, Message, Session, Settings, Turn};
//!
//! let settings = Settings {
//!     config: ContextConfig { max_input_tokens: 8_000, ..ContextConfig::default() },
//!     ..Settings::default()
//! };
//! let mut session = Session::new(settings)?;
//!
//! // A turn: what is new goes in, the request and what must be logged come out.
//! let turn = Turn { messages: vec![Message::user("What is in Cargo.toml?")], ..Turn::default() };
//! let built = session.build(turn)?;
//! assert!(built.stats().input_tokens <= 8_000);
//! assert_eq!(built.entries_to_append().count(), 1);
//!
//! // The receipt says of every item where it comes from and why it is there.
//! let receipt = built.receipt();
//! assert_eq!(receipt.items[0].rule.as_str(), "kept");
//! # Ok::<(), contexture::ContextError>(())
//! ```

pub mod build;
pub mod diff;
pub mod entry;
mod error;
pub mod export;
pub mod import;
pub mod inject;
pub mod json;
pub mod message;
pub mod pool;
pub mod prompt;
pub mod replay;
pub mod task;
pub mod text;
pub mod tokens;

pub use build::{Built, ContextConfig, ContextManager, Receipt, Session, Settings, Turn};
pub use entry::{Entry, EntryId, Payload, View};
pub use error::{ContextError, Overflow, Unit};
pub use message::{Content, Message, Part, Role, ToolCall, Wire};

/// The README's examples are tests too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
