//! From a session to the exact request, with a receipt.

mod error;
pub mod json;
pub mod message;
pub mod tokens;

pub use error::{ContextError, Overflow, Unit};
pub use message::{Content, Message, Part, Role, ToolCall};
