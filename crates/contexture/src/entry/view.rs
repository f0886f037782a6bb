use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::fold::{Fold, Mark, is_content};
use super::{Change, DeferredTool, Entry, EntryId, Gone, Payload, Target};
use crate::ContextError;
use crate::prompt::{Section, Stability};

/// The effective history: a fold over the log.
///
/// Pushing an entry costs what the entry changes. Only what reaches back (a branch, a revert, a pin
/// of something that is no longer shown) folds the log anew.
#[derive(Debug, Default, Clone)]
pub struct View {
    log: Vec<Arc<Entry>>,
    index: HashMap<EntryId, usize>,
    duplicates: Vec<usize>,
    fold: Fold,
    /// Entries were added since the last fold that reach back.
    unfolded: bool,
}

/// One piece of content in effect.
#[derive(Debug, Clone, Copy)]
pub struct Live<'a> {
    /// Its log position.
    pub position: usize,
    /// The entry.
    pub entry: &'a Arc<Entry>,
    /// Whether it must stay verbatim.
    pub pinned: bool,
    /// Whether its content was taken out.
    pub redacted: bool,
    /// The bytes that a mask leaves, when one applies. A pin is stronger than a mask.
    pub mask: Option<Option<usize>>,
    /// Whether it is a part of the stored system prompt: a system message before all else.
    pub leads: bool,
}

impl View {
    /// The view of these entries.
    pub fn fold<E: Into<Arc<Entry>>>(
        entries: impl IntoIterator<Item = E>,
    ) -> Result<Self, ContextError> {
        let mut view = Self::default();
        for entry in entries {
            view.push_unfolded(entry)?;
        }
        view.fold_up();
        Ok(view)
    }

    /// Adds the next entry of the log.
    pub fn push(&mut self, entry: impl Into<Arc<Entry>>) -> Result<Change, ContextError> {
        let change = self.push_unfolded(entry)?;
        self.fold_up();
        Ok(change)
    }

    /// Adds one of many entries. Where one reaches back, the log is not folded anew at once:
    /// [`View::fold_up`] does it for all. Until then only the log itself is to be relied on, with
    /// positions and tail.
    pub fn push_unfolded(&mut self, entry: impl Into<Arc<Entry>>) -> Result<Change, ContextError> {
        let entry: Arc<Entry> = entry.into();
        if let Some(&known) = self.index.get(&entry.id) {
            return self.repeated(known, &entry);
        }
        let linear = match (&entry.parent_id, self.log.last()) {
            (None, _) | (_, None) => true,
            (Some(parent), Some(last)) if *parent == last.id => true,
            (Some(parent), Some(_)) if self.index.contains_key(parent) => false,
            (Some(parent), Some(_)) => {
                return Err(ContextError::invalid(
                    format!("entry {}", entry.id),
                    format!("its parent `{parent}` is not in the log before it"),
                    "a parentId names an earlier entry; leave it out for the entry before",
                ));
            }
        };
        let position = self.log.len();
        self.check_target(&entry, position)?;
        self.index.insert(entry.id.clone(), position);
        self.log.push(entry);
        self.fold.marks.push(Mark::of(&self.log[position]));
        if linear && !self.unfolded && !self.reaches_back(position) {
            Ok(self.fold.apply(&self.log, &self.index, position))
        } else {
            self.unfolded = true;
            Ok(Change::Rewritten)
        }
    }

    /// Folds the log anew where entries were added that reach back.
    pub fn fold_up(&mut self) {
        if self.unfolded {
            self.refold();
        }
    }

    /// Makes room for so many more entries.
    pub fn reserve(&mut self, more: usize) {
        self.log.reserve(more);
        self.index.reserve(more);
    }

    /// Takes away every entry from log position `len` on.
    pub fn truncate(&mut self, len: usize) {
        for entry in self.log.drain(len..) {
            self.index.remove(&entry.id);
        }
        self.refold();
    }

    /// All entries, in the order in which they were logged.
    pub fn log(&self) -> &[Arc<Entry>] {
        &self.log
    }

