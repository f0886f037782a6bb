//! The log in the making: every entry gets an id of its own and a parent before it.

mod draft;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::{Imported, Object, Source};
use crate::entry::Compaction;
use crate::{Entry, EntryId, Message, Payload, Role};
pub(super) use draft::{Draft, Parent, compaction};

/// A log that only holds what folds.
pub(super) struct Log {
    source: Source,
    entries: Vec<Entry>,
    /// What each entry knows of its past.
    nodes: Vec<Node>,
    index: HashMap<EntryId, usize>,
    /// Where the source's own ids went. A message of several lines has several.
    names: HashMap<String, usize>,
    /// The end of the conversation: what the next line without a parent follows.
    tip: usize,
    kept: BTreeMap<String, usize>,
}

struct Node {
    parent: usize,
    /// Whether anything is shown, up to here.
    shows: bool,
    /// The entry of the source's tree that it stands behind; itself, if it is in the tree.
    owner: usize,
    /// The last of the lines outside the tree that stand behind it.
    tail: usize,
}

impl Log {
    /// A log that opens with a header: what all beginnings follow.
    pub fn new(source: Source, header: Draft) -> Self {
        let mut log = Self {
            source,
            entries: Vec::new(),
            nodes: Vec::new(),
            index: HashMap::new(),
            names: HashMap::new(),
            tip: 0,
            kept: BTreeMap::new(),
        };
        log.add(header);
        log
    }

    /// Adds the entry and says where it is.
    pub fn add(&mut self, draft: Draft) -> usize {
        let Draft {
            kind,
            id,
            parent,
            timestamp,
            payload,
            mut meta,
            mut rest,
            aside,
        } = draft;
        let position = self.entries.len();
        let floats = id.is_none() && matches!(parent, Parent::Tip) && is_silent(&payload);
        let above = self.resolve(&parent, aside);
        let parent_id = self.entries.get(above).map(|entry| entry.id.clone());
        if let Parent::Named(field, name) = parent
            && parent_id.as_ref().map(EntryId::as_str) != Some(&name)
        {
            keep(&mut rest, field, name);
        }
        let mut entry = Entry::derived(parent_id.as_ref(), &timestamp, payload);
        if let Some((field, name)) = id {
            let own = EntryId::from(name.as_str());
            if name.is_empty() || self.index.contains_key(&own) {
                keep(&mut rest, field, name.clone());
            } else {
                entry.id = own;
            }
            self.names.insert(name, position);
        }
        while self.index.contains_key(&entry.id) {
            entry.id = EntryId::derived(Some(&entry.id), &entry.payload);
        }
        self.count(&kind, &entry.payload, &rest);
        if !rest.is_empty() {
            meta.insert("source".to_owned(), rest.into());
        }
        entry.meta = (!meta.is_empty()).then_some(meta);
        let shows = match &entry.payload {
            Payload::Message { .. } | Payload::BranchSummary(_) => true,
            Payload::CompactionSummary(c) => !c.summary.is_empty() || !c.kept_entry_ids.is_empty(),
            _ => position > 0 && self.nodes[above].shows,
        };
        let owner = if floats && position > 0 {
            let owner = self.nodes[above].owner;
            self.nodes[owner].tail = position;
            owner
        } else {
            position
        };
        self.nodes.push(Node {
            parent: above,
            shows,
            owner,
            tail: position,
        });
        self.index.insert(entry.id.clone(), position);
        self.entries.push(entry);
        if !aside {
            self.tip = position;
        }
        position
    }

    /// Adds to a message what a later line says of it.
    pub fn amend(
        &mut self,
        position: usize,
        kind: &str,
        rest: Object,
        change: impl FnOnce(&mut Message),
    ) {
        self.count(kind, &Payload::Custom(Object::new()), &rest);
        let entry = &mut self.entries[position];
        if let Payload::Message { message } = &mut entry.payload {
            change(message);
        }
        let meta = entry.meta.get_or_insert_default();
        let source = match meta.shift_remove("source") {
            Some(Value::Array(mut lines)) => {
                lines.push(rest.into());
                lines
            }
            Some(first) => vec![first, rest.into()],
            None => vec![rest.into()],
        };
        meta.insert("source".to_owned(), source.into());
    }

    /// Another name of the entry there.
    pub fn name(&mut self, name: &str, position: usize) {
        self.names.insert(name.to_owned(), position);
    }

