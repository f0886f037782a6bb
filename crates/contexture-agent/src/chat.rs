//! A conversation over a stored log: what the core sees and what the disk has never differ.

use contexture::entry::{Injection, RequestRecord, SessionHeader};
use contexture::{Entry, EntryId, Message, Payload, Role, Session, Settings, Turn, View};
use contexture_store::{Key, Record, SessionLog, Sessions, StoreError};
use serde_json::{Map, Value};

use crate::{AgentError, Event, clock};

/// A conversation that is open.
pub struct Chat {
    sessions: Sessions,
    settings: Settings,
    log: SessionLog,
    session: Session,
}

/// A request, ready to be sent. All that it was made from is durable.
pub(crate) struct Prepared {
    pub body: Vec<u8>,
    pub record: RequestRecord,
    /// What the log ended with when it was made.
    pub at: Option<EntryId>,
    /// What was compacted for it.
    pub events: Vec<Event>,
}

/// What a model said, and what there is to remember of that.
pub(crate) struct Spoken {
    pub message: Message,
    pub meta: Option<Map<String, Value>>,
}

/// How often a request is built again because somebody else wrote to the log meanwhile.
const TRIES: usize = 8;

impl Chat {
    /// Opens the conversation of this name, or begins it.
    pub fn open(
        sessions: &Sessions,
        key: &Key,
        header: SessionHeader,
        settings: Settings,
    ) -> Result<Self, AgentError> {
        let log = match sessions.open(key) {
            Ok(log) => log,
            Err(StoreError::NoStream { .. }) => sessions.create(key, header, &clock::now())?,
            Err(error) => return Err(error.into()),
        };
        Self::over(sessions.clone(), log, settings)
    }

    fn over(
        sessions: Sessions,
        mut log: SessionLog,
        settings: Settings,
    ) -> Result<Self, AgentError> {
        let entries = log.view()?.log().to_vec();
        Ok(Self {
            session: Session::open(settings.clone(), entries)?,
            sessions,
            settings,
            log,
        })
    }

    /// Its name.
    pub fn key(&self) -> &Key {
        self.log.key()
    }

    /// The log and what it comes to.
    pub fn view(&self) -> &View {
        self.session.view()
    }

    /// The session, to look at the request as it stands.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// How its requests are built.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Builds the next requests in another way: for another model, with other limits.
    pub fn reset(&mut self, settings: Settings) -> Result<(), AgentError> {
        let entries = self.session.view().log().to_vec();
        self.session = Session::open(settings.clone(), entries)?;
        self.settings = settings;
        Ok(())
    }

    /// Appends what a person said about the log: a pin, an undo.
    pub fn say(&mut self, payload: Payload) -> Result<EntryId, AgentError> {
        self.refresh()?;
        let entry = Entry::derived(self.view().tail(), &clock::now(), payload);
        let id = entry.id.clone();
        self.append(vec![entry])?;
        Ok(id)
    }

    /// Goes on behind an earlier entry, and says why in the first entry there: what came after it is
    /// still in the log, and no longer in effect.
    pub fn go_back(&mut self, to: &EntryId, why: Payload) -> Result<EntryId, AgentError> {
        self.refresh()?;
        let entry = Entry::derived(Some(to), &clock::now(), why);
        let id = entry.id.clone();
        self.append(vec![entry])?;
        Ok(id)
    }

    /// Reads what others wrote to the log since.
    pub fn refresh(&mut self) -> Result<(), AgentError> {
        let stored = self
            .sessions
            .log()
            .tail(&contexture_store::Stream::session(self.key().clone()))?;
        match stored {
            Some(tail) if Some(&tail) != self.view().tail() => self.reload(),
            _ => Ok(()),
        }
    }

    /// Builds the request of a turn and makes durable what it was made from.
    pub(crate) fn prepare(&mut self, turn: &Turn) -> Result<Prepared, AgentError> {
        let mut tries = 0;
        loop {
            let built = self.session.build(turn.clone())?;
            let entries: Vec<Entry> = built.entries_to_append().cloned().collect();
            let body = built.body().to_vec();
            let records = entries
                .iter()
                .map(Record::try_from)
                .collect::<Result<Vec<_>, _>>()?;
            let stored = match records.as_slice() {
                [] => Ok(()),
                records => self.log.append(records),
            };
            match stored {
                Ok(()) => {
                    return Ok(Prepared {
                        body,
                        record: self.session.record(),
                        at: self.view().tail().cloned(),
                        events: events(&entries),
                    });
                }
                // Somebody pinned something, or undid it: the request is made again, with that.
                Err(StoreError::WrongTail { .. }) if tries < TRIES => {
                    tries += 1;
                    self.reload()?;
                }
                Err(error) => {
                    // What is not on the disk did not happen.
                    self.reload()?;
                    return Err(error.into());
                }
            }
        }
    }

