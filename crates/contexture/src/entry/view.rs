use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Compaction, Entry, EntryId, Payload, Target};
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
}

/// What the fold produced. Everything in it follows from the log alone.
#[derive(Debug, Default, Clone)]
struct Fold {
    /// Log positions of the content in effect, in the order in which it is shown. A summary stands
    /// where the span that it covers stood.
    live: Vec<usize>,
    /// What became of each entry, by log position.
    marks: Vec<Mark>,
    sections: Vec<Section>,
    /// Where each stable section was last said, by name.
    section_sources: HashMap<String, usize>,
    tools: Vec<Value>,
    fingerprints: HashSet<String>,
    /// The runtime facts that stand at the front, and those that hold now.
    first_runtime_init: Option<usize>,
    last_runtime_init: Option<usize>,
    last_hints: Option<usize>,
    /// Volatile sections by name: where each was last said.
    notes: HashMap<String, usize>,
    /// Compactions whose summary is withheld, because something they cover was redacted.
    withheld: HashSet<usize>,
    last_request: Option<usize>,
    /// How many messages summaries stand for, or were dropped.
    covered: usize,
    model: Option<String>,
    /// Whether anything is hidden, so that ending a pin may hide more.
    hides: bool,
    /// Whether the conversation has begun: what is stored as system side from here on is a part of
    /// it, whatever leaves before it.
    begun: bool,
}

#[derive(Debug, Default, Clone)]
struct Mark {
    pinned: bool,
    redacted: bool,
    mask: Option<Option<usize>>,
    gone: Option<Gone>,
    /// Whether it is a part of the stored system prompt.
    leads: bool,
}

impl Mark {
    /// Before any other entry speaks of it.
    fn of(entry: &Entry) -> Self {
        Self {
            pinned: matches!(&entry.payload, Payload::Message { message } if message.pin),
            ..Self::default()
        }
    }
}

/// Why an entry's content is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// A summary stands for it; the log position of the compaction.
    Summarised(usize),
    /// Dropped by a compaction without a summary; its log position.
    Dropped(usize),
    /// Undone, or on a branch that is not the current one.
    Reverted,
    /// An injection whose fingerprint was shown already.
    Duplicate,
    /// A compaction that covers nothing.
    Moot,
}

