//! Which streams of a project's folder this user began. A claim is an empty file in the state folder: its name binds the
//! project's place, the stream and its first record with all that it says, its time too, which nobody guesses. Nobody else
//! can make one, and it is there whole or not at all.

use std::collections::HashMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ProjectState;
use crate::disk::{Create, Disk, RealDisk};
use crate::{Durability, Record, StoreError, Stream};

/// The claims of a project.
pub struct Claims {
    state: ProjectState,
    disk: RealDisk,
    durability: Durability,
    /// The claims that are known to be there: they stay.
    known: Mutex<HashMap<Stream, String>>,
}

const FOLDER: &str = "claims";
/// How many claims are remembered.
const MAX_KNOWN: usize = 4_096;

impl Claims {
    pub fn new(state: &ProjectState, durability: Durability) -> Self {
        Self {
            disk: RealDisk::new(state.folder()),
            state: state.clone(),
            durability,
            known: Mutex::default(),
        }
    }

    /// Whether the user began the stream with this record.
    pub fn has(&self, stream: &Stream, first: &Record) -> Result<bool, StoreError> {
        let path = self.path(stream, first);
        if self.known().get(stream) == Some(&path) {
            return Ok(true);
        }
        match self.disk.open(&path, Create::No) {
            Ok(_) => {
                self.remember(stream, path);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::io(self.disk.place(&path), error)),
        }
    }

    /// Records that the user begins the stream with this record. To be called before the record is written: a claim
    /// without a stream claims nothing, a stream without its claim would be taken for somebody else's.
    pub fn add(&self, stream: &Stream, first: &Record) -> Result<(), StoreError> {
        if self.has(stream, first)? {
            return Ok(());
        }
        let path = self.path(stream, first);
        let failed = |error| StoreError::io(self.disk.place(&path), error);
        let folder = folder(stream);
        let made = match self.disk.open(&path, Create::Yes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                for inside in [FOLDER, &folder] {
                    self.disk.make_folder(inside).map_err(failed)?;
                }
                self.sync("")
                    .and_then(|()| self.sync(FOLDER))
                    .map_err(failed)?;
                self.disk.open(&path, Create::Yes)
            }
            other => other,
        };
        drop(made.map_err(failed)?);
        self.sync(&folder).map_err(failed)?;
        self.remember(stream, path);
        Ok(())
    }

    /// Takes a claim back: the stream that it was for is gone, or begins otherwise by now.
    pub fn remove(&self, stream: &Stream, first: &Record) {
        let path = self.path(stream, first);
        let mut known = self.known();
        if known.get(stream) == Some(&path) {
            known.remove(stream);
        }
        // One that is left claims nothing.
        let _ = self.disk.remove(&path);
    }

    fn path(&self, stream: &Stream, first: &Record) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("contexture 2026 claim of a stream");
        let place = self.state.project().as_os_str().as_bytes();
        let kind = stream.kind.as_str().as_bytes();
        for part in [
            place,
            kind,
            stream.key.as_str().as_bytes(),
            first.text().as_bytes(),
        ] {
            // Each with its length before it, so that no two are the same bytes.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let hash = hasher.finalize().to_hex();
        format!(
            "{}/{}@{}",
            folder(stream),
            stream.key.file_name(),
            &hash[..32]
        )
    }

    fn sync(&self, folder: &str) -> io::Result<()> {
        match self.durability {
            Durability::Sync => self.disk.sync_folder(folder),
            Durability::Os => Ok(()),
        }
    }

    fn remember(&self, stream: &Stream, path: String) {
        let mut known = self.known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(stream.clone(), path);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Stream, String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn folder(stream: &Stream) -> String {
    format!("{FOLDER}/{}", stream.kind.as_str())
}
