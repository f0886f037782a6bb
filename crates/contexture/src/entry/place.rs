//! Where content stands: in the order of the log, but for injections that stand before a message.

use std::collections::HashMap;
use std::sync::Arc;

use super::fold::Fold;
use super::{Entry, EntryId, Injection, Payload};
use crate::Role;

/// An entry's place among the others: the position that it stands at, what comes first there, and
/// its own position.
type Place = (usize, u8, usize);

impl Fold {
    /// Puts an injection before the message that it names: behind earlier ones of its kind, those
    /// that speak as the system before all others. Says whether that message is there.
    pub(super) fn place(
        &mut self,
        log: &[Arc<Entry>],
        index: &HashMap<EntryId, usize>,
        position: usize,
        injection: &Injection,
    ) -> bool {
        let named = injection.before_entry_id.as_ref();
        let Some(&anchor) = named.and_then(|id| index.get(id)) else {
            return false;
        };
        // Nothing stands between a call and its results, and nothing before the system prompt.
        let takes = matches!(&log[anchor].payload, Payload::Message { message }
            if message.role != Role::Tool && !self.marks[anchor].leads);
        let Some(mut at) = self.live.iter().rposition(|&p| p == anchor && takes) else {
            return false;
        };
        self.marks[position].before = Some(anchor);
        let own = self.place_of(log, position);
        while at > 0
            && self.marks[self.live[at - 1]].before == Some(anchor)
            && self.place_of(log, self.live[at - 1]) > own
        {
            at -= 1;
        }
        self.live.insert(at, position);
        true
    }

    /// Where in the live history the entry at log position `wanted` stands, or would stand.
    pub(super) fn locate(&self, log: &[Arc<Entry>], wanted: usize) -> usize {
        if let Some(at) = self.live.iter().position(|&p| p == wanted) {
            return at;
        }
        let own = self.place_of(log, wanted);
        // A summary stands where its span stood, whenever it was logged.
        let later = |&p: &usize| {
            self.place_of(log, p) > own && !matches!(log[p].payload, Payload::CompactionSummary(_))
        };
        self.live.iter().position(later).unwrap_or(self.live.len())
    }

    /// The same for the first entry of a span: what was injected before it is of the span.
    pub(super) fn locate_first(&self, log: &[Arc<Entry>], wanted: usize) -> usize {
        let mut at = self.locate(log, wanted);
        while at > 0 && self.marks[self.live[at - 1]].before == Some(wanted) {
            at -= 1;
        }
        at
    }

    fn place_of(&self, log: &[Arc<Entry>], position: usize) -> Place {
        match (self.marks[position].before, &log[position].payload) {
            (None, _) => (position, 2, position),
            (Some(anchor), Payload::Injection(i)) if i.role.is_system() => (anchor, 0, position),
            (Some(anchor), _) => (anchor, 1, position),
        }
    }
}
