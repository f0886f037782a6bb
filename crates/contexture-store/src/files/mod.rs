//! Streams as JSONL files: nothing to install, readable with `less`.
//!
//! ```text
//! .contexture/sessions/<key>/log.jsonl
//! .contexture/chats/<key>/history.jsonl
//! .contexture/memory/agent-context/<key>.jsonl
//! ```

mod ids;
pub(crate) mod lines;
mod lock;
mod writer;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture::EntryId;

use self::lines::{Lines, quick_id, record, settle, trimmed};
pub(crate) use self::lock::Lock;
use self::writer::{Shared, Writer};
use crate::disk::{Create, Disk, DiskFile, RealDisk};
use crate::log::{From, Log, Records};
use crate::{Expected, Key, Kind, Listener, Notice, Record, StoreError, Stream, StreamInfo};

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
    writers: Mutex<Writers>,
    /// Bad lines that were reported: once is enough.
    reported: Mutex<HashSet<(Stream, u64)>>,
}

/// The writers that are open, each with when it was last used.
#[derive(Default)]
struct Writers {
    open: HashMap<Stream, (Shared, u64)>,
    clock: u64,
}

/// A file, and where what may be shown of it ends.
type Opened = (Box<dyn DiskFile>, u64);

/// Each open writer holds two files, and a process may not have many.
const MOST_WRITERS: usize = 64;

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
            writers: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// Lets go of a stream, so that others may write to it.
    pub fn release(&self, stream: &Stream) {
        self.writers().open.remove(stream);
    }

    /// Takes a stream for this process, and heals what an append that was cut off left in it.
    pub(crate) fn writer(&self, stream: &Stream) -> Result<Shared, StoreError> {
        let mut writers = self.writers();
        writers.clock += 1;
        let now = writers.clock;
        if let Some((writer, used)) = writers.open.get_mut(stream) {
            *used = now;
            return Ok(Arc::clone(writer));
        }
        if writers.open.len() >= MOST_WRITERS {
            let idle = writers
                .open
                .iter()
                .filter(|(_, (writer, _))| Arc::strong_count(writer) == 1);
            let oldest = idle
                .min_by_key(|(_, (_, used))| *used)
                .map(|(stream, _)| stream.clone());
            if let Some(oldest) = oldest {
                writers.open.remove(&oldest);
            }
        }
        let writer = Arc::new(self.open_writer(stream)?);
        writers
            .open
            .insert(stream.clone(), (Arc::clone(&writer), now));
        Ok(writer)
    }

    fn open_writer(&self, stream: &Stream) -> Result<Writer, StoreError> {
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
        let lock = self.lock(stream)?;
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

    /// Takes the right to write to a stream, without looking at it.
    pub(crate) fn lock(&self, stream: &Stream) -> Result<Lock, StoreError> {
        let path = lock_path(&path(stream));
        Lock::take(self.disk(), &path, stream, self.options.patience)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        match self.options.durability {
            Durability::Sync => self.disk.sync_folder(folder),
            Durability::Os => Ok(()),
        }
    }

    fn open_to_read(&self, stream: &Stream) -> Result<Option<Opened>, StoreError> {
        let path = path(stream);
        let held = self
            .writers()
            .open
            .get(stream)
            .map(|(writer, _)| Arc::clone(writer));
        let file = match self.disk.open(&path, Create::No) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| self.failed(&path, error))?,
        };
        let end = match held {
            Some(writer) => writer.durable(),
            None => {
                let settled = file.length().and_then(|len| settle(file.as_ref(), len));
                settled.map_err(|error| self.failed(&path, error))?.end
            }
        };
        Ok(Some((file, end)))
    }

    fn report(&self, stream: &Stream, offset: u64, what: String) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.insert((stream.clone(), offset)) {
            drop(reported);
            (self.options.listener)(&Notice::BadLine {
                stream: stream.clone(),
                offset,
                what,
            });
        }
    }

    /// What stands in the place of a stream and is none, such as a link.
    pub(crate) fn strangers(&self) -> Result<Vec<(Stream, StoreError)>, StoreError> {
        let mut out = Vec::new();
        for kind in Kind::ALL {
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

    fn failed(&self, path: &str, error: io::Error) -> StoreError {
        StoreError::io(self.disk.place(path), error)
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for FileLog {
    fn append(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<Option<EntryId>, StoreError> {
        let mut writer = self.writer(stream)?;
        if writer.is_stale() {
            // Somebody removed or changed the file without asking. It is opened anew, as it is.
            drop(writer);
            self.release(stream);
            writer = self.writer(stream)?;
        }
        writer.append(expected, records)
    }

    fn replace(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<(), StoreError> {
        let writer = self.writer(stream)?;
        let actual = writer.tail();
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
        self.overwrite(&path(stream), &bytes)?;
        // It holds the file that was there before.
        self.release(stream);
        Ok(())
    }

    fn read(&self, stream: &Stream, from: From<'_>) -> Result<Records<'_>, StoreError> {
        let Some((file, end)) = self.open_to_read(stream)? else {
            return match from {
                From::Start => Ok(Box::new(std::iter::empty())),
                From::After(id) => Err(no_entry(stream, id)),
            };
        };
        let mut start = 0;
        if let From::After(id) = from {
            let mut lines = Lines::new(file.as_ref(), 0, end);
            loop {
                let line = lines
                    .next()
                    .map_err(|error| self.failed(&path(stream), error))?;
                let Some(line) = line else {
                    return Err(no_entry(stream, id));
                };
                start = line.offset + line.bytes.len() as u64 + 1;
                if quick_id(line.bytes).is_some_and(|found| found == id.as_str()) {
                    break;
                }
            }
        }
        let lines = Lines::new(file, start, end);
        Ok(Box::new(FileRecords {
            log: self,
            stream: stream.clone(),
            lines,
        }))
    }

    fn tail(&self, stream: &Stream) -> Result<Option<EntryId>, StoreError> {
        if let Some((writer, _)) = self.writers().open.get(stream) {
            return Ok(writer.tail());
        }
        let path = path(stream);
        match self.disk.open(&path, Create::No) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(&path, error)),
            Ok(file) => {
                let settled = file.length().and_then(|len| settle(file.as_ref(), len));
                Ok(settled.map_err(|error| self.failed(&path, error))?.tail)
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
            // A folder without a log, or a link in its place, is no stream.
            if let Ok(stat) = self.disk.stat(&path(&stream)) {
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
        let writer = self.writer(stream)?;
        let failed = |error| self.failed(&path, error);
        self.disk.remove(&path).map_err(failed)?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.sync_folder(folder).map_err(failed)?;
        self.release(stream);
        drop(writer);
        // What is left is ours alone, and no stream: failing to tidy up changes nothing.
        let _ = self.disk.remove(&lock_path(&path));
        if stream.kind != Kind::Memory {
            let _ = self.disk.remove(folder);
        }
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

/// The records of a file, read as they are asked for.
struct FileRecords<'l> {
    log: &'l FileLog,
    stream: Stream,
    lines: Lines<Box<dyn DiskFile>>,
}

impl Iterator for FileRecords<'_> {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.lines.next() {
                Ok(line) => line?,
                Err(error) => return Some(Err(self.log.failed(&path(&self.stream), error))),
            };
            if trimmed(line.bytes).is_empty() {
                continue;
            }
            match record(line.bytes) {
                Ok(record) => return Some(Ok(record)),
                Err(what) => self.log.report(&self.stream, line.offset, what),
            }
        }
    }
}

/// Where the streams of a kind are, and how the names of their files end.
fn home(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Session => ("sessions", "/log.jsonl"),
        Kind::Chat => ("chats", "/history.jsonl"),
        Kind::Memory => ("memory/agent-context", ".jsonl"),
    }
}

/// The stream that a name in the folder of its kind stands for.
fn stream_of(kind: Kind, name: &str) -> Option<Stream> {
    let name = match kind {
        Kind::Memory => name.strip_suffix(home(kind).1)?,
        Kind::Session | Kind::Chat => name,
    };
    let key = Key::from_file_name(name)?;
    Some(Stream { kind, key })
}

/// A stream's file.
pub(crate) fn path(stream: &Stream) -> String {
    let (folder, ending) = home(stream.kind);
    format!("{folder}/{}{ending}", stream.key.file_name())
}

fn lock_path(path: &str) -> String {
    format!("{}.lock", path.strip_suffix(".jsonl").unwrap_or(path))
}

fn no_entry(stream: &Stream, id: &EntryId) -> StoreError {
    StoreError::NoEntry {
        stream: stream.clone(),
        id: id.to_string(),
        candidates: Vec::new(),
    }
}
