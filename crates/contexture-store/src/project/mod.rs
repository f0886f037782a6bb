//! The log of a project on disk: what is data lies with the project, what makes us act with the user.
//!
//! A project's folder comes from anybody. So agents, tasks and events are never read from it, and a session, chat,
//! memory or canvas in it counts as the user's own only where the state folder has its claim. What is somebody else's
//! can be read, and is not continued.

mod earlier;
mod foreign;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contexture::EntryId;

pub use earlier::{Earlier, HUB_KEY};
pub use foreign::Foreign;

use crate::state::{Claims, ProjectState};
use crate::{
    Expected, FileLog, FileOptions, From, Kind, Log, Record, Records, StoreError, Stream,
    StreamInfo,
};

/// The streams of a project: its data in the project's folder, what acts in the user's state folder.
pub struct ProjectLog {
    folder: PathBuf,
    data: Arc<FileLog>,
    acting: Option<Acting>,
    /// Whether what is somebody else's may be continued.
    admits_foreign: bool,
}

/// What makes us act.
struct Acting {
    state: ProjectState,
    log: Arc<FileLog>,
    claims: Claims,
    made: AtomicBool,
}

impl ProjectLog {
    /// The streams of a project whose data is in `data` and whose state is in `state`; neither need exist. Without a
    /// state there is nothing that acts, and nothing counts as the user's own.
    pub fn new(
        data: &Path,
        state: Option<&ProjectState>,
        options: FileOptions,
    ) -> Result<Self, StoreError> {
        let acting = state.map(|state| {
            // What others could have changed is not believed.
            state.is_known()?;
            Ok::<_, StoreError>(Acting {
                claims: Claims::new(state, options.durability),
                log: Arc::new(FileLog::new(state.folder(), options.clone())),
                state: state.clone(),
                made: AtomicBool::new(false),
            })
        });
        Ok(Self {
            folder: data.to_owned(),
            acting: acting.transpose()?,
            data: Arc::new(FileLog::new(data, options)),
            admits_foreign: false,
        })
    }

    /// Lets what is somebody else's be continued too, as if it were the user's own.
    pub fn admitting_foreign(self) -> Self {
        Self {
            admits_foreign: true,
            ..self
        }
    }

    /// The streams in the project's folder.
    pub fn data(&self) -> &Arc<FileLog> {
        &self.data
    }

    /// The streams in the state folder; none without one.
    pub fn acting(&self) -> Option<&Arc<FileLog>> {
        self.acting.as_ref().map(|acting| &acting.log)
    }

    /// The folder that a stream of this kind is in.
    pub fn home(&self, kind: Kind) -> Result<&Arc<FileLog>, StoreError> {
        match kind.acts() {
            true => Ok(&self.state()?.log),
            false => Ok(&self.data),
        }
    }

    /// The same, to be written to.
    fn to_write(&self, kind: Kind) -> Result<&Arc<FileLog>, StoreError> {
        if kind.acts() {
            self.made()?;
        }
        self.home(kind)
    }

    fn state(&self) -> Result<&Acting, StoreError> {
        self.acting.as_ref().ok_or(StoreError::NoState)
    }

    /// Makes both folders. That of the data too, because a project is found by it.
    pub fn make(&self) -> Result<(), StoreError> {
        self.made().map(drop)
    }

    /// The state, with its folder made.
    fn made(&self) -> Result<&Acting, StoreError> {
        let acting = self.state()?;
        if !acting.made.load(Ordering::Acquire) {
            let data = self.data.disk();
            let made = data.make_folder("");
            made.map_err(|error| StoreError::io(data.place(""), error))?;
            acting.state.make()?;
            acting.made.store(true, Ordering::Release);
        }
        Ok(acting)
    }

    fn claim(&self, stream: &Stream, first: &Record) -> Result<(), StoreError> {
        self.made()?.claims.add(stream, first)
    }

    fn unclaim(&self, stream: &Stream, first: &Record) {
        if let Some(acting) = &self.acting {
            acting.claims.remove(stream, first);
        }
    }

    /// Whether the user began the stream with this record.
    fn claimed(&self, stream: &Stream, first: &Record) -> Result<bool, StoreError> {
        self.state()?.claims.has(stream, first)
    }

    /// Refuses to write to what is somebody else's; what is new becomes the user's own. Gives the first record that
    /// is there.
    fn admit(&self, stream: &Stream, records: &[Record]) -> Result<Option<Record>, StoreError> {
        let first = self.data.first(stream)?;
        match (&first, records.first()) {
            // With its claim first: it must never be without. Where nothing is kept, all is admitted or nothing.
            (None, Some(_)) if self.admits_foreign && self.acting.is_none() => {}
            (None, Some(record)) => self.claim(stream, record)?,
            (Some(first), _) if !self.admits_foreign && !self.claimed(stream, first)? => {
                return Err(StoreError::Foreign {
                    stream: stream.clone(),
                });
            }
            _ => {}
        }
        Ok(first)
    }
}

impl Log for ProjectLog {
    fn append(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<Option<EntryId>, StoreError> {
        if !stream.kind.acts() {
            self.admit(stream, records)?;
        }
        self.to_write(stream.kind)?
            .append(stream, expected, records)
    }

    fn replace(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<(), StoreError> {
        let home = self.to_write(stream.kind)?;
        if stream.kind.acts() {
            return home.replace(stream, expected, records);
        }
        let before = self.admit(stream, records)?;
        let first = records.first();
        // What is new was claimed before.
        if let (Some(before), Some(first)) = (&before, first)
            && self.acting.is_some()
            && self.claimed(stream, before)?
        {
            self.claim(stream, first)?;
        }
        home.replace(stream, expected, records)?;
        if let Some(before) = before.filter(|before| Some(before) != first) {
            self.unclaim(stream, &before);
        }
        Ok(())
    }

    fn read(&self, stream: &Stream, from: From<'_>) -> Result<Records<'_>, StoreError> {
        self.home(stream.kind)?.read(stream, from)
    }

    fn tail(&self, stream: &Stream) -> Result<Option<EntryId>, StoreError> {
        self.home(stream.kind)?.tail(stream)
    }

    fn list(&self, kind: Kind) -> Result<Vec<StreamInfo>, StoreError> {
        self.home(kind)?.list(kind)
    }

    fn remove(&self, stream: &Stream) -> Result<bool, StoreError> {
        let home = self.home(stream.kind)?;
        if stream.kind.acts() {
            return home.remove(stream);
        }
        let first = self.data.first(stream)?;
        let removed = home.remove(stream)?;
        if let Some(first) = first {
            self.unclaim(stream, &first);
        }
        Ok(removed)
    }

    fn is_own(&self, stream: &Stream) -> Result<bool, StoreError> {
        if stream.kind.acts() || self.admits_foreign {
            return Ok(true);
        }
        match self.data.first(stream)? {
            Some(first) => self.claimed(stream, &first),
            // Nobody's yet.
            None => Ok(true),
        }
    }
}