    /// Where in the log the entry `id` is.
    pub fn position(&self, id: &EntryId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// The last entry's id.
    pub fn tail(&self) -> Option<&EntryId> {
        self.log.last().map(|entry| &entry.id)
    }

    /// How many pieces of content are in effect.
    pub fn live_len(&self) -> usize {
        self.fold.live.len()
    }

    /// The content in effect, from the `from`th piece on.
    pub fn live(&self, from: usize) -> impl DoubleEndedIterator<Item = Live<'_>> {
        self.fold.live.iter().skip(from).map(|&position| {
            let mark = &self.fold.marks[position];
            Live {
                position,
                entry: &self.log[position],
                pinned: mark.pinned,
                redacted: mark.redacted,
                mask: mark.mask.filter(|_| !mark.pinned),
                leads: mark.leads,
            }
        })
    }

    /// The content that is not in effect, with the reason.
    pub fn gone(&self) -> impl Iterator<Item = (usize, Gone)> {
        let marks = self.fold.marks.iter().enumerate();
        marks.filter_map(|(position, mark)| Some((position, mark.gone?)))
    }

    /// Entries that came twice, by the position of the first.
    pub fn duplicates(&self) -> &[usize] {
        &self.duplicates
    }

    /// The stable sections of the system side, in order.
    pub fn sections(&self) -> &[Section] {
        &self.fold.sections
    }

    /// The same as they hold without the system prompt of one call.
    pub fn standing_sections(&self) -> &[Section] {
        let held = self.fold.held_sections.as_ref();
        held.unwrap_or(&self.fold.sections)
    }

    /// The tools in effect, in order.
    pub fn tools(&self) -> &[Value] {
        &self.fold.tools
    }

    /// The tools that exist and are not offered.
    pub fn deferred(&self) -> &[DeferredTool] {
        &self.fold.deferred
    }

    /// The runtime facts shown at the front.
    pub fn first_runtime_init(&self) -> Option<usize> {
        self.fold.first_runtime_init
    }

    /// The runtime facts that hold now.
    pub fn runtime_init(&self) -> Option<&Map<String, Value>> {
        match &self.log[self.fold.last_runtime_init?].payload {
            Payload::RuntimeInit { data } => Some(data),
            _ => None,
        }
    }

    /// The hints that hold now.
    pub fn hints(&self) -> Option<&Map<String, Value>> {
        match &self.log[self.fold.last_hints?].payload {
            Payload::Hints { data } => Some(data),
            _ => None,
        }
    }

    /// The volatile section `name`, as last said.
    pub fn note(&self, name: &str) -> Option<&Section> {
        let position = *self.fold.notes.get(name)?;
        match &self.log[position].payload {
            Payload::Sections { sections } => sections
                .iter()
                .rev()
                .find(|s| s.name == name && s.stability == Stability::Volatile),
            _ => None,
        }
    }

    /// Whether the entry there says something that still holds: the latest hints, runtime facts, or
    /// text of a volatile section.
    pub fn is_current(&self, position: usize) -> bool {
        self.fold.last_hints == Some(position)
            || self.fold.last_runtime_init == Some(position)
            || self.fold.notes.values().any(|&p| p == position)
    }

    /// Whether the content of the entry there was taken out.
    pub fn is_redacted(&self, position: usize) -> bool {
        self.fold.marks[position].redacted
    }

    /// Whether the entry there was undone, or is on another branch.
    pub fn is_reverted(&self, position: usize) -> bool {
        self.fold.marks[position].gone == Some(Gone::Reverted)
    }

    /// Whether a summary may not be shown, because something that it covers was redacted later.
    pub fn is_withheld(&self, position: usize) -> bool {
        self.fold.withheld.contains(&position)
    }

    /// The log position of the last request that was recorded.
    pub fn last_request(&self) -> Option<usize> {
        self.fold.last_request
    }

    /// How many messages are not shown because a compaction covers them.
    pub fn covered_messages(&self) -> usize {
        self.fold.covered
    }

    /// The model that the log last named.
    pub fn model(&self) -> Option<&str> {
        self.fold.model.as_deref()
    }

    fn repeated(&mut self, known: usize, entry: &Entry) -> Result<Change, ContextError> {
        if *self.log[known] == *entry {
            self.duplicates.push(known);
            return Ok(Change::None);
        }
        Err(ContextError::invalid(
            format!("entry {}", entry.id),
            format!(
                "the id was used before, at entry {} of the log, for something else",
                known + 1
            ),
            "ids are unique: give one of the two another id, or leave ids out",
        ))
    }

