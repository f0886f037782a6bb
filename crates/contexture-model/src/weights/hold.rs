use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A lock on a file, for as long as this lives. The system ends it with the process, whatever happens to
/// that; the file itself stays.
#[derive(Debug)]
pub(super) struct Hold {
    _file: File,
}

impl Hold {
    /// Takes the lock; none where another has it.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The same for a lock that nobody has for long.
    pub fn take_soon(path: &Path) -> io::Result<Self> {
        let until = Instant::now() + PATIENCE;
        loop {
            match Self::take(path)? {
                Some(hold) => return Ok(hold),
                None if Instant::now() > until => {
                    return Err(io::Error::other("another process does not let go of it"));
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// How long the renaming of two files may take.
const PATIENCE: Duration = Duration::from_secs(5);
