//! From a session to the exact request, with a receipt.

pub mod build;
pub mod entry;
mod error;
pub mod json;
pub mod message;
pub mod prompt;
pub mod replay;
pub mod text;
pub mod tokens;

pub use build::{Built, ContextConfig, ContextManager, Receipt, Session, Settings, Turn, Wire};
pub use entry::{Entry, EntryId, Payload, View};
pub use error::{ContextError, Overflow, Unit};
pub use message::{Content, Message, Part, Role, ToolCall};
