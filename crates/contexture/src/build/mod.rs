//! The build: from a log and a turn to the exact request.
//!
//! Five steps, one module each: `normalize` → `dedupe` → `fit` → [`compact`] → `assemble`.
//! [`Session`] runs them over a log that grows; [`ContextManager`] is spec 002's stateless door to
//! the same.

mod account;
mod assemble;
mod built;
mod cache;
pub mod compact;
mod compose;
mod config;
mod cover;
mod dedupe;
mod fit;
pub(crate) mod held;
pub(crate) mod hidden;
mod input;
mod item;
mod manager;
pub(crate) mod marks;
mod normalize;
mod receipt;
mod relieve;
mod session;
mod system;
mod turn;

pub use crate::message::Wire;
pub use built::{BuildResult, Built, Stats};
pub use compact::{Compactor, Extract, RulesOnly, Span, SpanItem, constraints};
pub use compose::{Composed, Metadata, compose};
pub use config::ContextConfig;
pub use hidden::visible_value;
pub use input::{BuildInput, UpdateRequest};
pub use item::Rule;
pub use manager::{ContextManager, RuntimeHintProvider, UpdateResult};
pub use receipt::{
    BudgetUsed, CacheReceipt, DeferredReceipt, ExcludedReceipt, ItemReceipt, Receipt,
    TokenizerUsed, ToolReceipt,
};
pub use session::{Session, Settings};
pub use turn::Turn;

use std::sync::Arc;

use crate::prompt::{SEPARATOR, Section};
use crate::tokens::Estimate;
use crate::{ContextError, Message, View};

/// The stable sections as one text, as spec 004 joins them.
fn join_sections(sections: &[Section]) -> String {
    sections
        .iter()
        .map(|s| s.text.as_str())
        .collect::<Vec<_>>()
        .join(SEPARATOR)
}

/// The messages of a view as a request has them: paired, repaired, in order, however many. What is
/// hidden in them stays so: this is a record, and no request.
pub(crate) fn messages(view: &View) -> Result<Vec<Message>, ContextError> {
    let pricing = item::Pricing {
        tokenizer: Arc::new(Estimate),
        wire: Wire::Anthropic,
        reveals: false,
    };
    let weave = normalize::Weave::of(view, &pricing, &mut normalize::Pieces::default())?;
    let items = weave.items.iter();
    Ok(items
        .map(|item| Message::clone(&item.piece.message))
        .collect())
}
