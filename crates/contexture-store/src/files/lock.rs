use std::io;
use std::time::{Duration, Instant};

use crate::disk::{Create, Disk, DiskFile};
use crate::{StoreError, Stream};

/// The right to write to a stream, as long as this lives. It ends with the process, however that
/// ends: the system holds it, not the file's existence.
pub struct Lock {
    _file: Box<dyn DiskFile>,
}

/// How often a lock may lose its name while it is being taken.
const MOST_RENEWED: usize = 1_000;

impl Lock {
    /// Takes the lock at `path`, waiting as long as `patience` for another holder.
    pub fn take(
        disk: &dyn Disk,
        path: &str,
        stream: &Stream,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let failed = |error| StoreError::io(disk.place(path), error);
        let mut file = disk.open(path, Create::Yes).map_err(failed)?;
        let begun = Instant::now();
        let mut renewed = 0;
        loop {
            let taken = file.try_lock().map_err(failed)?;
            // A stream that was removed takes its lock with it: one without a name locks nothing.
            let named = file.length().is_ok();
            if taken && named {
                break;
            }
            if !named && renewed < MOST_RENEWED {
                renewed += 1;
                file = disk.open(path, Create::Yes).map_err(failed)?;
                continue;
            }
            if begun.elapsed() >= patience {
                return Err(StoreError::Held {
                    stream: stream.clone(),
                    pid: holder(file.as_ref()),
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // Who it is helps whoever is refused; that it cannot be written is no reason to refuse.
        let _ = sign(file.as_ref());
        Ok(Self { _file: file })
    }
}

fn sign(file: &dyn DiskFile) -> io::Result<()> {
    file.set_len(0)?;
    file.write_at(format!("{}\n", std::process::id()).as_bytes(), 0)
}

fn holder(file: &dyn DiskFile) -> Option<u32> {
    let mut bytes = [0; 16];
    let read = file.read_at(&mut bytes, 0).ok()?;
    std::str::from_utf8(&bytes[..read])
        .ok()?
        .trim()
        .parse()
        .ok()
}
