//! Sessions over a log: opened, continued, forked, removed.

use std::sync::Arc;

use contexture::entry::{SessionHeader, VERSION};
use contexture::text::nearest;
use contexture::{ContextError, Entry, EntryId, Payload, View};
use serde_json::{Map, Value, json};

use crate::sieve::{Judged, Oddity, Sieve, is_newer};
use crate::{Expected, From, Key, Kind, Log, Record, Records, StoreError, Stream, StreamInfo};

/// The sessions of a log.
#[derive(Clone)]
pub struct Sessions {
    log: Arc<dyn Log>,
}

/// What a session's log folds to, and what of it could not be read.
pub struct Loaded {
    /// The log with its fold; what was forked comes with what it was forked from.
    pub view: View,
    /// Whose entries begin at which position of the view: the session's own last.
    pub owners: Vec<(Key, usize)>,
    /// What is not as it should be: entries of other sessions or that make no sense here, which are
    /// left aside, and entries whose parent is lost. `ctx doctor` repairs it.
    pub oddities: Vec<Oddity>,
}

/// From where a session was forked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The session.
    pub session: Key,
    /// Its last entry that counts.
    pub entry_id: EntryId,
}

/// A stream, and its last entry that counts where that is not the end.
type Part = (Key, Option<EntryId>);

/// A fork of a fork of a fork; more than this is a mistake or an attack.
const MOST_FORKS: usize = 64;

impl Sessions {
    /// The sessions of this log.
    pub fn new(log: Arc<dyn Log>) -> Self {
        Self { log }
    }

