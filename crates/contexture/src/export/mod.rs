//! A session for people and for other programs.
//!
//! An export says all that was said on the current branch, in order and verbatim: what a build
//! masked or summarised for want of room is there in full. What was redacted is not, anywhere; what
//! was undone is not, either.

mod block;
mod conversation;
mod decided;
mod html;
mod markdown;
mod outline;
mod prose;
mod rendered;
mod target;
mod wire;

use std::sync::Arc;

use crate::tokens::Tokenizer;

pub use conversation::{Conversation, Kind, Said, conversation};
pub use html::html;
pub use markdown::markdown;
pub use wire::{anthropic, openai};

/// What an export says of itself.
#[derive(Clone, Default)]
pub struct Meta {
    /// The title at its head.
    pub title: String,
    /// The counter of the tokens that a page shows; without one it shows none.
    pub tokenizer: Option<Arc<dyn Tokenizer>>,
}
