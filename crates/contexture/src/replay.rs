//! Every request of a session or transcript, made again, turn by turn.
//!
//! A transcript has no requests of its own: one stands before each assistant message that follows a
//! user or tool message. In a log with records of requests, those are its requests, and all that
//! numbers them does so by them. Compactions made on the way are carried, as a live run would carry
//! them.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use crate::build::{BuildInput, Built, Session, Settings, Turn};
use crate::entry::RequestRecord;
use crate::{ContextError, Entry, EntryId, Payload, Role, View};

/// One request of a replay, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Which request it is, from 0.
    pub request: usize,
    /// The entry that it led to: the assistant's message, or the recorded request.
    pub entry_id: EntryId,
    /// `sha256:` of its body.
    pub digest: String,
    /// Its tokens.
    pub input_tokens: usize,
    /// Its messages.
    pub message_count: usize,
    /// The tokens that it and the request before it begin with, as in its receipt.
    pub shared_prefix_tokens: usize,
    /// Messages of the history that are not in it.
    pub dropped_messages_count: usize,
    /// Whether it compacted.
    pub compacted: bool,
    /// What was recorded when it was sent, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_digest: Option<String>,
}

/// Makes every request of the input again, under these settings, and shows each to `visit`. Gives
/// the session as such a run would have left it, with a record of each request.
///
/// What the recorded run masked, summarised or dropped is left aside: under other settings, other
/// decisions fall.
pub fn replay(
    settings: Settings,
    input: BuildInput,
    mut visit: impl FnMut(&Step, &Built<'_>) -> Result<(), ContextError>,
) -> Result<Session, ContextError> {
    let mut requests = 0;
    relive(settings, input, |entry_id, built| {
        visit(&Step::of(requests, entry_id, built), built)?;
        requests += 1;
        Ok(())
    })
}

/// The same, with the entry that each request led to: its numbers cost something, and not everybody
/// asks.
fn relive(
    settings: Settings,
    mut input: BuildInput,
    mut visit: impl FnMut(&EntryId, &Built<'_>) -> Result<(), ContextError>,
) -> Result<Session, ContextError> {
    let mut session = Session::new(settings)?;
    let mut turn = Turn {
        sections: input.turn.take_sections(),
        tools: input.turn.tools,
        ..Turn::default()
    };
    turn.runtime_init = input.turn.runtime_init;
    let mut last_role = None;
    let has_records = input.session_entries.iter().any(is_request);
    let mut moments = undecided(input.session_entries);
    let mut last = moments.iter().rev().find_map(Moment::entry_id).cloned();
    for message in input.turn.messages {
        let mut entry = Entry::message(last.as_ref(), "", message);
        entry.parent_id = None;
        last = Some(entry.id.clone());
        moments.push(Moment::Entry(Box::new(entry)));
    }
    for moment in moments {
        let entry = match moment {
            Moment::Entry(entry) => *entry,
            Moment::Request(id) => {
                let built = session.build(std::mem::take(&mut turn))?;
                visit(&id, &built)?;
                session.append([record(&session)])?;
                continue;
            }
        };
        let role = match &entry.payload {
            Payload::Message { message } => Some(message.role),
            _ => None,
        };
        // What begins a branch does not answer what stands before it in the log.
        let follows = entry.parent_id.is_none();
        let asks = follows && matches!(last_role, Some(Role::User | Role::Tool));
        if role == Some(Role::Assistant) && asks && !has_records {
            let built = session.build(std::mem::take(&mut turn))?;
            visit(&entry.id, &built)?;
            session.append([record(&session)])?;
        }
        last_role = role.or(last_role);
        session.append([entry])?;
    }
    Ok(session)
}

/// The log with a record of each request. One that has none gets those that a run under these
/// settings would have made, with what that would have compacted.
pub fn recorded(settings: Settings, entries: Vec<Entry>) -> Result<View, ContextError> {
    if entries.iter().any(is_request) {
        return View::fold(entries);
    }
    let input = BuildInput {
        session_entries: entries,
        ..BuildInput::default()
    };
    Ok(relive(settings, input, |_, _| Ok(()))?.into_view())
}

/// Makes every recorded request of a log again, exactly as it was, and shows each to `visit`.
///
/// The records say for which model, in which form and with which parameters; what they leave out
/// comes from the settings, which may be others for each model: models count in different ways.
pub fn verify<E: Into<Arc<Entry>>>(
    settings: impl Fn(&RequestRecord) -> Settings,
    entries: impl IntoIterator<Item = E>,
    mut visit: impl FnMut(&Step, &Built<'_>) -> Result<(), ContextError>,
) -> Result<(), ContextError> {
    let mut log: Vec<Arc<Entry>> = Vec::new();
    // Whoever changes the model may change the form and what counts: a session for each.
    let mut sessions: Vec<Session> = Vec::new();
    let mut requests = 0;
    let mut compacted = false;
    for entry in entries {
        let entry: Arc<Entry> = entry.into();
        if let Payload::Request(record) = &entry.payload {
            let wire = record.wire.unwrap_or_default();
            let fits = |session: &Session| {
                let own = session.settings();
                own.wire == wire && own.model == record.model
            };
            let at = match sessions.iter().position(fits) {
                Some(at) => at,
                None => {
                    let settings = Settings {
                        wire,
                        model: record.model.clone(),
                        ..settings(record)
                    };
                    sessions.push(Session::open(settings, log.iter().cloned())?);
                    sessions.len() - 1
                }
            };
            let mut earlier = match &record.at {
                Some(made_at) => Some(before(&sessions[at], &log, made_at, &entry)?),
                None => None,
            };
            let session = earlier.as_mut().unwrap_or(&mut sessions[at]);
            session.address(record);
            let built = session.current()?;
            let mut step = Step::of(requests, &entry.id, &built);
            step.compacted = std::mem::take(&mut compacted);
            if record.digest != step.digest {
                step.recorded_digest = Some(record.digest.clone());
            }
            visit(&step, &built)?;
            requests += 1;
        }
        compacted |= is_decision(&entry) && !is_request(&entry);
        for session in &mut sessions {
            session.append([Arc::clone(&entry)])?;
        }
        log.push(entry);
    }
    Ok(())
}

/// The session as it was when the log ended with `made_at`: others wrote to it before the record of
/// the request.
fn before(
    now: &Session,
    log: &[Arc<Entry>],
    made_at: &EntryId,
    record: &Entry,
) -> Result<Session, ContextError> {
    let end = log.iter().position(|entry| entry.id == *made_at);
    let end = end.ok_or_else(|| {
        ContextError::invalid(
            format!("entry {}", record.id),
            format!("at `{made_at}` is not in the log before it"),
            "a request's `at` names an earlier entry",
        )
    })?;
    Session::open(now.settings().clone(), log[..=end].iter().cloned())
}

impl Step {
    fn of(request: usize, entry_id: &EntryId, built: &Built<'_>) -> Self {
        let stats = built.stats();
        Self {
            request,
            entry_id: entry_id.clone(),
            digest: built.digest().to_owned(),
            input_tokens: stats.input_tokens,
            message_count: stats.message_count,
            shared_prefix_tokens: built.shared_prefix_tokens(),
            dropped_messages_count: stats.dropped_messages_count,
            compacted: built.compacted(),
            recorded_digest: None,
        }
    }
}

/// A step of a life that is lived again.
enum Moment {
    /// Something that was logged.
    Entry(Box<Entry>),
    /// A request that was recorded, by its record.
    Request(EntryId),
}

impl Moment {
    fn entry_id(&self) -> Option<&EntryId> {
        match self {
            Self::Entry(entry) => Some(&entry.id),
            Self::Request(_) => None,
        }
    }
}

/// The entries without what a build decided, and without what others said about that. Of the record of
/// a request its place is left.
///
/// One that followed the entry before it still does, whatever a replay puts between the two; one
/// that began a branch still begins it.
fn undecided(entries: Vec<Entry>) -> Vec<Moment> {
    let mut kept: Vec<Moment> = Vec::new();
    let mut last: Option<EntryId> = None;
    // What is left out, with what it followed.
    let mut gone: HashMap<EntryId, Option<EntryId>> = HashMap::new();
    let mut before: Option<EntryId> = None;
    for mut entry in entries {
        let mut parent = entry.parent_id.take().or_else(|| before.clone());
        before = Some(entry.id.clone());
        while let Some(earlier) = parent.as_ref().and_then(|id| gone.get(id)) {
            parent = earlier.clone();
        }
        if is_decision(&entry) || target(&entry).is_some_and(|id| gone.contains_key(id)) {
            if is_request(&entry) {
                kept.push(Moment::Request(entry.id.clone()));
            }
            gone.insert(entry.id, parent);
            continue;
        }
        entry.parent_id = parent.filter(|parent| last.as_ref().is_some_and(|last| last != parent));
        last = Some(entry.id.clone());
        kept.push(Moment::Entry(Box::new(entry)));
    }
    kept
}

/// The entry that this one is about, and without which it means nothing.
fn target(entry: &Entry) -> Option<&EntryId> {
    match &entry.payload {
        Payload::Pin(target)
        | Payload::Unpin(target)
        | Payload::Redaction(target)
        | Payload::Revert(target) => Some(&target.entry_id),
        Payload::CompactionSummary(compaction) => Some(&compaction.first_kept_entry_id),
        _ => None,
    }
}

/// Whether the entry is something that a build decided, or the record of one.
fn is_decision(entry: &Entry) -> bool {
    match entry.payload {
        Payload::Request(_) => true,
        Payload::Mask(_) | Payload::CompactionSummary(_) => entry
            .meta
            .as_ref()
            .is_some_and(|meta| meta.get("by").is_some_and(|by| by == "build")),
        _ => false,
    }
}

fn is_request(entry: &Entry) -> bool {
    matches!(entry.payload, Payload::Request(_))
}

fn record(session: &Session) -> Entry {
    let view = session.view();
    let now = view.log().last().map_or("", |last| &last.timestamp);
    Entry::derived(view.tail(), now, Payload::Request(session.record()))
}