    pub fn named(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    pub fn tip(&self) -> usize {
        self.tip
    }

    pub fn id(&self, position: usize) -> EntryId {
        self.entries[position].id.clone()
    }

    pub fn message(&self, position: usize) -> Option<&Message> {
        match &self.entries[position].payload {
            Payload::Message { message } => Some(message),
            _ => None,
        }
    }

    /// The entries from this one to the root, itself first.
    pub fn path(&self, from: usize) -> impl Iterator<Item = usize> {
        let above = |&p: &usize| (p > 0).then(|| self.nodes[p].parent);
        std::iter::successors(Some(from), above)
    }

    /// The call message that the entry there answers, or is: the first above it that is no result and
    /// no line of the tool's own.
    pub fn asked(&self, from: usize) -> Option<usize> {
        self.path(from).find(|&p| !self.is_answer(p))
    }

    /// Puts a summary in the place of what stands before `first_kept`, or of everything. Where there
    /// is nothing that it could stand for, it is a message: a summary of nothing is not shown.
    pub fn compact(&mut self, mut draft: Draft, mut compaction: Compaction, kept: Option<usize>) {
        let above = self.resolve(&draft.parent, draft.aside);
        let kept = kept.filter(|&p| self.path(above).any(|above| above == p));
        let covers = match kept {
            Some(p) => p > 0 && self.nodes[self.nodes[p].parent].shows,
            None => self.nodes[above].shows,
        };
        if !covers {
            if !compaction.summary.is_empty() {
                let message = Message::user(compaction.summary);
                draft.payload = Payload::Message { message };
                self.add(draft);
            }
            return;
        }
        // What follows the span is not there yet: an entry that shows nothing stands for it.
        let end = match kept {
            Some(p) => p,
            None if is_silent(&self.entries[above].payload) => above,
            None => {
                let mut end = Draft::mark(self.source, "compaction");
                end.parent = std::mem::replace(&mut draft.parent, Parent::Tip);
                end.aside = draft.aside;
                if let Parent::Named(field, name) = &end.parent {
                    keep(&mut draft.rest, field, name.clone());
                }
                let end = self.add(end);
                draft.parent = Parent::At(end);
                end
            }
        };
        compaction.first_kept_entry_id = self.id(end);
        draft.payload = Payload::CompactionSummary(compaction);
        self.add(draft);
    }

    /// The log. Its last entry is one of the conversation.
    pub fn finish(mut self, skipped: Vec<(usize, String)>) -> Imported {
        if self.tip + 1 != self.entries.len() {
            let mut end = Draft::mark(self.source, "leaf");
            end.parent = Parent::At(self.tip);
            self.add(end);
        }
        Imported {
            source: self.source,
            entries: self.entries,
            kept: self.kept,
            skipped,
        }
    }

    fn resolve(&self, parent: &Parent, aside: bool) -> usize {
        if self.entries.is_empty() {
            return 0;
        }
        let wanted = match parent {
            Parent::Tip => return self.tip,
            Parent::At(position) => return *position,
            Parent::Root => 0,
            Parent::Named(_, name) => match self.names.get(name) {
                Some(&position) => position,
                None if aside => 0,
                None => return self.tip,
            },
        };
        // Claude Code's results of parallel calls all name the call: they follow each other, or all but
        // one would be on a branch that was left.
        let parallel = self.source == Source::ClaudeCode && !aside;
        if parallel && (self.is_answer(wanted) || self.is_call(wanted)) {
            let met = |p: &usize| *p == wanted || !self.is_answer(*p);
            if self.path(self.tip).find(met) == Some(wanted) {
                return self.tip;
            }
        }
        self.nodes[wanted].tail
    }

    fn is_call(&self, position: usize) -> bool {
        self.message(position)
            .is_some_and(|message| !message.tool_calls.is_empty())
    }

    fn is_answer(&self, position: usize) -> bool {
        match &self.entries[position].payload {
            Payload::Message { message } => message.role == Role::Tool,
            Payload::Custom(_) => true,
            _ => false,
        }
    }

    fn count(&mut self, kind: &str, payload: &Payload, rest: &Object) {
        let whole = format!("{}.{kind}", self.source.as_str());
        if matches!(payload, Payload::Custom(line) if line.contains_key("line")) {
            *self.kept.entry(whole.clone()).or_default() += 1;
        }
        for (key, value) in rest {
            match value {
                // The line's own type is in the path already.
                _ if key == "type" => {}
                Value::Object(inner) if matches!(key.as_str(), "message" | "payload") => {
                    for key in inner.keys().filter(|key| *key != "type") {
                        *self.kept.entry(format!("{whole}.{key}")).or_default() += 1;
                    }
                }
                _ => *self.kept.entry(format!("{whole}.{key}")).or_default() += 1,
            }
        }
    }
}

/// Puts a name that has no place beside what is left of the line, over nothing that is there.
fn keep(rest: &mut Object, field: &str, name: String) {
    let mut field = field.to_owned();
    while rest.contains_key(&field) {
        field.push('_');
    }
    rest.insert(field, name.into());
}

/// Whether a model is shown nothing of it.
fn is_silent(payload: &Payload) -> bool {
    matches!(payload, Payload::Custom(_) | Payload::ModelChange(_))
}
