//! Streams as JSONL files: nothing to install, readable with `less`.
//!
//! ```text
//! .contexture/sessions/<key>/log.jsonl
//! .contexture/chats/<key>/history.jsonl
//! .contexture/memory/agent-context/<key>.jsonl
//! ```

pub(crate) mod behind;
mod ids;
pub(crate) mod lines;
mod lock;
mod paths;
mod records;
mod slots;
mod writer;

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLockWriteGuard};
use std::time::Duration;

use contexture::EntryId;

use self::behind::settle;
use self::lines::{Lines, quick_id};
pub(crate) use self::lock::Lock;
pub(crate) use self::paths::{folder, path};
use self::paths::{home, lock_path, stream_of};
use self::records::FileRecords;
use self::slots::{Slot, Slots};
use self::writer::Writer;
use crate::disk::{Create, Disk, DiskFile, RealDisk};
use crate::log::{From, Log, Records};
use crate::{Expected, Kind, Listener, Notice, Record, StoreError, Stream, StreamInfo};

/// When an append is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When it would survive a power cut.
    #[default]
    Sync,
    /// When the operating system has it: it survives the process, not the machine.
    Os,
}

/// How a folder of streams is used.
#[derive(Clone)]
pub struct FileOptions {
    /// When an append is acknowledged.
    pub durability: Durability,
    /// How long to wait for another process that writes to the same stream.
    pub patience: Duration,
    /// Who hears of what was healed or skipped.
    pub listener: Listener,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            patience: Duration::ZERO,
            listener: Arc::new(|_| {}),
        }
    }
}

/// A folder of streams.
pub struct FileLog {
    disk: Arc<dyn Disk>,
    options: FileOptions,
    slots: Slots,
    /// Bad lines that were reported: once is enough.
    reported: Mutex<HashSet<(Stream, u64)>>,
}

/// A file, and where what may be shown of it ends.
type Opened = (Box<dyn DiskFile>, u64);

/// How many bad lines are reported at most.
const MOST_REPORTED: usize = 1_000;
/// How much is read of a file for its first record.
const FIRST_BLOCK: usize = 4 << 10;
/// How often a stream is opened that others keep removing.
const MOST_TRIES: usize = 20;

impl FileLog {
    /// The streams in `folder`, which need not exist yet.
    pub fn new(folder: impl AsRef<Path>, options: FileOptions) -> Self {
        Self::on(Arc::new(RealDisk::new(folder.as_ref())), options)
    }

