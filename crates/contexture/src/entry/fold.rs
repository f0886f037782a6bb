//! The fold: what each entry does to the history in effect.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Compaction, DeferredTool, Entry, EntryId, Payload, Target};
use crate::prompt::{Section, Stability};

/// What the fold produced. Everything in it follows from the log alone.
#[derive(Debug, Default, Clone)]
pub(super) struct Fold {
    /// Log positions of the content in effect, in the order in which it is shown. A summary stands
    /// where the span that it covers stood, an injection before the message that it names.
    pub(super) live: Vec<usize>,
    /// What became of each entry, by log position.
    pub(super) marks: Vec<Mark>,
    pub(super) sections: Vec<Section>,
    /// The sections that hold without the system prompt of one call, while one is in effect.
    pub(super) held_sections: Option<Vec<Section>>,
    /// Where each stable section was last said, by name.
    pub(super) section_sources: HashMap<String, usize>,
    pub(super) tools: Vec<Value>,
    pub(super) deferred: Vec<DeferredTool>,
    pub(super) fingerprints: HashSet<String>,
    /// The runtime facts that stand at the front, and those that hold now.
    pub(super) first_runtime_init: Option<usize>,
    pub(super) last_runtime_init: Option<usize>,
    pub(super) last_hints: Option<usize>,
    /// Volatile sections by name: where each was last said.
    pub(super) notes: HashMap<String, usize>,
    /// Compactions whose summary is withheld, because something they cover was redacted.
    pub(super) withheld: HashSet<usize>,
    pub(super) last_request: Option<usize>,
    /// How many messages summaries stand for, or were dropped.
    pub(super) covered: usize,
    pub(super) model: Option<String>,
    /// Whether anything is hidden, so that ending a pin may hide more.
    pub(super) hides: bool,
    /// Whether the conversation has begun: what is stored as system side from here on is a part of
    /// it, whatever leaves before it.
    pub(super) begun: bool,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Mark {
    pub(super) pinned: bool,
    pub(super) redacted: bool,
    pub(super) mask: Option<Option<usize>>,
    pub(super) gone: Option<Gone>,
    /// Whether it is a part of the stored system prompt.
    pub(super) leads: bool,
    /// The message that it stands before, where that is not the one that was logged next.
    pub(super) before: Option<usize>,
}

impl Mark {
    /// Before any other entry speaks of it.
    pub(super) fn of(entry: &Entry) -> Self {
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

impl Fold {
    pub(super) fn apply(
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
                if self.place(log, index, position, injection) {
                    return Change::Rewritten;
                }
                self.append(log, position)
            }
            Payload::Sections { sections } => self.sections(sections, position),
            Payload::Tools(delta) => {
                self.tools
                    .retain(|t| !delta.remove.iter().any(|name| tool_name(t) == Some(name)));
                add_tools(&mut self.tools, &delta.add);
                if let Some(deferred) = &delta.deferred {
                    self.deferred.clone_from(deferred);
                }
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
                let stays =
                    |s: &Section| redacted.is_none() || sources.get(&s.name).copied() != redacted;
                self.sections.retain(stays);
                self.held_sections
                    .iter_mut()
                    .for_each(|held| held.retain(stays));
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
        if !sections.iter().any(Section::is_of_one_call) {
            self.held_sections = None;
        } else if self.held_sections.is_none() {
            self.held_sections = Some(self.sections.clone());
        }
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
            .map_or(0, |&p| self.locate_first(log, p));
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
                // What is no longer shown may be brought in again.
                if let Payload::Injection(injection) = &log[p].payload
                    && let Some(fingerprint) = &injection.fingerprint
                {
                    self.fingerprints.remove(fingerprint);
                }
            }
        }
        front.append(&mut replacement);
        self.live.splice(start..end, front);
        Change::Rewritten
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

pub(super) fn is_system_message(entry: &Entry) -> bool {
    matches!(&entry.payload, Payload::Message { message } if message.role.is_system())
}

/// Whether the entry brings something that a model could be shown.
pub(super) fn is_content(payload: &Payload) -> bool {
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
