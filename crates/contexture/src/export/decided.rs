//! Where a compaction or a mask took effect. Both hide things from the model alone: an export has
//! them in full and says so.

use std::collections::HashMap;

use crate::entry::{Compaction, Gone, Mask};
use crate::{Entry, EntryId, Payload, Role, View};

/// A decision that was logged, and still holds.
pub(super) struct Decided<'a> {
    /// Its log position.
    pub position: usize,
    pub entry: &'a Entry,
    pub what: What<'a>,
    /// Whether it is about tools' results alone.
    results: bool,
}

pub(super) enum What<'a> {
    /// So many messages, and what the model reads in their place; nothing where that may quote
    /// something that was redacted, or where they were dropped.
    Compaction(usize, &'a Compaction, Option<&'a str>),
    Mask(&'a Mask),
}

/// All of them, in the order of the log.
pub(super) fn decided(view: &View) -> Vec<Decided<'_>> {
    let mut covered: HashMap<usize, usize> = HashMap::new();
    for (position, gone) in view.gone() {
        let is_message = matches!(view.log()[position].payload, Payload::Message { .. });
        if let Gone::Summarised(by) | Gone::Dropped(by) = gone
            && is_message
        {
            *covered.entry(by).or_default() += 1;
        }
    }
    let active = view.active();
    let all = view.log().iter().enumerate().filter(|(p, _)| active[*p]);
    all.filter_map(|(position, entry)| {
        let what = match &entry.payload {
            Payload::CompactionSummary(compaction) => {
                let may_quote = view.is_withheld(position) || view.is_redacted(position);
                let summary = Some(compaction.summary.as_str());
                let summary = summary.filter(|text| !may_quote && !text.is_empty());
                What::Compaction(*covered.get(&position)?, compaction, summary)
            }
            Payload::Mask(mask) if !mask.entry_ids.is_empty() => What::Mask(mask),
            _ => return None,
        };
        let results = match &what {
            What::Compaction(..) => false,
            What::Mask(mask) => mask.entry_ids.iter().all(|id| is_result(view, id)),
        };
        Some(Decided {
            position,
            entry,
            what,
            results,
        })
    })
    .collect()
}

fn is_result(view: &View, id: &EntryId) -> bool {
    let payload = view.position(id).map(|p| &view.log()[p].payload);
    matches!(payload, Some(Payload::Message { message }) if message.role == Role::Tool)
}

impl Decided<'_> {
    /// In a sentence.
    pub(super) fn sentence(&self) -> String {
        match &self.what {
            What::Compaction(messages, compaction, _) => {
                let count = count(*messages, "message above was", "messages above were");
                let did = match compaction.summary.is_empty() {
                    true => "dropped from the requests here",
                    false => "summarised for the model here",
                };
                let Compaction {
                    tokens_before: before,
                    tokens_after: after,
                    ..
                } = compaction;
                match (before, after) {
                    (0, _) => format!("{count} {did}"),
                    _ => format!(
                        "{count} {did}, {} → {} tokens",
                        digits(*before),
                        digits(*after)
                    ),
                }
            }
            What::Mask(mask) => {
                let entries = mask.entry_ids.len();
                let did = match mask.keep_bytes {
                    Some(_) => "cut for the model here",
                    None => "masked for the model here",
                };
                let count = match self.results {
                    true => count(entries, "tool result above was", "tool results above were"),
                    false => count(entries, "entry above was", "entries above were"),
                };
                match mask.reason.as_str() {
                    "" => format!("{count} {did}"),
                    reason => format!("{count} {did}: {reason}"),
                }
            }
        }
    }

    /// The entries that it is about, where it names them.
    pub(super) fn about(&self) -> &[EntryId] {
        match &self.what {
            What::Compaction(..) => &[],
            What::Mask(mask) => &mask.entry_ids,
        }
    }

    pub(super) fn summary(&self) -> Option<&str> {
        match self.what {
            What::Compaction(_, _, summary) => summary,
            What::Mask(_) => None,
        }
    }
}

/// `1 message`, `1,200 messages`.
pub(super) fn count(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", digits(n), if n == 1 { one } else { many })
}

/// A number with its thousands apart.
pub(super) fn digits(n: usize) -> String {
    let plain = n.to_string();
    let mut out = String::new();
    for (i, digit) in plain.chars().enumerate() {
        if i > 0 && (plain.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
