//! The writers that are open, at most one a stream.

use std::collections::HashMap;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use super::writer::Writer;
use crate::Stream;

/// Each open writer holds two files, and a process may not have many.
const MOST_WRITERS: usize = 64;

/// The places of the writers, each with when it was last used.
#[derive(Default)]
pub struct Slots {
    all: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    slots: HashMap<Stream, (Arc<Slot>, u64)>,
    clock: u64,
}

/// Where the writer of a stream is, if it is open.
///
/// Who appends shares it. Who opens the writer, puts another file in the place of its own or removes
/// it has it alone: nothing is ever written to a file that is no longer the stream's.
#[derive(Default)]
pub struct Slot(RwLock<Option<Writer>>);

impl Slots {
    /// The slot of a stream that is about to be written.
    pub fn of(&self, stream: &Stream) -> Arc<Slot> {
        let mut all = self.lock();
        all.clock += 1;
        let now = all.clock;
        if let Some((slot, used)) = all.slots.get_mut(stream) {
            *used = now;
            return Arc::clone(slot);
        }
        if all.slots.len() >= MOST_WRITERS {
            // Slots are only handed out under this lock, so one that is ours alone stays so.
            let idle = all.slots.iter();
            let idle = idle.filter(|(_, (slot, _))| Arc::strong_count(slot) == 1);
            let oldest = idle.min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(stream, _)| stream.clone()) {
                all.slots.remove(&oldest);
            }
        }
        let slot = Arc::new(Slot::default());
        all.slots.insert(stream.clone(), (Arc::clone(&slot), now));
        slot
    }

    /// The slot of a stream, if there is one.
    pub fn known(&self, stream: &Stream) -> Option<Arc<Slot>> {
        let all = self.lock();
        all.slots.get(stream).map(|(slot, _)| Arc::clone(slot))
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    pub fn shared(&self) -> RwLockReadGuard<'_, Option<Writer>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Not when somebody has it alone: then nothing is being appended, and the file itself tells.
    pub fn try_shared(&self) -> Option<RwLockReadGuard<'_, Option<Writer>>> {
        match self.0.try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub fn alone(&self) -> RwLockWriteGuard<'_, Option<Writer>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