    /// The log.
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.log
    }

    /// All of them, by key.
    pub fn list(&self) -> Result<Vec<StreamInfo>, StoreError> {
        self.log.list(Kind::Session)
    }

    /// Whether there is one of this name.
    pub fn exists(&self, key: &Key) -> Result<bool, StoreError> {
        Ok(self.log.tail(&Stream::session(key.clone()))?.is_some())
    }

    /// Begins a session. Its header is written together with what is appended first.
    pub fn create(
        &self,
        key: &Key,
        header: SessionHeader,
        now: &str,
    ) -> Result<SessionLog, StoreError> {
        let header = SessionHeader {
            version: VERSION,
            chat_key: Some(key.as_str().to_owned()),
            ..header
        };
        if self.exists(key)? {
            return Err(StoreError::Exists {
                stream: Stream::session(key.clone()),
            });
        }
        self.begin(key, None, header, now)
    }

    /// Makes a session of these entries, whole or not at all. Each names its parent, so that one
    /// that got lost or strayed shows later.
    pub fn put(
        &self,
        key: &Key,
        header: SessionHeader,
        now: &str,
        entries: Vec<Entry>,
    ) -> Result<SessionLog, StoreError> {
        let mut session = self.create(key, header, now)?;
        let mut records: Vec<Record> = session.header.take().into_iter().collect();
        let mut view = View::default();
        for mut entry in entries {
            entry.parent_id.get_or_insert_with(|| session.tail.clone());
            session.tail = entry.id.clone();
            records.push(Record::try_from(&entry)?);
            view.push(entry)?;
        }
        match self.log.replace(&session.stream, Expected::EMPTY, &records) {
            Err(StoreError::WrongTail { stream, .. }) => Err(StoreError::Exists { stream }),
            other => other.map(|()| session),
        }
    }

    /// A session, to be continued. Costs what its first and last line cost.
    pub fn open(&self, key: &Key) -> Result<SessionLog, StoreError> {
        let stream = Stream::session(key.clone());
        let first = self.log.read(&stream, From::Start)?.next().transpose()?;
        let (Some(first), Some(tail)) = (first, self.log.tail(&stream)?) else {
            return Err(self.no_session(key));
        };
        // A log of a newer version says so here.
        first.entry()?;
        Ok(SessionLog {
            sessions: self.clone(),
            stream,
            tail,
            view: None,
            header: None,
        })
    }

    /// A session's log and what it comes to.
    pub fn load(&self, key: &Key) -> Result<Loaded, StoreError> {
        self.fold(self.chain(key)?)
    }

    /// What a fork begins with, before its own entries; nothing for a session that is none.
    pub(crate) fn ancestry(&self, key: &Key) -> Result<View, StoreError> {
        let mut chain = self.chain(key)?;
        chain.pop();
        Ok(self.fold(chain)?.view)
    }

    /// Whether a session begins with its header, which alone says from what it was forked.
    pub(crate) fn has_header(&self, key: &Key) -> bool {
        let records = self.log.read(&Stream::session(key.clone()), From::Start);
        let first = records.ok().and_then(|mut records| records.next()?.ok());
        first
            .and_then(|first| first.entry().ok())
            .is_some_and(|first| matches!(first.payload, Payload::SessionHeader(_)))
    }

    fn fold(&self, chain: Vec<Part>) -> Result<Loaded, StoreError> {
        let mut sieve = Sieve::default();
        let mut oddities = Vec::new();
        let mut judged = |judged: Judged| {
            if let Some(why) = judged.odd {
                oddities.push(Oddity {
                    id: judged.id,
                    why,
                    kept: judged.kept,
                });
            }
        };
        let mut owners = Vec::new();
        for (owner, upto) in chain {
            owners.push((owner.clone(), sieve.view.log().len()));
            for record in self.part(&owner, upto)? {
                let taken = sieve.take(&record?, &mut judged);
                taken.map_err(|error| within(&Stream::session(owner.clone()), error))?;
            }
            sieve.end(&mut judged);
        }
        Ok(Loaded {
            view: sieve.view,
            owners,
            oddities,
        })
    }

    /// The records of a session as they were written, with those that it was forked from. One of a
    /// newer program is an error: whoever reads on would take the log for what it is not.
    pub fn records(&self, key: &Key) -> Result<Records<'_>, StoreError> {
        let mut parts = Vec::new();
        for (owner, upto) in self.chain(key)? {
            let part = self.part(&owner, upto)?;
            let stream = Stream::session(owner);
            parts.push(part.map(move |record| {
                let record = record?;
                match record.entry() {
                    Err(error) if is_newer(&error) => Err(within(&stream, error)),
                    _ => Ok(record),
                }
            }));
        }
        Ok(Box::new(parts.into_iter().flatten()))
    }

    /// A session that begins as another does, up to and with the entry `at`. Nothing is copied: the
    /// new log names the old one.
    pub fn fork(
        &self,
        from: &Key,
        at: &EntryId,
        to: &Key,
        now: &str,
    ) -> Result<SessionLog, StoreError> {
        let loaded = self.load(from)?;
        let Some(position) = loaded.view.position(at) else {
            return Err(StoreError::NoEntry {
                stream: Stream::session(from.clone()),
                id: at.to_string(),
                candidates: Vec::new(),
            });
        };
        // What was forked before is named by who has it, so that chains stay short.
        let owned = loaded
            .owners
            .iter()
            .rev()
            .find(|(_, start)| *start <= position);
        let base = owned.map_or(from, |(owner, _)| owner);
        let extra = Map::from_iter([(
            "forkedFrom".to_owned(),
            json!({ "session": base.as_str(), "entryId": at.as_str() }),
        )]);
        let old = header_of(&loaded.view);
        let header = SessionHeader {
            version: VERSION,
            chat_key: Some(to.as_str().to_owned()),
            agent: old.and_then(|header| header.agent.clone()),
            cwd: old.and_then(|header| header.cwd.clone()),
            extra,
        };
        let mut fork = self.begin(to, Some(at), header, now)?;
        fork.append(&[])?;
        Ok(fork)
    }

    /// Removes a session, unless another was forked from it.
    pub fn remove(&self, key: &Key) -> Result<(), StoreError> {
        let stream = Stream::session(key.clone());
        let forks = self.forks_of(key)?;
        if !forks.is_empty() {
            return Err(StoreError::Forked { stream, forks });
        }
        match self.log.remove(&stream)? {
            true => Ok(()),
            false => Err(self.no_session(key)),
        }
    }

    /// From where a session was forked, if it was.
    pub fn fork_point(&self, key: &Key) -> Result<Option<Fork>, StoreError> {
        let first = self
            .log
            .read(&Stream::session(key.clone()), From::Start)?
            .next()
            .transpose()?;
        match first {
            Some(first) => fork_in(&first.entry()?),
            None => Ok(None),
        }
    }

    fn forks_of(&self, key: &Key) -> Result<Vec<String>, StoreError> {
        let mut forks = Vec::new();
        for info in self.list()? {
            // One that cannot be read is no reason to keep another.
            if let Ok(Some(fork)) = self.fork_point(&info.stream.key)
                && fork.session == *key
            {
                forks.push(info.stream.key.to_string());
            }
        }
        Ok(forks)
    }

    /// The session and those that it was forked from, oldest first, each with its last entry that
    /// counts; all of them for the session itself.
    fn chain(&self, key: &Key) -> Result<Vec<Part>, StoreError> {
        let mut chain: Vec<Part> = Vec::new();
        let mut next = Some((key.clone(), None));
        while let Some((owner, upto)) = next {
            let stream = Stream::session(owner.clone());
            if chain.len() > MOST_FORKS || chain.iter().any(|(known, _)| *known == owner) {
                return Err(bad_fork(
                    key,
                    "is forked from itself, or through too many others",
                ));
            }
            let first = self.log.read(&stream, From::Start)?.next().transpose()?;
            let first = match (first, chain.last()) {
                (Some(first), _) => first,
                (None, None) => return Err(self.no_session(key)),
                (None, Some((fork, _))) => {
                    return Err(bad_fork(
                        fork,
                        &format!("was forked from `{owner}`, which is gone"),
                    ));
                }
            };
            chain.push((owner, upto));
            next = match first.entry() {
                Ok(header) => fork_in(&header)?.map(|fork| (fork.session, Some(fork.entry_id))),
                Err(error) if is_newer(&error) => return Err(within(&stream, error)),
                // A damaged line is no header. It is reported where it is read.
                Err(_) => None,
            };
        }
        chain.reverse();
        Ok(chain)
    }

    /// The records of one stream, up to an entry that must be there.
    fn part(&self, owner: &Key, upto: Option<EntryId>) -> Result<Records<'_>, StoreError> {
        let records = self
            .log
            .read(&Stream::session(owner.clone()), From::Start)?;
        let Some(upto) = upto else {
            return Ok(records);
        };
        let mut found = false;
        let mut records = records;
        let owner = owner.clone();
        Ok(Box::new(std::iter::from_fn(move || {
            if found {
                return None;
            }
            match records.next() {
                Some(Ok(record)) => {
                    found = *record.id() == upto;
                    Some(Ok(record))
                }
                Some(Err(error)) => Some(Err(error)),
                None => {
                    found = true;
                    let what = format!("has no entry `{upto}`, at which it was forked");
                    Some(Err(bad_fork(&owner, &what)))
                }
            }
        })))
    }

    fn begin(
        &self,
        key: &Key,
        parent: Option<&EntryId>,
        header: SessionHeader,
        now: &str,
    ) -> Result<SessionLog, StoreError> {
        let entry = Entry::derived(parent, now, Payload::SessionHeader(header));
        Ok(SessionLog {
            sessions: self.clone(),
            stream: Stream::session(key.clone()),
            tail: entry.id.clone(),
            view: None,
            header: Some(Record::try_from(&entry)?),
        })
    }

    fn no_session(&self, key: &Key) -> StoreError {
        let names: Vec<String> = match self.list() {
            Ok(all) => all
                .into_iter()
                .map(|info| info.stream.key.to_string())
                .collect(),
            Err(_) => Vec::new(),
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        StoreError::NoStream {
            stream: Stream::session(key.clone()),
            nearest: nearest(key.as_str(), &names).map(str::to_owned),
        }
    }
}

