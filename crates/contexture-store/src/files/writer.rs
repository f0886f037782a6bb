//! The one writer of a stream: checks, queues, writes and syncs.
//!
//! Appends that come while a sync is under way wait and go to disk together: the first of them that
//! wakes writes for all. A failure fails all that were queued, because each was checked against the
//! end that the one before it would have made.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use contexture::EntryId;

use super::behind::settle;
use super::ids::Ids;
use super::lines::{Lines, MORE, quick_id, record};
use super::lock::Lock;
use crate::disk::DiskFile;
use crate::{Durability, Expected, Notice, Record, StoreError, Stream};

pub struct Writer {
    stream: Stream,
    place: String,
    file: Box<dyn DiskFile>,
    durability: Durability,
    state: Mutex<State>,
    done: Condvar,
    /// Ours as long as the writer is there.
    _lock: Lock,
}

struct State {
    /// The end with everything that is queued.
    tail: Option<EntryId>,
    /// The end on disk.
    durable: u64,
    durable_tail: Option<EntryId>,
    queue: Vec<u8>,
    /// What becomes of the queue.
    round: Round,
    writing: bool,
    /// Read when it is first needed: who only appends to something new never needs it.
    ids: Option<Ids>,
    /// A failure could not be undone: the file is cut before it is written again.
    unsure: bool,
}

/// How long a line is at least, as a rule: so that the ids of a file are read once.
const USUAL: u64 = 200;

/// The outcome of writing a queue, once there is one.
type Round = Arc<OnceLock<Result<(), StoreError>>>;

impl Writer {
    /// Takes over a file that is ours: what an append that did not get through left is taken away.
    pub fn open(
        stream: &Stream,
        place: String,
        file: Box<dyn DiskFile>,
        lock: Lock,
        durability: Durability,
    ) -> Result<(Self, Option<Notice>), StoreError> {
        let failed = |error| StoreError::io(place.clone(), error);
        let (durable, tail, notice) = heal(stream, file.as_ref()).map_err(failed)?;
        let state = State {
            tail: tail.clone(),
            durable,
            durable_tail: tail,
            queue: Vec::new(),
            round: Round::default(),
            writing: false,
            ids: (durable == 0).then(|| Ids::for_about(0)),
            unsure: false,
        };
        let writer = Self {
            stream: stream.clone(),
            place,
            file,
            durability,
            state: Mutex::new(state),
            done: Condvar::new(),
            _lock: lock,
        };
        Ok((writer, notice))
    }

    /// Where what was acknowledged ends: nobody is shown more.
    pub fn durable(&self) -> u64 {
        self.lock().durable
    }

    /// The last record that was acknowledged.
    pub fn tail(&self) -> Option<EntryId> {
        self.lock().durable_tail.clone()
    }

    /// Whether the file is no longer as this writer left it.
    pub fn is_stale(&self) -> bool {
        let state = self.lock();
        if state.writing || !state.queue.is_empty() {
            return false;
        }
        match self.file.length() {
            // What a failure left behind is ours, and cut before anything is written again.
            Ok(len) if state.unsure => len < state.durable,
            Ok(len) => len != state.durable,
            Err(_) => true,
        }
    }

    /// See [`crate::Log::append`].
    pub fn append(
        &self,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<Option<EntryId>, StoreError> {
        let mut state = self.lock();
        let mut fresh;
        loop {
            (state, fresh) = self.fresh(state, records)?;
            let Some(first) = fresh.first().copied() else {
                return Ok(self.settled(state).durable_tail.clone());
            };
            let Expected::Tail(given) = expected else {
                break;
            };
            // What stands before it in this call and was there already is what it goes behind.
            let before = first.checked_sub(1).map(|known| records[known].id());
            let wanted = before.or(given);
            if wanted == state.tail.as_ref() {
                break;
            }
            // What is still under way may fail: only an end that stays is one to refuse with.
            if state.writing || !state.queue.is_empty() {
                state = self.settled(state);
                continue;
            }
            return Err(StoreError::WrongTail {
                stream: self.stream.clone(),
                expected: wanted.cloned(),
                actual: state.tail.clone(),
            });
        }
        for (n, &at) in fresh.iter().enumerate() {
            if n + 1 < fresh.len() {
                state.queue.push(MORE);
            }
            state.queue.extend_from_slice(records[at].text().as_bytes());
            state.queue.push(b'\n');
            state.tail = Some(records[at].id().clone());
            if let Some(ids) = &mut state.ids {
                ids.insert(records[at].id().as_str());
            }
        }
        let end = state.tail.clone();
        self.flush(state)?;
        Ok(end)
    }

    /// Waits until what is queued is on disk; writes it when nobody else does.
    fn flush<'s>(&'s self, mut state: MutexGuard<'s, State>) -> Result<(), StoreError> {
        let mine = Arc::clone(&state.round);
        loop {
            if let Some(outcome) = mine.get() {
                return outcome.clone();
            }
            if state.writing {
                state = self.wait(state);
                continue;
            }
            let bytes = std::mem::take(&mut state.queue);
            let round = std::mem::take(&mut state.round);
            let (from, tail) = (state.durable, state.tail.clone());
            let unsure = state.unsure;
            state.writing = true;
            drop(state);
            let cut = if unsure { self.cut(from) } else { Ok(()) };
            let written = cut.and_then(|()| self.write(&bytes, from));
            state = self.lock();
            state.writing = false;
            let outcome = match written {
                Ok(()) => {
                    state.unsure = false;
                    state.durable = from + bytes.len() as u64;
                    state.durable_tail = tail;
                    Ok(())
                }
                Err(error) => Err(self.fail(&mut state, error, from)),
            };
            // Nobody else sets it: each round has one that writes it.
            let _ = round.set(outcome);
            self.done.notify_all();
        }
    }

