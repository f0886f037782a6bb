use std::collections::HashMap;
use std::io;
use std::path::Path;

use contexture::entry::SessionHeader;
use contexture::message::openai;
use contexture::{ContextError, Entry, EntryId, Message, Payload, json};
use contexture_store::{Key, Record, SessionLog, StoreError, Stream};
use serde_json::{Map, Value};

use super::feed::Feed;
use crate::error::CliError;
use crate::input::{self, Line};
use crate::output::Out;
use crate::store::Home;
use crate::view::safe;
use contexture_agent::clock::now;

/// How often to try again when others append to the same session.
const MOST_TRIES: usize = 100;

/// `ctx sessions append`.
pub fn append(home: &Home, key: &Key, file: &Path, json: bool) -> Result<(), CliError> {
    let feed = Feed::of(file);
    let mut out = Out::new();
    let mut session = None;
    while let Some((lines, wrong)) = feed.next() {
        let (ids, refused) = add(home, key, &mut session, file, &lines);
        tell(&mut out, &ids, json).map_err(|error| untold(&error, &ids))?;
        if let Some(error) = refused.or(wrong) {
            return Err(error);
        }
    }
    Ok(())
}

/// The ids of the lines that are durable, and what is wrong with the line behind them.
type Added = (Vec<EntryId>, Option<CliError>);

fn tell(out: &mut Out, ids: &[EntryId], json: bool) -> io::Result<()> {
    for id in ids {
        match json {
            true => out.data(format!("{}\n", serde_json::json!({ "id": id })).as_bytes())?,
            false => out.text(&format!("{}\n", safe(id.as_str())))?,
        }
    }
    out.flush()
}

/// Nobody is left to tell. Elsewhere that is the reader's right; here lines may be left that were not
/// appended, and whoever sent them must not take them for logged.
fn untold(error: &io::Error, ids: &[EntryId]) -> CliError {
    let last = ids.last().map(|id| format!(", up to entry `{id}`"));
    CliError::Io {
        place: "standard output".to_owned(),
        error: io::Error::other(format!(
            "{error}; what was read so far is in the session{}, what follows is not",
            last.unwrap_or_default()
        )),
    }
}

