//! What broke the prefix, and which entry did it.
//!
//! The entry is found by living through the log again, from the earlier request to the later one,
//! and watching the first thing that differs: the last entry that touched it is the cause. So every
//! kind of entry that can reach back is covered by what it does, not by a list of cases.

use serde::Serialize;

use super::prefix::{HeadChange, Shared};
use super::side::{Line, Side};
use super::{ToolChanges, why};
use crate::entry::Change;
use crate::prompt::Section;
use crate::{Entry, EntryId, Payload, View};

/// Where and why B stops being A.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Break {
    /// The first of A's messages that B does not begin with; 0 for what stands before them all.
    pub index: usize,
    /// The first thing of A that B does not begin with, as in a receipt: `entry:ID`,
    /// `section:NAME`, `tools`, `model`, `params`.
    pub origin: String,
    /// What did it: `model`, `params`, `tools`, `section:NAME`, `branch`, `message` where simply
    /// another one stands there, or the type of the entry that did.
    pub component: String,
    /// The entry that did it, where it was logged between the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<EntryId>,
    /// The same in a sentence.
    pub why: String,
}

pub(super) fn broken_by(view: &View, a: &Side, b: &Side, shared: &Shared) -> Option<Break> {
    if shared.is_whole(a) {
        return None;
    }
    let (early, late) = if a.log_len <= b.log_len {
        (a, b)
    } else {
        (b, a)
    };
    let walk = Walk { view, early, late };
    let index = shared.messages;
    let mut found = match shared.head {
        Some(HeadChange::Model) => walk.model(),
        Some(HeadChange::Param(name)) => Break::of("params", format!("`{name}` differs")),
        Some(HeadChange::Tools) => walk.tools(),
        None => walk.message(index),
    };
    found.index = index;
    if shared.head.is_none()
        && let Some(line) = a.at(index).filter(|line| line.origin.starts_with("entry:"))
    {
        found.origin.clone_from(&line.origin);
    }
    if b.log_len < a.log_len {
        found.why.push_str("; B is from before that");
    }
    Some(found)
}

impl Break {
    fn of(component: impl Into<String>, why: String) -> Self {
        let component = component.into();
        Self {
            index: 0,
            origin: component.clone(),
            component,
            cause: None,
            why,
        }
    }

    fn by(self, entry: Option<&Entry>) -> Self {
        Self {
            cause: entry.map(|entry| entry.id.clone()),
            ..self
        }
    }
}

/// The log between two requests.
struct Walk<'a> {
    view: &'a View,
    early: &'a Side,
    late: &'a Side,
}