    fn write(&self, bytes: &[u8], from: u64) -> io::Result<()> {
        self.file.write_at(bytes, from)?;
        match self.durability {
            Durability::Sync => self.file.sync(),
            Durability::Os => Ok(()),
        }
    }

    /// Undoes what a failed round may have left, and fails all that was queued behind it.
    fn fail(&self, state: &mut State, error: io::Error, from: u64) -> StoreError {
        let error = StoreError::io(self.place.clone(), error);
        state.tail = state.durable_tail.clone();
        state.queue.clear();
        let _ = std::mem::take(&mut state.round).set(Err(error.clone()));
        // What was written of it must not be found. The next sync makes that durable, too.
        state.unsure = self.file.set_len(from).is_err();
        error
    }

    /// Takes away what a failure left that could not be undone then.
    fn cut(&self, from: u64) -> io::Result<()> {
        if self.file.length()? < from {
            return Err(io::Error::other("is shorter than what was acknowledged"));
        }
        self.file.set_len(from)
    }

    /// Waits until nothing is under way, whatever becomes of it.
    fn settled<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        while state.writing || !state.queue.is_empty() {
            if state.writing {
                state = self.wait(state);
            } else {
                // Those whose records these are hear of a failure.
                let _ = self.flush(state);
                state = self.lock();
            }
        }
        state
    }

    /// Which of the records the stream does not have yet, in order.
    fn fresh<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        records: &[Record],
    ) -> Result<(MutexGuard<'s, State>, Vec<usize>), StoreError> {
        while state.ids.as_ref().is_none_or(|ids| ids.grown().is_some()) {
            // What is being written is neither in the queue nor yet in the file.
            if state.writing {
                state = self.wait(state);
                continue;
            }
            let empty = state.ids.as_ref().and_then(Ids::grown);
            let empty = empty.unwrap_or_else(|| Ids::for_about(entries_in(state.durable)));
            state.ids = Some(self.all_ids(&state, empty)?);
        }
        let maybe = |ids: &Ids| {
            records
                .iter()
                .any(|record| ids.may_have(record.id().as_str()))
        };
        let mut known = HashMap::new();
        if state.ids.as_ref().is_some_and(maybe) {
            state = self.settled(state);
            known = self.look_up(&state, records)?;
        }
        let mut fresh = Vec::new();
        let mut seen: HashMap<&EntryId, &Record> = HashMap::new();
        for (at, record) in records.iter().enumerate() {
            let before = known.get(record.id()).map(String::as_str);
            match before.or_else(|| seen.get(record.id()).map(|r| r.text())) {
                Some(text) if record.says(text) => {}
                Some(_) => {
                    return Err(StoreError::IdTaken {
                        stream: self.stream.clone(),
                        id: record.id().clone(),
                    });
                }
                None => {
                    seen.insert(record.id(), record);
                    fresh.push(at);
                }
            }
        }
        Ok((state, fresh))
    }

    /// All ids of the file and of the queue.
    fn all_ids(&self, state: &State, mut ids: Ids) -> Result<Ids, StoreError> {
        self.each_line(state, |line| {
            if let Some(id) = quick_id(line) {
                ids.insert(&id);
            }
        })?;
        for line in state.queue.split(|&b| b == b'\n') {
            if let Some(id) = quick_id(line) {
                ids.insert(&id);
            }
        }
        Ok(ids)
    }

    /// The text of those records that the file has, by id.
    fn look_up(
        &self,
        state: &State,
        records: &[Record],
    ) -> Result<HashMap<EntryId, String>, StoreError> {
        let wanted: HashSet<&str> = records.iter().map(|r| r.id().as_str()).collect();
        let mut found = HashMap::new();
        self.each_line(state, |line| {
            if let Some(id) = quick_id(line)
                && wanted.contains(id.as_ref())
                // A damaged line is no record: who says it again is heard.
                && let Ok(record) = record(line)
            {
                found
                    .entry(record.id().clone())
                    .or_insert_with(|| record.text().to_owned());
            }
        })?;
        Ok(found)
    }

    fn each_line(&self, state: &State, mut visit: impl FnMut(&[u8])) -> Result<(), StoreError> {
        let failed = |error| StoreError::io(self.place.clone(), error);
        let mut lines = Lines::new(self.file.as_ref(), 0, state.durable);
        while let Some(line) = lines.next().map_err(failed)? {
            if !line.too_long {
                visit(line.bytes);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.done
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guess: one too large costs memory, one too small a second look.
fn entries_in(bytes: u64) -> usize {
    usize::try_from(bytes / USUAL).unwrap_or(usize::MAX / 64)
}

/// Takes away what was never acknowledged. Gives where the file ends now.
fn heal(
    stream: &Stream,
    file: &dyn DiskFile,
) -> io::Result<(u64, Option<EntryId>, Option<Notice>)> {
    let len = file.length()?;
    let mut settled = settle(file, len)?;
    let mut notice = None;
    if settled.end < len {
        file.set_len(settled.end)?;
        file.sync()?;
        let bytes = len - settled.end;
        notice = Some(Notice::Healed {
            stream: stream.clone(),
            bytes,
        });
    } else if settled.unbroken {
        file.write_at(b"\n", settled.end)?;
        file.sync()?;
        settled.end += 1;
    } else if len > 0 {
        // What we see may not be on disk yet: a process that was killed before it synced left it to
        // the system. What is built on it must find it after a power cut.
        file.sync()?;
    }
    Ok((settled.end, settled.tail, notice))
}
