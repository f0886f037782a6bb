//! Where a project's daemon is: one for each project, with a file that says how to reach it.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use contexture_fleet::tokens;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// The lock, in the folder of the project's state.
const LOCK: &str = "daemon.lock";
/// What is known of the daemon, beside it.
const FILE: &str = "daemon.json";
/// The longest such file.
const MOST_BYTES: u64 = 64 << 10;
/// Whoever looks for a daemon holds the lock for a moment. That is no daemon.
const MOMENT: Duration = Duration::from_millis(300);

/// A daemon that runs, and how to reach it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    /// Its process.
    pub pid: u32,
    /// Its address, as `http://127.0.0.1:4100`.
    pub url: String,
    /// The owner's secret.
    pub secret: String,
    /// Its version.
    pub version: String,
    /// Since when.
    pub started: String,
}

/// The right to be a project's daemon. It ends with the process, or when it is dropped; the file goes
/// with it.
#[derive(Debug)]
pub struct DaemonLock {
    folder: PathBuf,
    _lock: File,
}

/// Why there is no daemon to be, or to be found.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Another one runs.
    #[error("a daemon runs already in {}", .0.display())]
    Runs(PathBuf),
    /// The file could have been read, or written, by others.
    #[error("{} is not private: {why}", .file.display())]
    NotPrivate {
        /// The file.
        file: PathBuf,
        /// In what way.
        why: &'static str,
    },
    /// The file is not as we write it.
    #[error("{} cannot be read: {why}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl DaemonError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Runs(_) => "stop it first, or use it",
            Self::NotPrivate { .. } | Self::Unreadable { .. } => {
                "remove the file and start the daemon again"
            }
            Self::Io { .. } => "",
        }
    }
}

impl DaemonLock {
    /// Becomes the daemon of a project, whose state is in this folder: private to the user, and none of the project's.
    pub fn take(folder: &Path) -> Result<Self, DaemonError> {
        let path = folder.join(LOCK);
        let at = |error| failed(&path, error);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(at)?;
        let lock = open(&path, OpenOptions::new().write(true).create(true)).map_err(at)?;
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < MOMENT => {
                    std::thread::sleep(MOMENT / 10);
                }
                Err(TryLockError::WouldBlock) => return Err(DaemonError::Runs(folder.to_owned())),
                Err(TryLockError::Error(error)) => return Err(at(error)),
            }
        }
        // What one before us left, which ended without a word.
        let _ = fs::remove_file(folder.join(FILE));
        Ok(Self {
            folder: folder.to_owned(),
            _lock: lock,
        })
    }

    /// Says how to reach the daemon, to whoever may read our files.
    pub fn publish(&self, daemon: &Daemon) -> Result<(), DaemonError> {
        let path = self.folder.join(FILE);
        let new = self.folder.join(format!("{FILE}.{}", daemon.pid));
        let at = |error| failed(&path, error);
        let text = serde_json::to_string(daemon).map_err(|error| at(error.into()))?;
        // The lock is ours, so this is a leftover of a process that had our number.
        let _ = fs::remove_file(&new);
        let mut file = open(&new, OpenOptions::new().write(true).create_new(true)).map_err(at)?;
        file.write_all(text.as_bytes()).map_err(at)?;
        file.sync_all().map_err(at)?;
        fs::rename(&new, &path).map_err(at)
    }
}

impl Drop for DaemonLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(FILE));
    }
}

impl Daemon {
    /// This process, as a daemon that listens at this address, with a new secret.
    pub fn new(
        url: impl Into<String>,
        started: impl Into<String>,
    ) -> Result<Self, tokens::TokenError> {
        Ok(Self {
            pid: std::process::id(),
            url: url.into(),
            secret: tokens::hex(&tokens::random()?),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: started.into(),
        })
    }

