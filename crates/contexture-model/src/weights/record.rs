use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// What `NAME.json` says of `NAME.gguf`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    version: u64,
    pub name: String,
    pub sha256: String,
    pub bytes: u64,
    pub source: String,
    /// Milliseconds since 1970.
    added: u64,
    /// When the file was written last, in nanoseconds since 1970: while it stays, so does the hash.
    pub modified: u64,
}

/// The form of the record.
const VERSION: u64 = 1;
/// The most bytes of one.
const MOST: u64 = 64 << 10;

impl Record {
    /// The record of a file that comes now.
    pub fn new(name: &str, sha256: String, source: &str, file: &File) -> io::Result<Self> {
        let about = file.metadata()?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Self {
            version: VERSION,
            name: name.to_owned(),
            sha256,
            bytes: about.len(),
            source: source.to_owned(),
            added: u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or_default(),
            modified: modified(&about)?,
        })
    }

    /// Reads a record: none where there is no file, and in words what is wrong with one that makes no
    /// sense.
    pub fn read(path: &Path) -> io::Result<Option<Result<Self, String>>> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(about) if !about.is_file() => return Ok(Some(Err("is no regular file".to_owned()))),
            about => about?,
        };
        let mut bytes = Vec::new();
        File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST {
            return Ok(Some(Err("is too long".to_owned())));
        }
        let read = contexture::json::read::<Self>(&bytes, contexture::json::MAX_HELD_BYTES);
        Ok(Some(match read {
            Err(error) => Err(error.to_string()),
            Ok(record) if record.version != VERSION => {
                Err(format!("has version {}, not {VERSION}", record.version))
            }
            Ok(record) => Ok(record),
        }))
    }

    /// Writes it to a new file, on the disk when this returns.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let mut file = new_file(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    /// When it came.
    pub fn added(&self) -> SystemTime {
        let since = Duration::from_millis(self.added);
        // A time that no clock can show is as good as none.
        SystemTime::UNIX_EPOCH
            .checked_add(since)
            .unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// When a file was written last, as records have it.
pub(super) fn modified(about: &std::fs::Metadata) -> io::Result<u64> {
    let since = about.modified()?.duration_since(SystemTime::UNIX_EPOCH);
    Ok(u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or_default())
}

/// An empty file of the user's alone, in the place of what an earlier time may have left there.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path)
}