    /// The streams on a disk.
    pub fn on(disk: Arc<dyn Disk>, options: FileOptions) -> Self {
        Self {
            disk,
            options,
            slots: Slots::default(),
            reported: Mutex::default(),
        }
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// Lets go of a stream, so that others may write to it.
    pub fn release(&self, stream: &Stream) {
        if let Some(slot) = self.slots.known(stream) {
            *slot.alone() = None;
        }
    }

    /// Has a stream alone, in this process and among all, without looking at it.
    pub(crate) fn alone<T>(
        &self,
        stream: &Stream,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let slot = self.slots.of(stream);
        let mut place = slot.alone();
        // Its lock is ours, and taken anew.
        *place = None;
        let lock = lock_path(&path(stream));
        let _lock = Lock::take(self.disk(), &lock, stream, self.options.patience)?;
        work()
    }

    /// The slot with its writer in it, for the caller alone. The stream is taken for this process,
    /// and what an append that was cut off left in it is healed.
    fn opened<'s>(
        &self,
        stream: &Stream,
        slot: &'s Slot,
    ) -> Result<RwLockWriteGuard<'s, Option<Writer>>, StoreError> {
        let mut place = slot.alone();
        if place.as_ref().is_none_or(Writer::is_stale) {
            // Somebody may have removed or changed the file without asking: it is opened as it is,
            // once the lock on it is let go.
            *place = None;
            *place = Some(self.open_writer(stream)?);
        }
        Ok(place)
    }

    /// Opens a stream's file. Somebody who removes the stream at the same time may take away the
    /// folder that was just made: then again.
    fn open_writer(&self, stream: &Stream) -> Result<Writer, StoreError> {
        for _ in 0..MOST_TRIES {
            match self.try_open_writer(stream) {
                Err(StoreError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
                other => return other,
            }
        }
        self.try_open_writer(stream)
    }

    fn try_open_writer(&self, stream: &Stream) -> Result<Writer, StoreError> {
        let path = path(stream);
        let failed = |error| self.failed(&path, error);
        let mut folder = String::new();
        self.disk.make_folder("").map_err(failed)?;
        let names: Vec<&str> = path.split('/').collect();
        for name in &names[..names.len() - 1] {
            let inside = if folder.is_empty() {
                (*name).to_owned()
            } else {
                format!("{folder}/{name}")
            };
            self.disk
                .make_folder(&inside)
                .map_err(|error| self.failed(&inside, error))?;
            self.sync_folder(&folder).map_err(failed)?;
            folder = inside;
        }
        let lock = lock_path(&path);
        let lock = Lock::take(self.disk(), &lock, stream, self.options.patience)?;
        let file = self.disk.open(&path, Create::Yes).map_err(failed)?;
        // Also when it was there before: whoever made it may have been killed before this.
        self.sync_folder(&folder).map_err(failed)?;
        let place = self.disk.place(&path);
        let (writer, notice) = Writer::open(stream, place, file, lock, self.options.durability)?;
        if let Some(notice) = notice {
            (self.options.listener)(&notice);
        }
        Ok(writer)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        match self.options.durability {
            Durability::Sync => self.disk.sync_folder(folder),
            Durability::Os => Ok(()),
        }
    }

    fn open_to_read(&self, stream: &Stream) -> Result<Option<Opened>, StoreError> {
        let path = path(stream);
        let slot = self.slots.known(stream);
        // Held until the end is known: the file that is opened is the writer's.
        let held = slot.as_ref().and_then(|slot| slot.try_shared());
        let writer = held.as_ref().and_then(|held| held.as_ref());
        let file = match self.disk.open(&path, Create::No) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| self.failed(&path, error))?,
        };
        let end = match writer {
            Some(writer) if !writer.is_stale() => writer.durable(),
            _ => {
                let settled = file.length().and_then(|len| settle(file.as_ref(), len));
                settled
                    .map_err(|error| self.unread(stream, &path, error))?
                    .end
            }
        };
        Ok(Some((file, end)))
    }

    /// The first record, if there is one. What is damaged is passed over without a word.
    pub(crate) fn first(&self, stream: &Stream) -> Result<Option<Record>, StoreError> {
        let Some((file, end)) = self.open_to_read(stream)? else {
            return Ok(None);
        };
        // As a rule it is a header, and short.
        let mut lines = Lines::new(file, 0, end).in_blocks(FIRST_BLOCK);
        let failed = |error| self.failed(&path(stream), error);
        while let Some(line) = lines.next().map_err(failed)? {
            if let Ok(record) = line.record() {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn report(&self, stream: &Stream, offset: u64, what: String) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        // A file of nothing else must not cost what it weighs.
        if reported.len() < MOST_REPORTED && reported.insert((stream.clone(), offset)) {
            drop(reported);
            (self.options.listener)(&Notice::BadLine {
                stream: stream.clone(),
                offset,
                what,
            });
        }
    }

    fn vanished(&self, stream: &Stream) -> StoreError {
        let place = self.disk.place(&path(stream));
        StoreError::io(place, io::ErrorKind::NotFound.into())
    }

    /// What stands in the place of a stream and is none, such as a link.
    pub(crate) fn strangers(
        &self,
        kinds: &[Kind],
    ) -> Result<Vec<(Stream, StoreError)>, StoreError> {
        let mut out = Vec::new();
        for &kind in kinds {
            let (folder, _) = home(kind);
            let failed = |error| self.failed(folder, error);
            for name in self.disk.links(folder).map_err(failed)? {
                if let Some(stream) = stream_of(kind, &name) {
                    let error = rustix::io::Errno::LOOP.into();
                    out.push((stream, self.failed(&format!("{folder}/{name}"), error)));
                }
            }
            for name in self.disk.names(folder).map_err(failed)? {
                let Some(stream) = stream_of(kind, &name) else {
                    continue;
                };
                let path = path(&stream);
                match self.disk.stat(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        out.push((stream, self.failed(&path, error)));
                    }
                    _ => {}
                }
            }
        }
        Ok(out)
    }

    /// Why a file that was opened could not be read: one without a name was replaced since.
    fn unread(&self, stream: &Stream, path: &str, error: io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::NotFound => StoreError::Replaced {
                stream: stream.clone(),
            },
            _ => self.failed(path, error),
        }
    }

    fn failed(&self, path: &str, error: io::Error) -> StoreError {
        StoreError::io(self.disk.place(path), error)
    }
}