/// Appends the lines up to the first that is wrong. When somebody else wrote in the meantime, they
/// go behind that.
fn add(
    home: &Home,
    key: &Key,
    session: &mut Option<SessionLog>,
    file: &Path,
    lines: &[Line],
) -> Added {
    let mut careful = false;
    for _ in 0..MOST_TRIES {
        let open = match session.take().map_or_else(|| open_or_create(home, key), Ok) {
            Ok(open) => session.insert(open),
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut batch = Batch::behind(open.tail(), careful);
        let mut wrong = None;
        for line in lines {
            if let Err(error) = batch.take(open, line) {
                wrong = Some(at(file, line.number, error));
                break;
            }
        }
        if batch.doubtful {
            careful = true;
            continue;
        }
        if batch.records.is_empty() {
            return (batch.known, wrong);
        }
        match open.append(&batch.records) {
            Ok(()) => return (batch.known, wrong),
            // Somebody was faster, or some of it was there before.
            Err(StoreError::WrongTail { .. } | StoreError::Exists { .. }) => {
                careful = true;
                *session = None;
            }
            // One of them makes no sense here; those before it do.
            Err(StoreError::Context(_) | StoreError::IdTaken { .. }) if lines.len() > 1 => {
                return one_by_one(home, key, session, file, lines);
            }
            Err(error) => {
                let number = lines.first().map_or(0, |line| line.number);
                return (Vec::new(), Some(at(file, number, error.into())));
            }
        }
    }
    let held = StoreError::Held {
        stream: Stream::session(key.clone()),
        pid: None,
    };
    (Vec::new(), Some(held.into()))
}

fn one_by_one(
    home: &Home,
    key: &Key,
    session: &mut Option<SessionLog>,
    file: &Path,
    lines: &[Line],
) -> Added {
    let mut all = Vec::new();
    for line in lines {
        let (ids, wrong) = add(home, key, session, file, std::slice::from_ref(line));
        all.extend(ids);
        if wrong.is_some() {
            return (all, wrong);
        }
    }
    (all, None)
}

/// A session to append to; a new one where there is none.
fn open_or_create(home: &Home, key: &Key) -> Result<SessionLog, CliError> {
    match home.sessions.open(key) {
        Err(StoreError::NoStream { .. }) => match home.sessions.create(key, header(), &now()) {
            // Somebody else was faster.
            Err(StoreError::Exists { .. }) => Ok(home.sessions.open(key)?),
            other => Ok(other?),
        },
        other => Ok(other?),
    }
}

/// The header of a session that begins here.
pub fn header() -> SessionHeader {
    let cwd = std::env::current_dir().ok();
    SessionHeader {
        version: contexture::entry::VERSION,
        chat_key: None,
        agent: None,
        cwd: cwd.map(|folder| folder.display().to_string()),
        extra: Map::new(),
    }
}

/// Lines that are appended together.
struct Batch {
    tail: EntryId,
    records: Vec<Record>,
    /// The messages among them that have an id of their own.
    said: HashMap<EntryId, Message>,
    /// The id for each line, also of one that was there already.
    known: Vec<EntryId>,
    /// Whether it looks for each entry in the log first. That costs reading the log, and is only
    /// needed to know what a message stands behind.
    careful: bool,
    /// An entry came that may be there already.
    unsure: bool,
    /// And a message behind it: the batch has to be made again, with care.
    doubtful: bool,
}

impl Batch {
    fn behind(tail: &EntryId, careful: bool) -> Self {
        Self {
            tail: tail.clone(),
            records: Vec::new(),
            said: HashMap::new(),
            known: Vec::new(),
            careful,
            unsure: false,
            doubtful: false,
        }
    }

    fn take(&mut self, session: &mut SessionLog, line: &Line) -> Result<(), CliError> {
        // Without its end, so that what is missing is missing in this line.
        let bytes = line.bytes.trim_ascii_end();
        if bytes.is_empty() {
            return Ok(());
        }
        let value = json::parse(bytes, line.number)?;
        let record = match is_message(&value) {
            true => self.message(session, value)?,
            false => self.entry(session, value, &String::from_utf8_lossy(bytes))?,
        };
        if let Some(record) = record {
            self.tail = record.id().clone();
            self.known.push(record.id().clone());
            self.records.push(record);
        }
        Ok(())
    }

    /// The record for an entry; none when it is known that the session has it already.
    fn entry(
        &mut self,
        session: &mut SessionLog,
        value: Value,
        text: &str,
    ) -> Result<Option<Record>, CliError> {
        let entry = Entry::from_value(value)?;
        if self.careful {
            let key = session.key().clone();
            let view = session.view()?;
            if let Some(position) = view.position(&entry.id) {
                if *view.log()[position] != entry {
                    return Err(taken(key, entry.id));
                }
                self.known.push(entry.id);
                return Ok(None);
            }
        }
        self.unsure |= !self.careful;
        // The text itself, so that what we do not know of it stays.
        Ok(Some(Record::parse(text)?))
    }

    /// The record for a message; none when the session has the message already.
    fn message(
        &mut self,
        session: &mut SessionLog,
        value: Value,
    ) -> Result<Option<Record>, CliError> {
        let message = openai::read(value)?;
        self.doubtful |= self.unsure;
        if let Some(id) = message.id.as_deref().map(EntryId::from) {
            let key = session.key().clone();
            let view = session.view()?;
            let there = view.position(&id).map(|position| &view.log()[position]);
            let same = match (self.said.get(&id), there.map(|entry| &entry.payload)) {
                (Some(said), _) => Some(*said == message),
                (None, Some(Payload::Message { message: said })) => Some(*said == message),
                (None, Some(_)) => Some(false),
                (None, None) => None,
            };
            match same {
                Some(true) => {
                    self.known.push(id);
                    return Ok(None);
                }
                Some(false) => return Err(taken(key, id)),
                None => drop(self.said.insert(id, message.clone())),
            }
        }
        let entry = Entry::message(Some(&self.tail), &now(), message);
        Ok(Some(Record::try_from(&entry)?))
    }
}

fn taken(key: Key, id: EntryId) -> CliError {
    let stream = Stream::session(key);
    StoreError::IdTaken { stream, id }.into()
}

fn is_message(value: &Value) -> bool {
    value.get("role").is_some() && value.get("payload").is_none()
}

/// The error with the place of the line in it.
fn at(file: &Path, line: usize, error: CliError) -> CliError {
    let place = input::place(file);
    let number = format!("line {line}");
    let error = match error {
        CliError::Context { error, .. } | CliError::Store(StoreError::Context(error)) => error,
        CliError::Store(error @ (StoreError::IdTaken { .. } | StoreError::BadRecord { .. })) => {
            ContextError::invalid("", error.to_string(), error.hint())
        }
        other => return other,
    };
    let named = match &error {
        ContextError::InvalidInput { place, .. } => place.starts_with("line "),
        _ => true,
    };
    CliError::Context {
        place,
        error: if named { error } else { error.within(&number) },
    }
}
