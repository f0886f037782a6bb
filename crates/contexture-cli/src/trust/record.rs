//! The record of trusted folders. It is the user's own: a project cannot write it.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use contexture::json;
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::{input, user};

/// A folder that the user trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Where it really is.
    pub path: String,
    /// The digests of what instructs an agent there as the user saw it, by name; none in a record of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<BTreeMap<String, String>>,
    /// The digest of its `contexture.json`, in a record of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The digest of a later state that the user was shown and did not trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declined: Option<String>,
    /// When the user said so.
    pub at: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u64,
    folders: Vec<Known>,
}

/// The form of the record. The first had no digests of instructions.
const VERSION: u64 = 2;
const MAX_RECORD_BYTES: usize = 4 << 20;

/// All folders that the user trusts.
pub fn list() -> Result<Vec<Known>, CliError> {
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
    let bytes = input::small_file(&path, MAX_RECORD_BYTES)?;
    let unreadable = |why: String| CliError::NotAllowed {
        what: format!("{}: {why}", path.display()),
        hint: "remove the file, and trust your folders again".to_owned(),
    };
    let value = json::parse(&bytes, 1).map_err(|error| unreadable(error.to_string()))?;
    let record: Record =
        serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))?;
    match record.version {
        1..=VERSION => Ok(record.folders),
        other => Err(unreadable(format!("has version {other}, not {VERSION}"))),
    }
}

/// The record of one folder.
pub fn find(path: &str) -> Result<Option<Known>, CliError> {
    Ok(list()?.into_iter().find(|known| known.path == path))
}

/// Puts a folder into the record, in the place of what was known of it.
pub fn put(folder: Known) -> Result<(), CliError> {
    change(|folders| {
        folders.retain(|known| known.path != folder.path);
        folders.push(folder);
        folders.sort_by(|a, b| a.path.cmp(&b.path));
    })
}

/// Takes a folder out of the record.
pub fn remove(path: &str) -> Result<(), CliError> {
    change(|folders| folders.retain(|known| known.path != path))
}

/// Where the record is.
fn path() -> Option<PathBuf> {
    Some(user::config()?.join("trusted.json"))
}

/// Writes the record anew, whole or not at all, one process at a time.
fn change(edit: impl FnOnce(&mut Vec<Known>)) -> Result<(), CliError> {
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
    if text.len() > MAX_RECORD_BYTES {
        return Err(CliError::NotAllowed {
            what: format!("{}: there is no room for more folders", path.display()),
            hint: "`ctx trust --list` shows them; `ctx trust --revoke` takes one out".to_owned(),
        });
    }
    write_private(&path, text.as_bytes()).map_err(at)
}

/// Writes a file of the user's alone, whole or not at all.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let mut next = path.as_os_str().to_owned();
    next.push(format!(".{}", std::process::id()));
    let next = PathBuf::from(next);
    // One that a process of the same number left when it died.
    let _ = std::fs::remove_file(&next);
    let written = private(&next, true)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&next, path))
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        let _ = std::fs::remove_file(&next);
    }
    written
}

/// A file of the user's alone.
fn private(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    if new {
        options.create_new(true);
    } else {
        options.create(true).truncate(false);
    }
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

pub fn failed(place: &Path, error: io::Error) -> CliError {
    CliError::Io {
        place: place.display().to_string(),
        error,
    }
}