    fn check_target(&self, entry: &Entry, position: usize) -> Result<(), ContextError> {
        let unknown = |id: &EntryId, field: &str| {
            ContextError::invalid(
                format!("entry {}", entry.id),
                format!("{field} `{id}` is not in the log before it"),
                "name an entry that is there",
            )
        };
        match &entry.payload {
            Payload::Pin(Target { entry_id })
            | Payload::Unpin(Target { entry_id })
            | Payload::Redaction(Target { entry_id })
            | Payload::Revert(Target { entry_id }) => {
                let Some(&target) = self.index.get(entry_id) else {
                    return Err(unknown(entry_id, "entryId"));
                };
                if matches!(entry.payload, Payload::Revert(_)) && !self.can_revert(target) {
                    return Err(ContextError::invalid(
                        format!("entry {}", entry.id),
                        format!(
                            "a {} cannot be reverted",
                            self.log[target].payload.type_name()
                        ),
                        "revert a compaction, a mask, a revert, or to a message",
                    ));
                }
            }
            Payload::CompactionSummary(compaction)
                if !self.index.contains_key(&compaction.first_kept_entry_id) =>
            {
                return Err(unknown(&compaction.first_kept_entry_id, "firstKeptEntryId"));
            }
            _ => {}
        }
        debug_assert_eq!(position, self.log.len());
        Ok(())
    }

    fn can_revert(&self, target: usize) -> bool {
        matches!(
            self.log[target].payload,
            Payload::CompactionSummary(_)
                | Payload::Mask(_)
                | Payload::Revert(_)
                | Payload::Message { .. }
                | Payload::Injection(_)
                | Payload::BranchSummary(_)
        )
    }

    /// Whether the entry changes what earlier entries mean, beyond what `apply` can do in place.
    fn reaches_back(&self, position: usize) -> bool {
        match &self.log[position].payload {
            Payload::Revert(_) => true,
            Payload::Pin(target) => self.is_gone(target),
            Payload::Unpin(_) => self.fold.hides,
            Payload::Redaction(target) => self.is_gone(target),
            _ => false,
        }
    }

    fn is_gone(&self, target: &Target) -> bool {
        self.index
            .get(&target.entry_id)
            .is_some_and(|&p| self.fold.marks[p].gone.is_some())
    }

    fn refold(&mut self) {
        self.unfolded = false;
        let active = self.active();
        let mut fold = Fold {
            marks: self.log.iter().map(|entry| Mark::of(entry)).collect(),
            ..Fold::default()
        };
        // The pins that hold in the end are known before spans are covered, so that a pin brings back
        // what was covered.
        for (position, entry) in self.log.iter().enumerate() {
            let (target, pinned) = match &entry.payload {
                Payload::Pin(target) => (target, true),
                Payload::Unpin(target) => (target, false),
                _ => continue,
            };
            if active[position]
                && let Some(&p) = self.index.get(&target.entry_id)
            {
                fold.marks[p].pinned = pinned;
            }
        }
        for (position, active) in active.into_iter().enumerate() {
            let pins = matches!(
                self.log[position].payload,
                Payload::Pin(_) | Payload::Unpin(_)
            );
            if active && !pins {
                fold.apply(&self.log, &self.index, position);
            } else if !active && is_content(&self.log[position].payload) {
                fold.marks[position].gone = Some(Gone::Reverted);
            }
        }
        self.fold = fold;
    }

    /// Which entries count: those on the path from the last one to the root that nothing undid.
    pub fn active(&self) -> Vec<bool> {
        let mut active = vec![false; self.log.len()];
        let mut cursor = self.log.len().checked_sub(1);
        while let Some(position) = cursor {
            active[position] = true;
            cursor = match &self.log[position].parent_id {
                // The first entry's parent may lie outside: a slice of a log is a log.
                Some(parent) => self.index.get(parent).copied().filter(|&p| p < position),
                None => position.checked_sub(1),
            };
        }
        // The last word counts: a revert that a later one undid never happened.
        let mut position = self.log.len();
        while position > 0 {
            position -= 1;
            let Payload::Revert(target) = &self.log[position].payload else {
                continue;
            };
            let Some(&target) = self.index.get(&target.entry_id) else {
                continue;
            };
            if !active[position] {
                continue;
            }
            match self.log[target].payload {
                Payload::CompactionSummary(_) | Payload::Mask(_) | Payload::Revert(_) => {
                    active[target] = false;
                }
                _ => {
                    active[target + 1..position].fill(false);
                    position = target + 1;
                }
            }
        }
        active
    }
}
