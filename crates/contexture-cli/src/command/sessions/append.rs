use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use contexture::entry::SessionHeader;
use contexture::message::openai;
use contexture::{ContextError, Entry, EntryId, Payload, json};
use contexture_store::{Key, Record, SessionLog, StoreError, Stream};
use serde_json::{Map, Value};

use crate::error::CliError;
use crate::input::{self, Line};
use crate::store::Home;
use crate::time::now;

/// What comes in while a sync is under way goes out together with the next.
const MOST_LINES: usize = 1_024;
const MOST_BYTES: usize = 4 << 20;
/// How often to try again when others append to the same session.
const MOST_TRIES: usize = 100;

/// `ctx sessions append`.
pub fn append(home: &Home, key: &Key, file: &Path, json: bool) -> Result<(), CliError> {
    let incoming = lines_of(file);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut session = None;
    while let Ok(first) = incoming.recv() {
        let (lines, mut wrong) = gather(first, &incoming);
        let (ids, refused) = add(home, key, &mut session, file, &lines)?;
        tell(&mut out, &ids, json).map_err(|error| untold(&error, &ids))?;
        if let Some(error) = refused.or(wrong.take()) {
            return Err(error);
        }
    }
    Ok(())
}

fn tell(out: &mut impl Write, ids: &[EntryId], json: bool) -> io::Result<()> {
    for id in ids {
        match json {
            true => writeln!(out, "{}", serde_json::json!({ "id": id }))?,
            false => writeln!(out, "{id}")?,
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

/// The line that came, and those that came in the meantime; what went wrong behind them.
fn gather(
    first: Result<Line, CliError>,
    incoming: &Receiver<Result<Line, CliError>>,
) -> (Vec<Line>, Option<CliError>) {
    let mut lines = Vec::new();
    let mut bytes = 0;
    let mut next = Some(first);
    while let Some(line) = next {
        match line {
            Ok(line) => {
                bytes += line.bytes.len();
                lines.push(line);
            }
            Err(error) => return (lines, Some(error)),
        }
        let room = lines.len() < MOST_LINES && bytes < MOST_BYTES;
        next = if room { incoming.try_recv().ok() } else { None };
    }
    (lines, None)
}

/// Appends the lines up to the first that is wrong. When somebody else wrote in the meantime, they
/// go behind that.
fn add(
    home: &Home,
    key: &Key,
    session: &mut Option<SessionLog>,
    file: &Path,
    lines: &[Line],
) -> Result<(Vec<EntryId>, Option<CliError>), CliError> {
    for tries in 0..MOST_TRIES {
        let open = match session.take() {
            Some(open) => session.insert(open),
            None => session.insert(open_or_create(home, key)?),
        };
        let mut batch = Batch {
            tail: open.tail().clone(),
            records: Vec::new(),
            known: Vec::new(),
            // The end may be another one because entries of these lines are there already.
            look: tries > 0,
        };
        let mut wrong = None;
        for line in lines {
            if let Err(error) = batch.take(open, line) {
                wrong = Some(at(file, line.number, error));
                break;
            }
        }
        if batch.records.is_empty() {
            return Ok((batch.known, wrong));
        }
        match open.append(&batch.records) {
            Ok(()) => return Ok((batch.known, wrong)),
            Err(StoreError::WrongTail { .. } | StoreError::Exists { .. }) => *session = None,
            // What follows an entry that is there already has the id of what followed it then.
            Err(StoreError::IdTaken { .. }) if tries == 0 => *session = None,
            Err(error) => return Err(at(file, lines[0].number, error.into())),
        }
    }
    Err(StoreError::Held {
        stream: Stream::session(key.clone()),
        pid: None,
    }
    .into())
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
    /// The id for each line, also of one that was there already.
    known: Vec<EntryId>,
    /// Whether to look for each entry in the session, which costs reading it.
    look: bool,
}

impl Batch {
    fn take(&mut self, session: &mut SessionLog, line: &Line) -> Result<(), CliError> {
        let text = String::from_utf8_lossy(&line.bytes);
        if text.trim().is_empty() {
            return Ok(());
        }
        let value = json::parse(&line.bytes, line.number)?;
        let record = match is_message(&value) {
            true => match self.message(session, value)? {
                Some(record) => record,
                None => return Ok(()),
            },
            false => {
                let entry = Entry::from_value(value)?;
                if self.look && self.is_there(session, &entry)? {
                    return Ok(());
                }
                // The text itself, so that what we do not know of it stays.
                Record::parse(&text)?
            }
        };
        self.tail = record.id().clone();
        self.known.push(record.id().clone());
        self.records.push(record);
        Ok(())
    }

    /// Whether the session has the entry already. What follows it here goes behind the session's end,
    /// not behind the entry.
    fn is_there(&mut self, session: &mut SessionLog, entry: &Entry) -> Result<bool, CliError> {
        let view = session.view()?;
        let there = view.position(&entry.id);
        let there = there.is_some_and(|position| *view.log()[position] == *entry);
        if there {
            self.known.push(entry.id.clone());
        }
        Ok(there)
    }

    /// The record for a message; none when the session has the message already.
    fn message(
        &mut self,
        session: &mut SessionLog,
        value: Value,
    ) -> Result<Option<Record>, CliError> {
        let message = openai::read(value)?;
        if let Some(id) = message.id.as_deref().map(EntryId::from) {
            let key = session.key().clone();
            let view = session.view()?;
            if let Some(position) = view.position(&id) {
                if view.log()[position].payload == (Payload::Message { message }) {
                    self.known.push(id);
                    return Ok(None);
                }
                return Err(StoreError::IdTaken {
                    stream: Stream::session(key),
                    id,
                }
                .into());
            }
        }
        let entry = Entry::message(Some(&self.tail), &now(), message);
        Ok(Some(Record::try_from(&entry)?))
    }
}

fn is_message(value: &Value) -> bool {
    value.get("role").is_some() && value.get("payload").is_none()
}

fn at(file: &Path, line: usize, error: CliError) -> CliError {
    let place = input::place(file);
    let number = format!("line {line}");
    match error {
        CliError::Context { error, .. } | CliError::Store(StoreError::Context(error)) => {
            let named = match &error {
                ContextError::InvalidInput { place, .. } => place.starts_with("line "),
                _ => true,
            };
            CliError::Context {
                place,
                error: if named { error } else { error.within(&number) },
            }
        }
        other => other,
    }
}

/// Reads lines in a thread of its own, so that reading and syncing overlap.
fn lines_of(file: &Path) -> Receiver<Result<Line, CliError>> {
    let (sender, receiver) = sync_channel(MOST_LINES);
    let file = file.to_owned();
    std::thread::spawn(move || {
        input::lines(&file, |line| sender.send(line).is_ok());
    });
    receiver
}