    /// Logs what came of a request: its record, and what the model said.
    pub(crate) fn replied(
        &mut self,
        run_id: &str,
        mut record: RequestRecord,
        at: Option<&EntryId>,
        spoken: Option<&Spoken>,
    ) -> Result<(), AgentError> {
        let mut tries = 0;
        loop {
            let tail = self.view().tail().cloned();
            // Others wrote behind the request: it is to be made again from where it was made.
            record.at = at.filter(|at| Some(*at) != tail.as_ref()).cloned();
            let now = clock::now();
            let request = Entry::derived(tail.as_ref(), &now, Payload::Request(record.clone()));
            let mut entries = vec![of_run(request, run_id)];
            if let Some(Spoken { message, meta }) = spoken {
                let last = entries.last().map(|entry| &entry.id);
                let mut entry = Entry::message(last, &now, message.clone());
                entry.meta.clone_from(meta);
                entries.push(of_run(entry, run_id));
            }
            match self.append(entries) {
                Err(AgentError::Store(StoreError::WrongTail { .. })) if tries < TRIES => tries += 1,
                other => return other,
            }
        }
    }

    /// Logs a tool's result, and what was injected on the way to it.
    pub(crate) fn answered(
        &mut self,
        run_id: &str,
        injections: Vec<Injection>,
        results: Vec<Message>,
    ) -> Result<(), AgentError> {
        let payloads: Vec<Payload> = injections
            .into_iter()
            .map(Payload::Injection)
            .chain(
                results
                    .into_iter()
                    .map(|message| Payload::Message { message }),
            )
            .collect();
        self.log_all(run_id, &payloads)
    }

    /// Logs these, one behind the other.
    pub(crate) fn log_all(&mut self, run_id: &str, payloads: &[Payload]) -> Result<(), AgentError> {
        let mut tries = 0;
        while !payloads.is_empty() {
            let now = clock::now();
            let mut entries: Vec<Entry> = Vec::with_capacity(payloads.len());
            for payload in payloads {
                let last = entries.last().map(|entry| &entry.id).or(self.view().tail());
                let entry = Entry::derived(last, &now, payload.clone());
                entries.push(of_run(entry, run_id));
            }
            match self.append(entries) {
                Err(AgentError::Store(StoreError::WrongTail { .. })) if tries < TRIES => tries += 1,
                other => return other,
            }
        }
        Ok(())
    }

    /// The entry of the last message that a user wrote.
    pub(crate) fn last_user(&self) -> Option<EntryId> {
        let mut live = self.view().live(0).rev();
        let user = live.find(|live| {
            matches!(&live.entry.payload, Payload::Message { message } if message.role == Role::User)
        });
        user.map(|live| live.entry.id.clone())
    }

    /// The messages of the request up to a user's.
    pub(crate) fn shown_until(&mut self, user: &EntryId) -> Vec<Message> {
        let Some(text) = self
            .view()
            .position(user)
            .map(|at| &self.view().log()[at].payload)
        else {
            return Vec::new();
        };
        let Payload::Message { message: last } = text.clone() else {
            return Vec::new();
        };
        let Ok(built) = self.session.current() else {
            return Vec::new();
        };
        let mut messages: Vec<Message> = built.messages().cloned().collect();
        let end = messages.iter().rposition(|message| *message == last);
        messages.truncate(end.map_or(messages.len(), |end| end + 1));
        messages
    }

    /// Makes entries durable, then part of the session. When somebody else wrote meanwhile, reads that
    /// and says so: the caller knows what it means for the entries.
    fn append(&mut self, entries: Vec<Entry>) -> Result<(), AgentError> {
        let records = entries
            .iter()
            .map(Record::try_from)
            .collect::<Result<Vec<_>, _>>()?;
        if let Err(error) = self.log.append(&records) {
            self.reload()?;
            return Err(error.into());
        }
        Ok(self.session.append(entries)?)
    }

    fn reload(&mut self) -> Result<(), AgentError> {
        let key = self.key().clone();
        match self.sessions.open(&key) {
            Ok(log) => {
                *self = Self::over(self.sessions.clone(), log, self.settings.clone())?;
                Ok(())
            }
            // It has only its header yet, and that is not written.
            Err(StoreError::NoStream { .. }) => {
                let header = self.view().log().first().cloned();
                let header = match header.as_deref().map(|entry| &entry.payload) {
                    Some(Payload::SessionHeader(header)) => header.clone(),
                    _ => SessionHeader::default(),
                };
                let log = self.sessions.create(&key, header, &clock::now())?;
                *self = Self::over(self.sessions.clone(), log, self.settings.clone())?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn of_run(mut entry: Entry, run_id: &str) -> Entry {
    entry.run_id = Some(run_id.to_owned());
    entry
}

/// What a build compacted, for people.
fn events(entries: &[Entry]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut masked = 0;
    for entry in entries {
        match &entry.payload {
            Payload::CompactionSummary(made) => events.push(Event::Compaction {
                strategy: made.strategy.clone(),
                tokens_before: made.tokens_before,
                tokens_after: made.tokens_after,
                refused: made
                    .refused
                    .iter()
                    .map(|refused| format!("{}: {}", refused.strategy, refused.why))
                    .collect(),
            }),
            Payload::Mask(mask) => masked += mask.entry_ids.len(),
            _ => {}
        }
    }
    if masked > 0 && events.is_empty() {
        let s = if masked == 1 { "" } else { "s" };
        events.push(Event::Notice {
            text: format!("{masked} old tool result{s} masked to make room"),
        });
    }
    events
}
