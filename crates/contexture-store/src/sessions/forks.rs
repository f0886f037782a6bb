//! Forks: a session that begins as another does, by naming it.

use contexture::entry::{SessionHeader, VERSION};
use contexture::{ContextError, Entry, EntryId, Payload, View};
use serde_json::{Map, Value, json};

use super::{SessionLog, Sessions};
use crate::sieve::is_newer;
use crate::{From, Key, Records, StoreError, Stream};

/// From where a session was forked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The session.
    pub session: Key,
    /// Its last entry that counts.
    pub entry_id: EntryId,
}

/// A stream, and its last entry that counts where that is not the end.
pub(super) type Part = (Key, Option<EntryId>);

/// A fork of a fork of a fork; more than this is a mistake or an attack.
const MOST_FORKS: usize = 64;

impl Sessions {
    /// A session that begins as another does, up to and with the entry `at`. Nothing is copied: the
    /// new log names the old one.
    pub fn fork(
        &self,
        from: &Key,
        at: &EntryId,
        to: &Key,
        now: &str,
    ) -> Result<SessionLog, StoreError> {
        self.check_own(from)?;
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

    pub(super) fn forks_of(&self, key: &Key) -> Result<Vec<String>, StoreError> {
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
    pub(super) fn chain(&self, key: &Key) -> Result<Vec<Part>, StoreError> {
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
    pub(super) fn part(
        &self,
        owner: &Key,
        upto: Option<EntryId>,
    ) -> Result<Records<'_>, StoreError> {
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

pub(super) fn fork_in(entry: &Entry) -> Result<Option<Fork>, StoreError> {
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

pub(super) fn within(stream: &Stream, error: StoreError) -> StoreError {
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
