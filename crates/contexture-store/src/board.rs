//! What happened to a pool and its tasks (spec 003), event by event.

use std::sync::Arc;

use contexture::task::{Board, BoardEvent};
use contexture::{ContextError, EntryId};
use serde_json::Value;

use crate::derive::derived;
use crate::{Expected, From, Key, Kind, Log, Record, StoreError, Stream};

/// A board that is kept in a log.
#[derive(Clone)]
pub struct BoardLog {
    log: Arc<dyn Log>,
    stream: Stream,
}

/// A board as its log has it.
#[derive(Debug, Clone, Default)]
pub struct LoadedBoard {
    /// The fold of its events.
    pub board: Board,
    /// The last event.
    pub tail: Option<EntryId>,
    /// What was left aside: no event, or one that does not fit what came before.
    pub oddities: Vec<String>,
}

/// How often a change is decided anew because somebody else was first.
const TRIES: usize = 64;

impl BoardLog {
    /// The board of this name.
    pub fn new(log: Arc<dyn Log>, key: Key) -> Self {
        Self {
            log,
            stream: Stream::new(Kind::Pool, key),
        }
    }

    /// The board as it is now.
    pub fn load(&self) -> Result<LoadedBoard, StoreError> {
        let mut loaded = LoadedBoard::default();
        self.follow(&mut loaded)?;
        Ok(loaded)
    }

    /// Takes in what happened since it was loaded.
    pub fn follow(&self, loaded: &mut LoadedBoard) -> Result<(), StoreError> {
        let tail = loaded.tail.clone();
        // A whole file is read to find what stands behind an entry.
        if tail.is_some() && self.log.tail(&self.stream)? == tail {
            return Ok(());
        }
        let from = tail.as_ref().map_or(From::Start, From::After);
        for record in self.log.read(&self.stream, from)? {
            let record = record?;
            let fits = event(&record).and_then(|event| Ok(loaded.board.follow(&event)?));
            if let Err(error) = fits {
                loaded.oddities.push(format!("{}: {error}", record.id()));
            }
            loaded.tail = Some(record.id().clone());
        }
        Ok(())
    }

    /// Changes the board: what `decide` has happen to it is logged, all or nothing, and gives the events. Where
    /// somebody else changed the board in the meantime, it is decided anew on what is there now, so that nobody is
    /// taken twice.
    pub fn change<T, E: std::convert::From<StoreError>>(
        &self,
        loaded: &mut LoadedBoard,
        mut decide: impl FnMut(&mut Board) -> Result<T, E>,
    ) -> Result<(T, Vec<BoardEvent>), E> {
        for _ in 0..TRIES {
            self.follow(loaded)?;
            let decided = decide(&mut loaded.board);
            let news = loaded.board.take_news();
            let failed = match decided {
                Ok(out) => match self.append(loaded, &news) {
                    Ok(()) => return Ok((out, news)),
                    Err(StoreError::WrongTail { .. }) => None,
                    Err(error) => Some(error.into()),
                },
                Err(error) if news.is_empty() => return Err(error),
                Err(error) => Some(error),
            };
            // What was decided did not happen. Where the log is away too, the next change reads it.
            *loaded = LoadedBoard::default();
            if let Some(error) = failed {
                return Err(error);
            }
        }
        let (stream, pid) = (self.stream.clone(), None);
        Err(StoreError::Held { stream, pid }.into())
    }

    fn append(&self, loaded: &mut LoadedBoard, events: &[BoardEvent]) -> Result<(), StoreError> {
        let mut before = loaded.tail.clone();
        let mut records = Vec::with_capacity(events.len());
        for event in events {
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
fn event(record: &Record) -> Result<BoardEvent, ContextError> {
    let mut value = contexture::json::parse(record.text().as_bytes(), 1)?;
    if let Value::Object(map) = &mut value {
        map.shift_remove("id");
    }
    BoardEvent::from_value(value)
}