/// A session that is being continued.
pub struct SessionLog {
    sessions: Sessions,
    stream: Stream,
    tail: EntryId,
    /// Folded only when an entry speaks of others, or somebody asks.
    view: Option<View>,
    /// The header of a session that is not written yet: it goes out with what comes first.
    header: Option<Record>,
}

impl SessionLog {
    /// Its name.
    pub fn key(&self) -> &Key {
        &self.stream.key
    }

    /// Its last entry.
    pub fn tail(&self) -> &EntryId {
        &self.tail
    }

    /// The log and its fold.
    pub fn view(&mut self) -> Result<&View, StoreError> {
        if self.view.is_none() {
            self.view = Some(match &self.header {
                Some(header) => View::fold([header.entry()?])?,
                None => self.sessions.load(&self.stream.key)?.view,
            });
        }
        Ok(self.view.get_or_insert_default())
    }

    /// Appends entries, all or none, once it is sure that they make sense in this log.
    pub fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let entries = records
            .iter()
            .map(Record::entry)
            .collect::<Result<Vec<_>, _>>()?;
        let mut last = self.tail.clone();
        for entry in &entries {
            if speaks_of_others(entry, &last) {
                self.view()?;
            }
            last = entry.id.clone();
        }
        let before = self.view.as_ref().map(|view| view.log().len());
        match self.push_all(entries).and_then(|()| self.write(records)) {
            Ok(tail) => {
                // Not the last of these, where some were there before.
                self.tail = tail.unwrap_or(last);
                Ok(())
            }
            Err(error) => {
                if let (Some(view), Some(before)) = (&mut self.view, before) {
                    view.truncate(before);
                }
                Err(error)
            }
        }
    }

    /// Gives where the log ends now.
    fn write(&mut self, records: &[Record]) -> Result<Option<EntryId>, StoreError> {
        let log = self.sessions.log();
        let Some(header) = &self.header else {
            return log.append(&self.stream, Expected::after(&self.tail), records);
        };
        let all: Vec<Record> = [header].into_iter().chain(records).cloned().collect();
        match log.append(&self.stream, Expected::EMPTY, &all) {
            Err(StoreError::WrongTail { stream, .. } | StoreError::IdTaken { stream, .. }) => {
                Err(StoreError::Exists { stream })
            }
            other => {
                let tail = other?;
                self.header = None;
                Ok(tail)
            }
        }
    }

    /// Appends one entry that follows the last, and gives its id.
    pub fn say(&mut self, now: &str, payload: Payload) -> Result<EntryId, StoreError> {
        let entry = Entry::derived(Some(&self.tail), now, payload);
        self.append(&[Record::try_from(&entry)?])?;
        Ok(entry.id)
    }

    fn push_all(&mut self, entries: Vec<Entry>) -> Result<(), StoreError> {
        if let Some(view) = &mut self.view {
            for entry in entries {
                view.push(entry)?;
            }
        }
        Ok(())
    }
}

