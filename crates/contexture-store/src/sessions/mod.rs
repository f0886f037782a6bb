//! Sessions over a log: opened, continued, forked, removed.

mod forks;
mod session_log;

use std::sync::Arc;

use contexture::entry::{SessionHeader, VERSION};
use contexture::text::nearest;
use contexture::{Entry, EntryId, Payload, View};

pub use self::forks::Fork;
use self::forks::{Part, fork_in, within};
pub use self::session_log::SessionLog;
use crate::sieve::{Judged, Oddity, Sieve, is_newer};
use crate::{
    Expected, From, Key, Kind, Log, Record, Records, StoreError, Stream, StreamInfo, check_own,
};

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
            view.push_unfolded(entry)?;
        }
        match self.log.replace(&session.stream, Expected::EMPTY, &records) {
            Err(StoreError::WrongTail { stream, .. }) => Err(StoreError::Exists { stream }),
            other => other.map(|()| session),
        }
    }

    /// Refuses a session that somebody else began, or that was forked from such a one.
    pub fn check_own(&self, key: &Key) -> Result<(), StoreError> {
        let chain = match self.chain(key) {
            Err(StoreError::NoStream { .. }) => return Ok(()),
            chain => chain?,
        };
        chain
            .into_iter()
            .try_for_each(|(owner, _)| check_own(self.log.as_ref(), &Stream::session(owner)))
    }

    /// A session, to be continued: one of the user's own. Costs what its first and last line cost.
    pub fn open(&self, key: &Key) -> Result<SessionLog, StoreError> {
        let stream = Stream::session(key.clone());
        let first = self.log.read(&stream, From::Start)?.next().transpose()?;
        let (Some(first), Some(tail)) = (first, self.log.tail(&stream)?) else {
            return Err(self.no_session(key));
        };
        // A log of a newer version says so here.
        let header = first.entry()?;
        check_own(self.log.as_ref(), &stream)?;
        if fork_in(&header)?.is_some() {
            self.check_own(key)?;
        }
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
