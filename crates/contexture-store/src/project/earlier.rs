//! What an earlier version kept in the project's folder and now belongs into the state folder. Anybody could have put
//! it there, so it is moved only when somebody who knows what it does says so, or trusted the folder before.

use std::io;

use contexture::EntryId;

use super::{Acting, ProjectLog};
use crate::disk::Create;
use crate::state::{create_private, read_private};
use crate::{Expected, From, Kind, Log, Record, Records, StoreError, Stream, StreamInfo};

/// The key that a project's workers are known by.
pub const HUB_KEY: &str = "hub.key";
/// Where an earlier version's daemon was, and the lock that it held.
const DAEMON: [&str; 2] = ["daemon.json", "daemon.lock"];
/// How many records are moved at once.
const BATCH: usize = 256;

/// Acting state in the project's folder: it counts for nothing there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// Agents, boards of tasks and events.
    pub streams: Vec<StreamInfo>,
    /// Whether there is a key of the hub.
    pub hub_key: bool,
}

impl Earlier {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty() && !self.hub_key
    }
}

impl ProjectLog {
    /// What an earlier version, or somebody else, left in the project's folder that would act.
    pub fn earlier(&self) -> Result<Earlier, StoreError> {
        let mut streams = Vec::new();
        for kind in Kind::ACTING {
            streams.extend(self.data.list(kind)?);
        }
        Ok(Earlier {
            streams,
            hub_key: self.data.disk().stat(HUB_KEY).is_ok(),
        })
    }

    /// The records of an acting stream in the project's folder, to be shown.
    pub fn read_earlier(&self, stream: &Stream) -> Result<Records<'_>, StoreError> {
        self.data.read(stream, From::Start)
    }

    /// Moves acting state into the state folder, where it counts, and gives the streams that stay where they are because
    /// the state folder has others of their names. It may be repeated after a crash.
    pub fn migrate(&self, earlier: &Earlier) -> Result<Vec<Stream>, StoreError> {
        let acting = self.state()?;
        acting.state.make_unknown()?;
        self.without_daemon()?;
        if earlier.hub_key {
            self.move_key(acting)?;
        }
        let mut left = Vec::new();
        for info in &earlier.streams {
            if !self.move_stream(acting, &info.stream)? {
                left.push(info.stream.clone());
            }
        }
        let disk = self.data.disk();
        for file in DAEMON {
            let _ = disk.remove(file);
        }
        for kind in Kind::ACTING {
            // Only where nothing is left in it.
            let _ = disk.remove(crate::files::folder(kind));
        }
        acting.state.make()?;
        Ok(left)
    }

    /// Takes over all that is there, and knows the project from now on: for a folder that was trusted before there was a
    /// state folder. Gives what was moved.
    pub fn take_over(&self) -> Result<Earlier, StoreError> {
        let acting = self.state()?;
        acting.state.make_unknown()?;
        for foreign in self.foreign()? {
            acting.claims.add(&foreign.info.stream, &foreign.first)?;
        }
        let earlier = self.earlier()?;
        self.migrate(&earlier)?;
        Ok(earlier)
    }

    /// Refuses while a daemon of an earlier version runs: it would go on with what is moved away.
    fn without_daemon(&self) -> Result<(), StoreError> {
        let [_, lock] = DAEMON;
        let disk = self.data.disk();
        let failed = |error| StoreError::io(disk.place(lock), error);
        match disk.open(lock, Create::No) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(error)),
            Ok(file) => match file.try_lock().map_err(failed)? {
                true => Ok(()),
                false => Err(failed(io::Error::other(
                    "is held by a daemon of an earlier version: stop it first",
                ))),
            },
        }
    }

    fn move_key(&self, acting: &Acting) -> Result<(), StoreError> {
        if let Some(key) = read_private(&self.folder, HUB_KEY)? {
            create_private(acting.state.folder(), HUB_KEY, &key)?;
            let removed = self.data.disk().remove(HUB_KEY);
            removed.map_err(|error| StoreError::io(self.data.disk().place(HUB_KEY), error))?;
        }
        Ok(())
    }

    /// Whether it was moved.
    fn move_stream(&self, acting: &Acting, stream: &Stream) -> Result<bool, StoreError> {
        let mut tail: Option<EntryId> = None;
        let mut batch: Vec<Record> = Vec::new();
        let mut put = |batch: &mut Vec<Record>| {
            let expected = Expected::Tail(tail.as_ref());
            match acting.log.append(stream, expected, batch) {
                Err(StoreError::WrongTail { .. } | StoreError::IdTaken { .. }) => return Ok(false),
                done => drop(done?),
            }
            tail = batch
                .last()
                .map(|record| record.id().clone())
                .or(tail.take());
            batch.clear();
            Ok::<_, StoreError>(true)
        };
        for record in self.read_earlier(stream)? {
            batch.push(record?);
            if batch.len() == BATCH && !put(&mut batch)? {
                return Ok(false);
            }
        }
        if !put(&mut batch)? {
            return Ok(false);
        }
        acting.log.release(stream);
        self.data.remove(stream)
    }
}