impl Log for FileLog {
    fn append(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<Option<EntryId>, StoreError> {
        let slot = self.slots.of(stream);
        let mut shared = slot.shared();
        if shared.as_ref().is_none_or(Writer::is_stale) {
            drop(shared);
            shared = RwLockWriteGuard::downgrade(self.opened(stream, &slot)?);
        }
        match shared.as_ref() {
            Some(writer) => writer.append(expected, records),
            None => Err(self.vanished(stream)),
        }
    }

    fn replace(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<(), StoreError> {
        let slot = self.slots.of(stream);
        let mut place = self.opened(stream, &slot)?;
        let actual = place.as_ref().and_then(Writer::tail);
        if let Expected::Tail(wanted) = expected
            && wanted != actual.as_ref()
        {
            let expected = wanted.cloned();
            return Err(StoreError::WrongTail {
                stream: stream.clone(),
                expected,
                actual,
            });
        }
        // No marks: the file takes the other's place whole.
        let mut bytes = Vec::new();
        for record in records {
            bytes.extend_from_slice(record.text().as_bytes());
            bytes.push(b'\n');
        }
        let done = self.overwrite(&path(stream), &bytes);
        // It holds the file that was there before; also when only making the new name durable failed.
        *place = None;
        done
    }

    fn read(&self, stream: &Stream, from: From<'_>) -> Result<Records<'_>, StoreError> {
        let opened = match self.open_to_read(stream) {
            // Once more: what it was replaced by is there now.
            Err(StoreError::Replaced { .. }) => self.open_to_read(stream)?,
            opened => opened?,
        };
        let Some((file, end)) = opened else {
            return match from {
                From::Start => Ok(Box::new(std::iter::empty())),
                From::After(id) => Err(no_entry(stream, id)),
            };
        };
        let mut lines = Lines::new(file, 0, end);
        if let From::After(id) = from {
            loop {
                let line = lines
                    .next()
                    .map_err(|error| self.failed(&path(stream), error))?;
                let Some(line) = line else {
                    return Err(no_entry(stream, id));
                };
                if quick_id(line.bytes).is_some_and(|found| found == id.as_str()) {
                    break;
                }
            }
        }
        Ok(Box::new(FileRecords {
            log: self,
            stream: stream.clone(),
            lines,
        }))
    }

    fn tail(&self, stream: &Stream) -> Result<Option<EntryId>, StoreError> {
        let slot = self.slots.known(stream);
        let held = slot.as_ref().and_then(|slot| slot.try_shared());
        if let Some(writer) = held.as_ref().and_then(|held| held.as_ref())
            && !writer.is_stale()
        {
            return Ok(writer.tail());
        }
        let path = path(stream);
        match self.disk.open(&path, Create::No) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(&path, error)),
            Ok(file) => {
                let settled = file.length().and_then(|len| settle(file.as_ref(), len));
                let settled = settled.map_err(|error| self.unread(stream, &path, error));
                match settled {
                    // What it was replaced by is there now.
                    Err(StoreError::Replaced { .. }) => self.tail(stream),
                    settled => Ok(settled?.tail),
                }
            }
        }
    }

    fn list(&self, kind: Kind) -> Result<Vec<StreamInfo>, StoreError> {
        let (folder, _) = home(kind);
        let mut out = Vec::new();
        for name in self
            .disk
            .names(folder)
            .map_err(|error| self.failed(folder, error))?
        {
            let Some(stream) = stream_of(kind, &name) else {
                continue;
            };
            // A folder without a log, or a link in its place, is no stream; nor is one that nothing
            // was ever appended to.
            if let Ok(stat) = self.disk.stat(&path(&stream))
                && stat.len > 0
            {
                out.push(StreamInfo {
                    stream,
                    bytes: stat.len,
                    updated: stat.modified,
                });
            }
        }
        out.sort_by(|a, b| a.stream.key.cmp(&b.stream.key));
        Ok(out)
    }

    fn remove(&self, stream: &Stream) -> Result<bool, StoreError> {
        let path = path(stream);
        match self.disk.open(&path, Create::No) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => drop(other.map_err(|error| self.failed(&path, error))?),
        }
        // Nobody else may be writing to it.
        let slot = self.slots.of(stream);
        let mut place = self.opened(stream, &slot)?;
        let failed = |error| self.failed(&path, error);
        self.disk.remove(&path).map_err(failed)?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let synced = self.sync_folder(folder);
        // The lock loses its name while it is held: who waits for it sees that, and makes another.
        let _ = self.disk.remove(&lock_path(&path));
        *place = None;
        synced.map_err(failed)?;
        // What is left is ours alone, and no stream: failing to tidy up changes nothing.
        if home(stream.kind).1.starts_with('/') {
            let _ = self.disk.remove(folder);
        }
        Ok(true)
    }

    fn is_own(&self, _: &Stream) -> Result<bool, StoreError> {
        Ok(true)
    }
}

impl FileLog {
    /// Puts these bytes in the place of a file, whole or not at all.
    pub(crate) fn overwrite(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let failed = |error| self.failed(path, error);
        let beside = format!("{path}.new");
        match self.disk.remove(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let file = self.disk.open(&beside, Create::New).map_err(failed)?;
        let written = file
            .write_at(bytes, 0)
            .and_then(|()| match self.options.durability {
                Durability::Sync => file.sync(),
                Durability::Os => Ok(()),
            });
        if let Err(error) = written.and_then(|()| self.disk.rename(&beside, path)) {
            let _ = self.disk.remove(&beside);
            return Err(failed(error));
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.sync_folder(folder).map_err(failed)
    }
}

fn no_entry(stream: &Stream, id: &EntryId) -> StoreError {
    StoreError::NoEntry {
        stream: stream.clone(),
        id: id.to_string(),
        candidates: Vec::new(),
    }
}
