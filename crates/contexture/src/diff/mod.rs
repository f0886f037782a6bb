//! What changed between two requests of one session, what broke the prompt cache, and what it cost.
//!
//! Both requests are kept as what was sent: the tools, then the messages. What they share is the run
//! of those that both begin with, the same measure as the receipt's `sharedPrefixTokens`; where that is
//! known to the token, with A's reply, so is this. The model, and parameters that a provider keys its
//! cache by, count too, which a receipt cannot know of.

mod cause;
mod items;
mod prefix;
mod side;
mod why;

use serde::Serialize;

pub use cause::Break;
pub use items::{DiffChange, DiffItem, Form, ToolChanges};
pub use prefix::Prefix;
pub use side::{Side, SideSummary};

use crate::View;

/// What differs between request A and request B.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// The one that is compared.
    pub a: SideSummary,
    /// The one that it is compared with.
    pub b: SideSummary,
    /// What only B has, in its order.
    pub added: Vec<DiffItem>,
    /// What only A has, in its order.
    pub removed: Vec<DiffItem>,
    /// What both have, with other bytes. What only moved is not here.
    pub changed: Vec<DiffChange>,
    /// The tools that differ, by name.
    pub tools: ToolChanges,
    /// What both begin with.
    pub prefix: Prefix,
    /// Tokens of B behind the prefix that A had, too: paid before, and paid again.
    pub rebilled_tokens: usize,
    /// All other tokens of B behind the prefix.
    pub new_tokens: usize,
}

impl Diff {
    /// Compares two requests of the session whose whole log `view` is.
    ///
    /// Either may be the earlier one. `shared_tokens`, `rebilled_tokens` and `new_tokens` add up to
    /// B's input tokens; what frames a request is in the first where anything can be shared, and in
    /// the last where nothing can, or where the shared tokens are known one by one.
    pub fn between(view: &View, a: &Side, b: &Side) -> Self {
        let (removed, added, changed) = items::differing(&a.lines, &b.lines);
        let shared = prefix::Shared::of(view, a, b);
        let bill = shared.bill(a, b);
        Self {
            a: a.summary(),
            b: b.summary(),
            added,
            removed,
            changed,
            tools: ToolChanges::between(&a.tools, &b.tools),
            prefix: Prefix {
                shared_items: shared.items(b),
                shared_tokens: bill.shared,
                shared_bytes: shared.bytes(b),
                broken_by: cause::broken_by(view, a, b, &shared),
            },
            rebilled_tokens: bill.rebilled,
            new_tokens: bill.new,
        }
    }
}
