//! How much a text costs a model.
//!
//! [`Tokenizer`] counts a text, a message, tool specs and what frames a request; [`count::request`]
//! adds them up. Exact counts of text come from bundled vocabularies ([`Bpe`]) or from a model's own
//! `tokenizer.json` ([`FileTokenizer`]); where a model's tokenizer is not public, [`Estimate`] and
//! [`ClaudeEstimate`] give an upper bound. How providers frame a message is not public either: unless
//! a tokenizer knows better, that is the contract's formula, in [`count`].

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

use serde_json::Value;

use crate::Message;

/// Counts the tokens of what a model is told.
///
/// A request costs [`frame`](Self::frame), each [`message`](Self::message) and
/// [`tools`](Self::tools) together, unless [`request`](Self::request) knows better. What is provided here
/// is the contract's formula; a model that runs in this process knows how it frames all of these, and
/// says so.
pub trait Tokenizer: Send + Sync {
    /// The vocabulary's name, as the receipt gives it.
    fn name(&self) -> &str;

    /// Whether [`Tokenizer::count`] is exact. If not, it is an upper bound.
    fn exact(&self) -> bool;

    /// How many tokens `text` has, or at most has.
    fn count(&self, text: &str) -> usize;

    /// The tokens of a message, with what stands around it.
    fn message(&self, message: &Message) -> usize {
        count::message(self, message)
    }

    /// The tokens of one tool spec.
    fn tool(&self, spec: &Value) -> usize {
        count::tool(self, spec)
    }

    /// The tokens of all tool specs of a request, with what introduces them.
    fn tools(&self, specs: &[Value]) -> usize {
        specs.iter().map(|spec| self.tool(spec)).sum()
    }

    /// What a request costs beside its messages and tools: what stands before the first and behind the
    /// last of them, the invitation to answer among it. `first` is its first message: some models are
    /// told something of their own where that is none of the system's.
    fn frame(&self, first: Option<&Message>) -> usize {
        let _ = first;
        count::REQUEST
    }

    /// The tokens of a whole request, the invitation to answer among them, where the model's own template
    /// is at hand: side by side, messages and tools may cost less or more than one by one.
    fn request(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        tools: &[Value],
    ) -> Option<usize> {
        let _ = (messages, tools);
        None
    }

    /// The ids of the tokens that the model reads for these messages and tools, without the invitation
    /// to answer that follows them; none where only the provider knows.
    ///
    /// The messages are given as the request has them, whole: what its form does not send (a thought,
    /// in the chat form) is not read and has no ids.
    fn prompt(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        tools: &[Value],
    ) -> Option<Vec<u32>> {
        let _ = (messages, tools);
        None
    }
}
