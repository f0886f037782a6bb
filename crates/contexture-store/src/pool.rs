//! What happened to a pool (spec 003), event by event.

use std::sync::Arc;

use contexture::pool::{Pool, PoolEvent};
use contexture::{ContextError, EntryId};
use serde_json::Value;

use crate::derive::derived;
use crate::{Expected, From, Key, Kind, Log, Record, StoreError, Stream};

/// A pool that is kept in a log.
#[derive(Clone)]
pub struct PoolLog {
    log: Arc<dyn Log>,
    stream: Stream,
}

/// A pool as its log has it.
#[derive(Debug, Clone)]
pub struct LoadedPool {
    /// The fold of its events.
    pub pool: Pool,
    /// The last event.
    pub tail: Option<EntryId>,
    /// What was left aside: no event, or one that does not fit what came before.
    pub oddities: Vec<String>,
}

/// How often a change is decided anew because somebody else was first.
const TRIES: usize = 64;

impl PoolLog {
    /// The pool of this name.
    pub fn new(log: Arc<dyn Log>, key: Key) -> Self {
        Self {
            log,
            stream: Stream::new(Kind::Pool, key),
        }
    }

    /// The pool as it is now.
    pub fn load(&self) -> Result<LoadedPool, StoreError> {
        let mut loaded = LoadedPool {
            pool: Pool::default(),
            tail: None,
            oddities: Vec::new(),
        };
        self.follow(&mut loaded)?;
        Ok(loaded)
    }

    /// Takes in what happened since it was loaded.
    pub fn follow(&self, loaded: &mut LoadedPool) -> Result<(), StoreError> {
        let tail = loaded.tail.clone();
        let from = tail.as_ref().map_or(From::Start, From::After);
        for record in self.log.read(&self.stream, from)? {
            let record = record?;
            let fits = event(&record).and_then(|event| Ok(loaded.pool.apply(&event)?));
            if let Err(error) = fits {
                loaded.oddities.push(format!("{}: {error}", record.id()));
            }
            loaded.tail = Some(record.id().clone());
        }
        Ok(())
    }

    /// Changes the pool: what `decide` wants to happen is logged, all or nothing. Where somebody else changed the
    /// pool in the meantime, it is decided anew on what is there now, so that nobody is taken twice.
    pub fn change<T, E: std::convert::From<StoreError>>(
        &self,
        loaded: &mut LoadedPool,
        mut decide: impl FnMut(&Pool) -> Result<(Vec<PoolEvent>, T), E>,
    ) -> Result<T, E> {
        for _ in 0..TRIES {
            self.follow(loaded)?;
            let (events, out) = decide(&loaded.pool)?;
            match self.append(loaded, &events) {
                Ok(()) => return Ok(out),
                Err(error) => {
                    // What was applied did not happen.
                    *loaded = self.load()?;
                    if !matches!(error, StoreError::WrongTail { .. }) {
                        return Err(error.into());
                    }
                }
            }
        }
        let (stream, pid) = (self.stream.clone(), None);
        Err(StoreError::Held { stream, pid }.into())
    }

    fn append(&self, loaded: &mut LoadedPool, events: &[PoolEvent]) -> Result<(), StoreError> {
        let mut before = loaded.tail.clone();
        let mut records = Vec::with_capacity(events.len());
        for event in events {
            let applied = loaded.pool.apply(event);
            applied.map_err(Into::<ContextError>::into)?;
            let record = derived(before.as_ref(), event)?;
            before = Some(record.id().clone());
            records.push(record);
        }
        if !records.is_empty() {
            let expected = Expected::Tail(loaded.tail.as_ref());
            loaded.tail = self.log.append(&self.stream, expected, &records)?;
        }
        Ok(())
    }
}

/// The event that a record is: all but the record's own id.
fn event(record: &Record) -> Result<PoolEvent, ContextError> {
    let mut value = contexture::json::parse(record.text().as_bytes(), 1)?;
    if let Value::Object(map) = &mut value {
        map.shift_remove("id");
    }
    PoolEvent::from_value(value)
}
