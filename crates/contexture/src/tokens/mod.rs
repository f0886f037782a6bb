//! How much a text costs a model.
//!
//! [`Tokenizer`] counts a text; [`count`] counts messages, tool specs and whole requests by the
//! contract's formula. Exact counts come from bundled vocabularies ([`Bpe`]) or from a model's own
//! `tokenizer.json` ([`FileTokenizer`]); where a model's tokenizer is not public, [`Estimate`] and
//! [`ClaudeEstimate`] give an upper bound.

mod bpe;
mod chunks;
pub mod count;
mod estimate;
mod file;
mod model;
mod shape;

pub use bpe::Bpe;
pub use estimate::{ClaudeEstimate, Estimate};
pub use file::FileTokenizer;
pub use model::for_model;

/// Counts the tokens of a text.
pub trait Tokenizer: Send + Sync {
    /// The vocabulary's name, as the receipt gives it.
    fn name(&self) -> &str;

    /// Whether [`Tokenizer::count`] is exact. If not, it is an upper bound.
    fn exact(&self) -> bool;

    /// How many tokens `text` has, or at most has.
    fn count(&self, text: &str) -> usize;
}
