//! Files that came with a project, from anybody.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The first `most` bytes of an ordinary file, and whether there are more.
///
/// A pipe is opened without waiting for its other end, and then refused.
pub(crate) fn read(path: &Path, most: usize) -> io::Result<(Vec<u8>, bool)> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is no ordinary file"));
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    let more = bytes.len() > most;
    bytes.truncate(most);
    Ok((bytes, more))
}
