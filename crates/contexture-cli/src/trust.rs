//! Which folders the user trusts.
//!
//! A project may name programs to start, an address to send everything to, and instructions for a
//! model that has tools. None of it counts before the user said so, for this folder and for its
//! `contexture.json` as it is. The record is the user's own: a project cannot write it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use contexture::json;
use contexture_store::{StoreError, UserState};
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use contexture_agent::clock;

use crate::{input, user};

/// Whether the user trusts a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As it is.
    Trusted,
    /// Nothing was said of it.
    Unknown,
    /// As it was: its configuration is another by now.
    Changed,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Unknown => "unknown",
            Self::Changed => "changed",
        }
    }
}

/// Trusts the folder for one command, where it is `1`.
const ONCE: &str = "CONTEXTURE_TRUST";

/// Whether the user trusts `root`, whose configuration has this digest.
pub fn of(root: &Path, configuration: Option<&str>) -> Result<State, CliError> {
    if once() {
        return Ok(State::Trusted);
    }
    recorded(root, configuration)
}

/// Whether the folder is trusted for this one command.
pub fn once() -> bool {
    std::env::var_os(ONCE).is_some_and(|value| value == "1")
}

/// The same, by the record alone.
pub fn recorded(root: &Path, configuration: Option<&str>) -> Result<State, CliError> {
    let folder = canonical(root)?;
    let known = list()?.into_iter().find(|known| known.path == folder);
    Ok(match known {
        None => State::Unknown,
        Some(known) if configuration.is_none() || known.digest.as_deref() == configuration => {
            State::Trusted
        }
        Some(_) => State::Changed,
    })
}

/// A folder that the user trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    /// Where it really is.
    pub path: String,
    /// Its `contexture.json` when the user said so; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When that was.
    pub at: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u64,
    folders: Vec<Folder>,
}

/// The form of the record.
const VERSION: u64 = 1;
/// The most bytes of it.
const MOST_BYTES: usize = 4 << 20;

/// All folders that the user trusts.
pub fn list() -> Result<Vec<Folder>, CliError> {
    let Some(path) = path() else {
        return Ok(Vec::new());
    };
    let about = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        about => about.map_err(|error| failed(&path, error))?,
    };
    if about.mode() & 0o022 != 0 {
        return Err(CliError::NotAllowed {
            what: format!("{}: others can write to it", path.display()),
            hint: "look through it, then: chmod 600".to_owned(),
        });
    }
    let bytes = input::small_file(&path, MOST_BYTES)?;
    let unreadable = |why: String| CliError::NotAllowed {
        what: format!("{}: {why}", path.display()),
        hint: "remove the file, and trust your folders again".to_owned(),
    };
    let value = json::parse(&bytes, 1).map_err(|error| unreadable(error.to_string()))?;
    let record: Record =
        serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))?;
    match record.version {
        VERSION => Ok(record.folders),
        other => Err(unreadable(format!("has version {other}, not {VERSION}"))),
    }
}

/// Trusts a folder, with its configuration as the user saw it.
pub fn record(root: &Path, configuration: Option<&str>) -> Result<(), CliError> {
    let folder = Folder {
        path: canonical(root)?,
        digest: configuration.map(str::to_owned),
        at: clock::now(),
    };
    // From now on what appears in the folder is nothing that an earlier version left there, and is not taken over.
    if let Some(state) = user::state() {
        let state = UserState::new(state).project(root);
        let made = state.and_then(|state| state.make());
        made.map_err(StoreError::from)?;
    }
    change(|folders| {
        folders.retain(|known| known.path != folder.path);
        folders.push(folder);
        folders.sort_by(|a, b| a.path.cmp(&b.path));
    })
}

/// Ends the trust in a folder. Whether there was any.
pub fn revoke(root: &Path) -> Result<bool, CliError> {
    let folder = canonical(root)?;
    if list()?.iter().all(|known| known.path != folder) {
        return Ok(false);
    }
    change(|folders| folders.retain(|known| known.path != folder))?;
    Ok(true)
}

/// Where the record is.
fn path() -> Option<PathBuf> {
    Some(user::config()?.join("trusted.json"))
}

/// Where the folder really is: a link to it, or another spelling, is the same folder.
fn canonical(root: &Path) -> Result<String, CliError> {
    let real = root.canonicalize().map_err(|error| failed(root, error))?;
    match real.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(CliError::NotAllowed {
            what: format!("{}: its path is not UTF-8", real.display()),
            hint: "only a folder with a path in UTF-8 can be trusted".to_owned(),
        }),
    }
}

/// Writes the record anew, whole or not at all, one process at a time.
fn change(edit: impl FnOnce(&mut Vec<Folder>)) -> Result<(), CliError> {
    let Some(path) = path() else {
        return Err(CliError::NotAllowed {
            what: "there is nowhere to keep what you trust".to_owned(),
            hint: "set HOME or XDG_CONFIG_HOME to an absolute path".to_owned(),
        });
    };
    let folder = path.parent().unwrap_or(&path);
    let at = |error| failed(&path, error);
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(at)?;
    let lock = private(&folder.join("trusted.lock"), false).map_err(at)?;
    hold(&lock).map_err(at)?;
    let mut folders = list()?;
    edit(&mut folders);
    let record = Record {
        version: VERSION,
        folders,
    };
    let text = serde_json::to_string_pretty(&record).map_err(|error| at(error.into()))?;
    let next = folder.join(format!("trusted.json.{}", std::process::id()));
    // One that a process of the same number left when it died.
    let _ = std::fs::remove_file(&next);
    let written = private(&next, true)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&next, &path))
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        let _ = std::fs::remove_file(&next);
    }
    written.map_err(at)
}

/// A file of the user's alone.
fn private(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match new {
        true => options.create_new(true),
        false => options.create(true).truncate(false),
    };
    options.open(path)
}

/// How long to wait for another process.
const PATIENCE: Duration = Duration::from_secs(2);

fn hold(lock: &File) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() > until => {
                return Err(io::Error::other("another process is changing it"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn failed(place: &Path, error: io::Error) -> CliError {
    CliError::Io {
        place: place.display().to_string(),
        error,
    }
}