/// The entry that a user means: by its id, or by the beginning of it.
pub fn resolve(view: &View, key: &Key, wanted: &str) -> Result<EntryId, StoreError> {
    let exact = EntryId::from(wanted);
    if view.position(&exact).is_some() {
        return Ok(exact);
    }
    let begins: Vec<&EntryId> = view
        .log()
        .iter()
        .map(|entry| &entry.id)
        .filter(|id| !wanted.is_empty() && id.as_str().starts_with(wanted))
        .collect();
    match begins[..] {
        [only] => Ok(only.clone()),
        _ => Err(StoreError::NoEntry {
            stream: Stream::session(key.clone()),
            id: wanted.chars().take(60).collect(),
            candidates: begins.iter().take(5).map(ToString::to_string).collect(),
        }),
    }
}

/// Whether the entry only makes sense where others are: it cannot be checked alone.
fn speaks_of_others(entry: &Entry, last: &EntryId) -> bool {
    let branches = entry
        .parent_id
        .as_ref()
        .is_some_and(|parent| parent != last);
    branches
        || matches!(
            entry.payload,
            Payload::Pin(_)
                | Payload::Unpin(_)
                | Payload::Redaction(_)
                | Payload::Revert(_)
                | Payload::CompactionSummary(_)
        )
}

fn header_of(view: &View) -> Option<&SessionHeader> {
    view.log()
        .iter()
        .rev()
        .find_map(|entry| match &entry.payload {
            Payload::SessionHeader(header) => Some(header),
            _ => None,
        })
}

fn fork_in(entry: &Entry) -> Result<Option<Fork>, StoreError> {
    let Payload::SessionHeader(header) = &entry.payload else {
        return Ok(None);
    };
    let Some(fork) = header.extra.get("forkedFrom") else {
        return Ok(None);
    };
    let text = |name: &str| fork.get(name).and_then(Value::as_str);
    match (text("session"), text("entryId")) {
        (Some(session), Some(id)) => Ok(Some(Fork {
            session: Key::new(session)?,
            entry_id: EntryId::from(id),
        })),
        _ => Err(StoreError::BadRecord {
            what: "`forkedFrom` needs `session` and `entryId`".to_owned(),
        }),
    }
}

fn within(stream: &Stream, error: StoreError) -> StoreError {
    match error {
        StoreError::Context(error) => StoreError::Context(error.within(&stream.to_string())),
        other => other,
    }
}

fn bad_fork(key: &Key, what: &str) -> StoreError {
    StoreError::Context(ContextError::invalid(
        Stream::session(key.clone()).to_string(),
        what,
        "`ctx doctor` says more",
    ))
}