/// What a push did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing that is shown changed.
    None,
    /// New content stands at the end of the live history.
    Appended,
    /// What is shown changed somewhere before the end.
    Rewritten,
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
    pub fn fold(entries: impl IntoIterator<Item = Entry>) -> Result<Self, ContextError> {
        let mut view = Self::default();
        for entry in entries {
            view.push(entry)?;
        }
        Ok(view)
    }

    /// Adds the next entry of the log.
    pub fn push(&mut self, entry: Entry) -> Result<Change, ContextError> {
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
        self.log.push(Arc::new(entry));
        self.fold.marks.push(Mark::of(&self.log[position]));
        if linear && !self.reaches_back(position) {
            Ok(self.fold.apply(&self.log, &self.index, position))
        } else {
            self.refold();
            Ok(Change::Rewritten)
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

    /// The tools in effect, in order.
    pub fn tools(&self) -> &[Value] {
        &self.fold.tools
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
    fn active(&self) -> Vec<bool> {
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

impl Fold {
    fn apply(
        &mut self,
        log: &[Arc<Entry>],
        index: &HashMap<EntryId, usize>,
        position: usize,
    ) -> Change {
        match &log[position].payload {
            Payload::SessionHeader(_) | Payload::Custom(_) => Change::None,
            Payload::ModelChange(data) => {
                if let Some(Value::String(model)) = data.get("model") {
                    self.model = Some(model.clone());
                }
                Change::None
            }
            Payload::Message { .. } | Payload::BranchSummary(_) => self.append(log, position),
            Payload::Injection(injection) => {
                if let Some(fingerprint) = &injection.fingerprint
                    && !self.fingerprints.insert(fingerprint.clone())
                {
                    self.marks[position].gone = Some(Gone::Duplicate);
                    return Change::None;
                }
                self.append(log, position)
            }
            Payload::Sections { sections } => self.sections(sections, position),
            Payload::Tools(delta) => {
                self.tools
                    .retain(|t| !delta.remove.iter().any(|name| tool_name(t) == Some(name)));
                add_tools(&mut self.tools, &delta.add);
                Change::Rewritten
            }
            Payload::RuntimeInit { .. } => {
                self.last_runtime_init = Some(position);
                if self.first_runtime_init.is_none() {
                    self.first_runtime_init = Some(position);
                    return Change::Rewritten;
                }
                self.append(log, position)
            }
            Payload::Hints { .. } => {
                self.last_hints = Some(position);
                self.append(log, position)
            }
            Payload::CompactionSummary(compaction) => self.cover(log, index, position, compaction),
            Payload::Mask(mask) => {
                self.hides = true;
                for &p in mask.entry_ids.iter().filter_map(|id| index.get(id)) {
                    self.marks[p].mask = Some(mask.keep_bytes);
                }
                Change::Rewritten
            }
            Payload::Pin(target) => self.mark(index, target, |mark| mark.pinned = true),
            Payload::Unpin(target) => self.mark(index, target, |mark| mark.pinned = false),
            Payload::Redaction(target) => {
                let redacted = index.get(&target.entry_id).copied();
                self.withhold(redacted);
                let sources = &self.section_sources;
                self.sections
                    .retain(|s| redacted.is_none() || sources.get(&s.name).copied() != redacted);
                self.mark(index, target, |mark| mark.redacted = true)
            }
            // Its effect was worked out before the fold.
            Payload::Revert(_) => Change::Rewritten,
            Payload::Request(_) => {
                self.last_request = Some(position);
                Change::None
            }
        }
    }

    fn append(&mut self, log: &[Arc<Entry>], position: usize) -> Change {
        let leads = !self.begun && is_system_message(&log[position]);
        self.begun |= !leads;
        self.marks[position].leads = leads;
        self.live.push(position);
        // The stored system prompt stands before the runtime facts.
        if leads && self.first_runtime_init.is_some() {
            return Change::Rewritten;
        }
        Change::Appended
    }

    fn mark(
        &mut self,
        index: &HashMap<EntryId, usize>,
        target: &Target,
        change: impl FnOnce(&mut Mark),
    ) -> Change {
        if let Some(&position) = index.get(&target.entry_id) {
            change(&mut self.marks[position]);
        }
        Change::Rewritten
    }

    fn sections(&mut self, sections: &[Section], position: usize) -> Change {
        let mut change = Change::None;
        for section in sections {
            match section.stability {
                Stability::Stable => {
                    change = Change::Rewritten;
                    self.section_sources.insert(section.name.clone(), position);
                    match self.sections.iter().position(|s| s.name == section.name) {
                        Some(at) if section.is_blank() => drop(self.sections.remove(at)),
                        Some(at) => self.sections[at] = section.clone(),
                        None if section.is_blank() => {}
                        None => self.sections.push(section.clone()),
                    }
                }
                Stability::Volatile => {
                    self.notes.insert(section.name.clone(), position);
                }
            }
        }
        // Stable, so that equal priorities keep the order in which they came.
        self.sections.sort_by_key(|s| std::cmp::Reverse(s.priority));
        if sections
            .iter()
            .any(|s| s.stability == Stability::Volatile && !s.is_blank())
        {
            self.begun = true;
            self.live.push(position);
            if change == Change::None {
                return Change::Appended;
            }
        }
        change
    }

    fn cover(
        &mut self,
        log: &[Arc<Entry>],
        index: &HashMap<EntryId, usize>,
        position: usize,
        compaction: &Compaction,
    ) -> Change {
        self.hides = true;
        let kept: HashSet<usize> = compaction
            .kept_entry_ids
            .iter()
            .filter_map(|id| index.get(id).copied())
            .collect();
        let start = compaction
            .first_covered_entry_id
            .as_ref()
            .and_then(|id| index.get(id))
            .map_or(0, |&p| self.locate(log, p));
        let end = index
            .get(&compaction.first_kept_entry_id)
            .map_or(start, |&p| self.locate(log, p));
        if end <= start {
            if !compaction.summary.is_empty() {
                self.marks[position].gone = Some(Gone::Moot);
            }
            return Change::None;
        }
        let leading = self.leading_system();
        let gone = if compaction.summary.is_empty() {
            Gone::Dropped(position)
        } else {
            Gone::Summarised(position)
        };
        let mut replacement = Vec::new();
        if !compaction.summary.is_empty() {
            replacement.push(position);
        }
        let mut front = Vec::new();
        for at in start..end {
            let p = self.live[at];
            if at < leading {
                front.push(p);
            } else if kept.contains(&p) || self.marks[p].pinned {
                replacement.push(p);
            } else {
                self.marks[p].gone = Some(gone);
                self.covered += usize::from(matches!(log[p].payload, Payload::Message { .. }));
                if self.withheld.contains(&p) {
                    self.withheld.insert(position);
                }
            }
        }
        front.append(&mut replacement);
        self.live.splice(start..end, front);
        Change::Rewritten
    }

    /// Where in the live history the entry at log position `wanted` stands, or would stand.
    fn locate(&self, log: &[Arc<Entry>], wanted: usize) -> usize {
        if let Some(at) = self.live.iter().position(|&p| p == wanted) {
            return at;
        }
        let later =
            |&p: &usize| p > wanted && !matches!(log[p].payload, Payload::CompactionSummary(_));
        self.live.iter().position(later).unwrap_or(self.live.len())
    }

    /// How many live entries are the stored system prompt: the system messages before all else.
    fn leading_system(&self) -> usize {
        let leads = |p: &&usize| self.marks[**p].leads;
        self.live.iter().take_while(leads).count()
    }

    /// Withholds every summary that may quote the entry there.
    fn withhold(&mut self, position: Option<usize>) {
        let mut cursor = position;
        while let Some(Gone::Summarised(by) | Gone::Dropped(by)) = cursor
            .and_then(|p| self.marks.get(p))
            .and_then(|mark| mark.gone)
        {
            self.withheld.insert(by);
            cursor = Some(by);
        }
    }
}

/// Adds specs: in the place of one of the same name, else at the end.
pub(crate) fn add_tools(tools: &mut Vec<Value>, add: &[Value]) {
    for spec in add {
        let named = tool_name(spec);
        let same = |t: &&mut Value| named.is_some() && tool_name(t) == named;
        match tools.iter_mut().find(same) {
            Some(old) => *old = spec.clone(),
            None => tools.push(spec.clone()),
        }
    }
}

/// The name of a tool spec: OpenAI's function or custom tool, a flat one, or a provider's own, which
/// may have no more than its type.
pub(crate) fn tool_name(spec: &Value) -> Option<&String> {
    let inner = ["function", "custom"]
        .iter()
        .find_map(|key| spec.get(key))
        .unwrap_or(spec);
    let name = inner.get("name").or_else(|| spec.get("type"));
    match name {
        Some(Value::String(name)) => Some(name),
        _ => None,
    }
}

fn is_system_message(entry: &Entry) -> bool {
    matches!(&entry.payload, Payload::Message { message } if message.role.is_system())
}

/// Whether the entry brings something that a model could be shown.
fn is_content(payload: &Payload) -> bool {
    match payload {
        Payload::Message { .. }
        | Payload::Sections { .. }
        | Payload::RuntimeInit { .. }
        | Payload::Hints { .. }
        | Payload::Injection(_)
        | Payload::BranchSummary(_)
        | Payload::CompactionSummary(_) => true,
        Payload::SessionHeader(_)
        | Payload::Tools(_)
        | Payload::Mask(_)
        | Payload::Pin(_)
        | Payload::Unpin(_)
        | Payload::Redaction(_)
        | Payload::Revert(_)
        | Payload::ModelChange(_)
        | Payload::Custom(_)
        | Payload::Request(_) => false,
    }
}
