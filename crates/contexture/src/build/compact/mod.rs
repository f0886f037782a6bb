//! Step 4: when the request is over its trigger, climb the ladder until it is under its target.
//!
//! Mask old tool results, then put a summary in the place of the oldest span, then drop it without
//! one. The ladder decides what goes, a [`Compactor`] writes the summary, [`accept`] decides whether
//! it will do. The gap between trigger and target is what keeps the prefix of many requests the
//! same: a compaction breaks it, so it had better be rare.

pub mod accept;
mod constraints;
mod extract;
pub(crate) mod ladder;
mod probes;

use std::sync::Arc;

use crate::tokens::Tokenizer;
use crate::{Entry, EntryId, Message};

pub use constraints::constraints;
pub(crate) use constraints::has_rules;
pub use extract::{Extract, RulesOnly};
pub use probes::probes;

/// Writes a summary of a span of history.
///
/// A model-backed compactor implements this as well as the deterministic [`Extract`]: the caller
/// judges what comes back by the same rules, and asks the next one of its list where it will not do.
pub trait Compactor: Send + Sync {
    /// The strategy's name, as the log records it.
    fn name(&self) -> &str;

    /// The summary, or why there is none.
    fn summarise(&self, span: &Span<'_>) -> Result<String, String>;
}

/// What is to be summarised.
pub struct Span<'a> {
    /// The messages, oldest first.
    pub items: Vec<SpanItem<'a>>,
    /// The most tokens the summary may have.
    pub max_tokens: usize,
    /// What counts them.
    pub tokenizer: &'a dyn Tokenizer,
    /// What the summary must name to be accepted.
    pub probes: Vec<String>,
    /// The log as it was before this build decided anything: with what the turn brought, without the
    /// masks and compactions of the build that asks. What stands before its last `request` entry is
    /// what the last request was made of, so a [`Session`](crate::Session) that is opened on that, or
    /// on more of it, begins with what the provider has in its cache.
    pub log: &'a [Arc<Entry>],
}

/// A message of the span.
pub struct SpanItem<'a> {
    /// Its entry.
    pub id: &'a EntryId,
    /// The message, whole: not masked, not cut.
    pub message: &'a Message,
    /// Whether it is itself a summary; its text is then the summary's.
    pub is_summary: bool,
    /// Whether it stands for a call that never got its answer.
    pub is_open: bool,
    /// Whether it is a message of the user's, and not something in the user's role that a tool
    /// injected.
    pub is_users: bool,
    /// For a summary, the users' messages that it stands for, oldest first.
    pub asked: Vec<(&'a EntryId, &'a Message)>,
}