impl<'a> Walk<'a> {
    /// The last entry between the two that changed what `look` sees.
    fn last_change<S: PartialEq>(&self, look: impl Fn(&View) -> S) -> Option<&'a Entry> {
        let log = self.view.log();
        let end = self.late.log_len.min(log.len());
        let start = self.early.log_len.min(end);
        let mut now = self.view.clone();
        now.truncate(start);
        let mut seen = look(&now);
        let mut found = None;
        for entry in &log[start..end] {
            let pushed = now.push(entry.clone());
            // Anything else leaves what was there as it was.
            if !matches!(pushed, Ok(Change::Rewritten)) {
                continue;
            }
            let next = look(&now);
            if next != seen {
                found = Some(entry.as_ref());
                seen = next;
            }
        }
        found
    }

    fn model(&self) -> Break {
        let name = |side: &Side| match &side.model {
            Some(model) => format!("`{model}`"),
            None => "none".to_owned(),
        };
        let log = self.view.log();
        let end = self.late.log_len.min(log.len());
        let between = &log[self.early.log_len.min(end)..end];
        let cause = between
            .iter()
            .rfind(|entry| matches!(entry.payload, Payload::ModelChange(_)));
        let why = format!(
            "the model went from {} to {}",
            name(self.early),
            name(self.late)
        );
        Break::of("model", why).by(cause.map(AsRef::as_ref))
    }

    fn tools(&self) -> Break {
        let cause = self.last_change(|view| view.tools().to_vec());
        let ToolChanges {
            added,
            removed,
            changed,
        } = ToolChanges::between(&self.early.tools, &self.late.tools);
        let parts: Vec<String> = [("added", added), ("removed", removed), ("changed", changed)]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what} {}", names.join(", ")))
            .collect();
        let mut why = match parts.as_slice() {
            [] => "the tools stand in another order".to_owned(),
            parts => format!("tools: {}", parts.join("; ")),
        };
        if let Some(entry) = cause {
            why.push_str(&format!(" (by {})", entry.id));
        }
        Break::of("tools", why).by(cause)
    }

    fn message(&self, index: usize) -> Break {
        if index == 0
            && let Some(found) = self.section()
        {
            return found;
        }
        let old = self.early.at(index).and_then(|line| self.position(line));
        let new = self.late.at(index).and_then(|line| self.position(line));
        let logged_since = |&p: &usize| p >= self.early.log_len;
        let is_summary =
            |&p: &usize| matches!(self.entry(p).payload, Payload::CompactionSummary(_));
        // Of several summaries, one of the other, and of several injections before one message, the
        // one that stands there.
        let stands = |p: &usize| is_summary(p) || self.is_placed(index);
        let came = new.filter(logged_since).filter(stands);
        let cause = came
            .map(|p| self.entry(p))
            .or_else(|| self.last_change(place(old?)))
            .or_else(|| new.filter(logged_since).map(|p| self.entry(p)))
            .or_else(|| self.last_change(place(new?)))
            // Something before it came or went, and what moved up happens to be equal.
            .or_else(|| self.last_change(everything));
        let subject = old.or(new).map(|p| self.entry(p));
        let other = new.map(|p| self.entry(p));
        let Some(cause) = cause else {
            let why = "another message stands there".to_owned();
            return Break::of("message", why);
        };
        let component = self.component(cause);
        let subject = subject.unwrap_or(cause);
        let why = match component {
            "branch" => why::branch(cause, subject),
            _ => why::entry(self.view, cause, subject, other),
        };
        Break::of(component, why).by(Some(cause))
    }

    /// The first stable section that differs, where there are any.
    fn section(&self) -> Option<Break> {
        let (old, new) = (&self.early.sections, &self.late.sections);
        let same = old
            .iter()
            .zip(new)
            .take_while(|(old, new)| old.name == new.name && old.text == new.text);
        let same = same.count();
        let name = &new.get(same).or_else(|| old.get(same))?.name;
        let what = match (find_section(old, name), find_section(new, name)) {
            (None, _) => "added",
            (_, None) => "taken away",
            (Some((_, old)), Some((_, new))) if old == new => "moved",
            _ => "changed",
        };
        let cause = self.last_change(|view| {
            find_section(view.sections(), name).map(|(at, text)| (at, text.to_owned()))
        });
        let mut why = format!("section {name} was {what}");
        if let Some(entry) = cause {
            why.push_str(&format!(" by {}", entry.id));
        }
        Some(Break::of(format!("section:{name}"), why).by(cause))
    }

    fn component(&self, entry: &Entry) -> &'static str {
        if self.branches(entry) {
            return "branch";
        }
        match entry.payload {
            Payload::Injection(ref injection) if injection.before_entry_id.is_some() => "injection",
            Payload::Message { .. }
            | Payload::Injection(_)
            | Payload::Hints { .. }
            | Payload::Sections { .. }
            | Payload::BranchSummary(_) => "message",
            ref other => other.type_name(),
        }
    }

    /// Whether the later request's message there was injected before another.
    fn is_placed(&self, index: usize) -> bool {
        let entries = (index..).map_while(|at| self.position(self.late.at(at)?));
        let mut entries = entries.map(|p| self.entry(p));
        let Some(Payload::Injection(first)) = entries.next().map(|entry| &entry.payload) else {
            return false;
        };
        let beside = |entry: &&Entry| matches!(&entry.payload, Payload::Injection(i) if i.before_entry_id == first.before_entry_id);
        let behind = entries.find(|entry| !beside(entry));
        behind.is_some_and(|entry| first.before_entry_id.as_ref() == Some(&entry.id))
    }

    /// Whether the entry follows another one than the one before it.
    fn branches(&self, entry: &Entry) -> bool {
        let before = self.view.position(&entry.id).and_then(|p| p.checked_sub(1));
        match (&entry.parent_id, before) {
            (Some(parent), Some(before)) => self.entry(before).id != *parent,
            _ => false,
        }
    }

    fn position(&self, line: &Line) -> Option<usize> {
        let id = line.origin.strip_prefix("entry:")?;
        self.view.position(&EntryId::from(id))
    }

    fn entry(&self, position: usize) -> &'a Entry {
        &self.view.log()[position]
    }
}

/// All that decides where and how an entry is shown.
#[derive(PartialEq)]
struct Place {
    at: Option<usize>,
    mask: Option<Option<usize>>,
    redacted: bool,
    withheld: bool,
    /// The runtime facts stand before the conversation.
    facts: Option<usize>,
    /// A part of the stored prompt that a given one overrides, unless it is pinned.
    pinned: bool,
}

fn place(position: usize) -> impl Fn(&View) -> Place {
    move |view| {
        let mut live = view.live(0).enumerate();
        let found = live.find(|(_, live)| live.position == position);
        Place {
            at: found.map(|(at, _)| at),
            mask: found.and_then(|(_, live)| live.mask),
            redacted: position < view.log().len() && view.is_redacted(position),
            withheld: view.is_withheld(position),
            facts: view.first_runtime_init(),
            pinned: found.is_some_and(|(_, live)| live.leads && live.pinned),
        }
    }
}

/// All that is shown, in order.
fn everything(view: &View) -> impl PartialEq + use<> {
    let live = view
        .live(0)
        .map(|l| (l.position, l.mask, l.redacted, l.leads && l.pinned));
    (view.sections().to_vec(), live.collect::<Vec<_>>())
}

fn find_section<'a>(sections: &'a [Section], name: &str) -> Option<(usize, &'a str)> {
    let at = sections.iter().position(|section| section.name == name)?;
    Some((at, &sections[at].text))
}
