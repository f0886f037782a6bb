//! What a document of a session is made of, in the order of its pages.

use std::collections::HashMap;

use super::conversation::{Conversation, Kind, Said, conversation};
use super::decided::{Decided, count, decided};
use crate::text::hidden::legible;
use crate::{ContextError, EntryId, View};

pub(super) struct Outline<'a> {
    pub conversation: Conversation<'a>,
    pub decided: Vec<Decided<'a>>,
    /// The tool whose result a message is.
    tools: HashMap<EntryId, String>,
}

/// Something that was said, or the line that says what was hidden from the model there.
pub(super) enum Row<'a> {
    Said(&'a Said<'a>),
    Decided(&'a Decided<'a>),
}

impl<'a> Outline<'a> {
    pub(super) fn of(view: &'a View) -> Result<Self, ContextError> {
        let conversation = conversation(view)?;
        let mut called: HashMap<&str, &str> = HashMap::new();
        let mut tools = HashMap::new();
        for said in &conversation.said {
            for call in &said.message.tool_calls {
                called.insert(&call.id, &call.name);
            }
            // Ids are used again in real logs: the call before it is the one.
            let id = said.message.tool_call_id.as_deref();
            if let Some(name) = id.and_then(|id| called.get(id)) {
                tools.insert(said.entry.id.clone(), (*name).to_owned());
            }
        }
        Ok(Self {
            conversation,
            decided: decided(view),
            tools,
        })
    }

    /// Everything, in order.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let mut decided = self.decided.iter().peekable();
        let mut rows = Vec::new();
        for said in &self.conversation.said {
            while let Some(next) = decided.next_if(|d| d.position < said.position) {
                rows.push(Row::Decided(next));
            }
            rows.push(Row::Said(said));
        }
        rows.extend(decided.map(Row::Decided));
        rows
    }

    /// `42 messages`, and from when to when, where that is known.
    pub(super) fn facts(&self) -> Vec<String> {
        let said = &self.conversation.said;
        let messages = said.iter().filter(|s| s.kind == Kind::Message).count();
        let mut facts = vec![count(messages, "message", "messages")];
        let mut times = said.iter().map(|said| time(&said.entry.timestamp));
        let mut times = times.by_ref().filter(|time| !time.is_empty());
        if let Some(first) = times.next() {
            let last = times.last().filter(|last| *last != first);
            facts.push(match last {
                // The day once, where it is one.
                Some(last) => match (first.get(..11), last.split_at_checked(11)) {
                    (Some(day), Some((same, time))) if day == same && day.ends_with(' ') => {
                        format!("{first} to {time}")
                    }
                    _ => format!("{first} to {last}"),
                },
                None => first,
            });
        }
        facts
    }

    /// Who speaks, for people.
    pub(super) fn speaker(&self, said: &Said<'_>) -> String {
        let who = match said.kind {
            Kind::Message => {
                let role = said.message.role.as_str();
                let name = said.message.name.as_deref();
                match self.tools.get(&said.entry.id).map(String::as_str).or(name) {
                    Some(name) => format!("{role} · {name}"),
                    None => role.to_owned(),
                }
            }
            Kind::Injection(None) => "injection".to_owned(),
            Kind::Injection(Some(origin)) => format!("injection · {origin}"),
            Kind::BranchSummary => "summary of another branch".to_owned(),
            Kind::Facts => "facts of the session".to_owned(),
            Kind::Hints => "hints".to_owned(),
            Kind::Sections => "sections".to_owned(),
        };
        line(&who)
    }

    /// What else there is to say of it.
    pub(super) fn marks(&self, said: &Said<'_>) -> Vec<&'static str> {
        let marks = [
            (said.pinned, "pinned"),
            (said.redacted, "redacted"),
            (!said.message.include_in_context, "never shown to the model"),
        ];
        let holds = marks.into_iter().filter(|(holds, _)| *holds);
        holds.map(|(_, mark)| mark).collect()
    }
}

/// A time as people write it, where it is one; anything else as it is.
pub(super) fn time(timestamp: &str) -> String {
    let is_rfc3339 = timestamp.len() >= 19
        && timestamp.as_bytes()[10] == b'T'
        && timestamp.bytes().take(4).all(|b| b.is_ascii_digit());
    let shown = match (is_rfc3339, timestamp.get(..19), timestamp.get(19..)) {
        (true, Some(time), Some("Z")) => time.replacen('T', " ", 1),
        (true, Some(time), Some(rest)) => format!("{}{rest}", time.replacen('T', " ", 1)),
        _ => timestamp.to_owned(),
    };
    line(&shown)
}

/// Text that stays on one line.
pub(super) fn line(text: &str) -> String {
    legible(text).replace(['\n', '\t'], " ")
}

/// Whether a text is too long to be read in passing.
pub(super) fn is_long(text: &str) -> bool {
    const LINES: usize = 12;
    const BYTES: usize = 1_000;
    text.len() > BYTES || text.lines().count() > LINES
}