    /// The daemon of the project whose state is in this folder; none where none runs, whatever the file
    /// says: one that came with the project, or that was left behind, does not count.
    pub fn find(folder: &Path) -> Result<Option<Self>, DaemonError> {
        let path = folder.join(FILE);
        if !is_held(&folder.join(LOCK))? {
            return Ok(None);
        }
        let at = |error| failed(&path, error);
        let file = match open(&path, OpenOptions::new().read(true)) {
            Ok(file) => file,
            // It has begun, and not said where.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(error)),
        };
        let meta = file.metadata().map_err(at)?;
        let not_private = |why| DaemonError::NotPrivate {
            file: path.clone(),
            why,
        };
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(not_private("it is somebody else's"));
        }
        if !meta.is_file() || meta.mode() & 0o077 != 0 {
            return Err(not_private("others may read or write it"));
        }
        let mut text = String::new();
        let read = file.take(MOST_BYTES).read_to_string(&mut text);
        read.map_err(at)?;
        match contexture::json::from_text(&text) {
            Ok(daemon) => Ok(Some(daemon)),
            Err(error) => Err(DaemonError::Unreadable {
                file: path,
                why: error.to_string(),
            }),
        }
    }
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            url,
            secret: _,
            version,
            started,
        } = self;
        f.debug_struct("Daemon")
            .field("pid", pid)
            .field("url", url)
            .field("version", version)
            .field("started", started)
            .finish_non_exhaustive()
    }
}

/// Whether a daemon holds the lock.
fn is_held(path: &Path) -> Result<bool, DaemonError> {
    let lock = match open(path, OpenOptions::new().read(true)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(path, error)),
    };
    // Shared, so that two who look do not see each other.
    match lock.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(failed(path, error)),
    }
}

/// Opens a file of ours: no link is followed, nothing waits, and others cannot read what is made.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    options.mode(0o600).custom_flags(flags).open(path)
}

fn failed(file: &Path, error: io::Error) -> DaemonError {
    DaemonError::Io {
        file: file.to_owned(),
        error,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn daemon() -> Daemon {
        Daemon::new("http://127.0.0.1:4100", "2026-01-01T00:00:00Z").unwrap()
    }

    #[test]
    fn one_daemon_and_it_is_found_while_it_lives() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(".contexture");
        assert_eq!(Daemon::find(&folder).unwrap(), None);
        let lock = DaemonLock::take(&folder).unwrap();
        assert_eq!(Daemon::find(&folder).unwrap(), None, "not said yet");
        let daemon = daemon();
        lock.publish(&daemon).unwrap();
        assert_eq!(Daemon::find(&folder).unwrap().as_ref(), Some(&daemon));
        let second = DaemonLock::take(&folder).unwrap_err();
        assert!(matches!(second, DaemonError::Runs(_)), "{second}");
        assert_eq!(Daemon::find(&folder).unwrap().as_ref(), Some(&daemon));
        let mode = |name: &str| folder.join(name).metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(FILE), mode(LOCK)), (0o600, 0o600));
        drop(lock);
        assert_eq!(Daemon::find(&folder).unwrap(), None);
        assert!(!folder.join(FILE).exists());
        DaemonLock::take(&folder).unwrap();
    }

    #[test]
    fn what_a_dead_daemon_left_or_a_project_brought_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let text = serde_json::to_string(&daemon()).unwrap();
        fs::write(root.path().join(FILE), &text).unwrap();
        assert_eq!(Daemon::find(root.path()).unwrap(), None);
        fs::write(root.path().join(LOCK), "").unwrap();
        assert_eq!(Daemon::find(root.path()).unwrap(), None);
        let _lock = DaemonLock::take(root.path()).unwrap();
        assert!(!root.path().join(FILE).exists(), "a new one starts afresh");
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let lock = DaemonLock::take(root.path()).unwrap();
        lock.publish(&daemon()).unwrap();
        let path = root.path().join(FILE);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let refused = Daemon::find(root.path()).unwrap_err();
        assert!(matches!(refused, DaemonError::NotPrivate { .. }));
        assert!(!format!("{:?}", daemon()).contains(&daemon().secret));
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        fs::write(&path, "{").unwrap();
        let broken = Daemon::find(root.path()).unwrap_err();
        assert!(matches!(broken, DaemonError::Unreadable { .. }));
    }

    /// Attack 13.
    #[test]
    fn a_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = root.path().join("elsewhere");
        fs::write(&elsewhere, "mine").unwrap();
        let folder = root.path().join("data");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.join(LOCK)).unwrap();
        assert!(DaemonLock::take(&folder).is_err());
        fs::remove_file(folder.join(LOCK)).unwrap();
        let lock = DaemonLock::take(&folder).unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.join(FILE)).unwrap();
        assert!(Daemon::find(&folder).is_err());
        lock.publish(&daemon()).unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
        assert!(Daemon::find(&folder).unwrap().is_some());
    }
}
