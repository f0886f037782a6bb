use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::build::marks::REDACTED;
use crate::prompt::{self, Section, Stability};
use crate::{ContextError, Entry, EntryId, Message, Payload, View};

/// All that was said on the current branch.
#[derive(Debug, Clone)]
pub struct Conversation<'a> {
    /// The stable sections of the system side.
    pub sections: Vec<Section>,
    /// The tools.
    pub tools: Vec<Value>,
    /// What was said, in order.
    pub said: Vec<Said<'a>>,
}

/// Something that was said.
#[derive(Debug, Clone)]
pub struct Said<'a> {
    /// The entry that says it.
    pub entry: &'a Entry,
    /// Its log position.
    pub position: usize,
    /// What it is.
    pub kind: Kind<'a>,
    /// It as a message: verbatim, or a mark where it was redacted.
    pub message: Cow<'a, Message>,
    /// Whether its content was taken out.
    pub redacted: bool,
    /// Whether it is in every request.
    pub pinned: bool,
}

/// What an entry that says something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A message of the conversation.
    Message,
    /// Context that was brought in, and by whom.
    Injection(Option<&'a str>),
    /// What happened on a branch that was left.
    BranchSummary,
    /// Facts that hold for the session.
    Facts,
    /// Facts that change from turn to turn.
    Hints,
    /// Sections of the system side that changed on the way.
    Sections,
}

/// The conversation of the current branch: nothing masked or summarised, redactions applied, what
/// was undone left out.
pub fn conversation(view: &View) -> Result<Conversation<'_>, ContextError> {
    let whole = verbatim(view)?;
    let mut said = Vec::new();
    let mut live = whole.live(0).peekable();
    let mut push = |position: usize, pinned: bool| {
        let entry: &Entry = &view.log()[position];
        if let Some((kind, message)) = message(entry) {
            let redacted = whole.is_redacted(position);
            let message = match redacted {
                true => Cow::Owned(redacted_form(&message)),
                false => message,
            };
            said.push(Said {
                entry,
                position,
                kind,
                message,
                redacted,
                pinned,
            });
        }
    };
    while let Some(next) = live.next_if(|live| live.leads) {
        push(next.position, next.pinned);
    }
    if let Some(position) = whole.first_runtime_init() {
        push(position, false);
    }
    for next in live {
        push(next.position, next.pinned);
    }
    Ok(Conversation {
        sections: whole.sections().to_vec(),
        tools: whole.tools().to_vec(),
        said,
    })
}

/// The view of the same log as if nothing had ever been masked or summarised.
///
/// Entries that hide something become entries that say nothing, in the same place, so that every
/// other one keeps its position and its parent.
pub(super) fn verbatim(view: &View) -> Result<View, ContextError> {
    let mut whole = View::default();
    let mut silent: HashSet<&EntryId> = HashSet::new();
    for entry in view.log() {
        let hides = match &entry.payload {
            Payload::Mask(_) | Payload::CompactionSummary(_) => true,
            Payload::Revert(target) => silent.contains(&target.entry_id),
            _ => false,
        };
        if hides {
            silent.insert(&entry.id);
            whole.push(Entry {
                id: entry.id.clone(),
                parent_id: entry.parent_id.clone(),
                ..Entry::derived(None, "", Payload::Custom(Map::new()))
            })?;
        } else {
            whole.push(entry.clone())?;
        }
    }
    Ok(whole)
}

/// What the entry says, for a reader; nothing for one that says nothing.
fn message(entry: &Entry) -> Option<(Kind<'_>, Cow<'_, Message>)> {
    let (kind, message) = match &entry.payload {
        Payload::Message { message } => return Some((Kind::Message, Cow::Borrowed(message))),
        Payload::Injection(injection) => (
            Kind::Injection(injection.origin.as_deref()),
            Message::new(injection.role, injection.content.clone()),
        ),
        Payload::BranchSummary(branch) => {
            (Kind::BranchSummary, Message::user(branch.summary.clone()))
        }
        Payload::RuntimeInit { data } => (
            Kind::Facts,
            Message::system(prompt::runtime::lines(data).join("\n")),
        ),
        Payload::Hints { data } => (
            Kind::Hints,
            Message::system(prompt::runtime::lines(data).join("\n")),
        ),
        Payload::Sections { sections } => {
            let volatile = sections
                .iter()
                .filter(|s| s.stability == Stability::Volatile && !s.is_blank());
            let texts: Vec<&str> = volatile.map(|s| s.text.as_str()).collect();
            (
                Kind::Sections,
                Message::system(texts.join(prompt::SEPARATOR)),
            )
        }
        _ => return None,
    };
    (!message.is_empty()).then_some((kind, Cow::Owned(message)))
}

/// The message without anything that it said: calls and unknown fields may quote it, too.
fn redacted_form(message: &Message) -> Message {
    Message {
        tool_call_id: message.tool_call_id.clone(),
        ..Message::new(message.role, REDACTED)
    }
}
