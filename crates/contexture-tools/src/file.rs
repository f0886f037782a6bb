//! Bounded reads of files that we do not trust.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The first `most` bytes of an ordinary file, and whether there are more.
pub(crate) fn read(path: &Path, most: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    let more = bytes.len() > most;
    bytes.truncate(most);
    Ok((bytes, more))
}

/// A file that was read to its end.
pub(crate) struct Digested {
    /// Its first bytes.
    pub beginning: Vec<u8>,
    /// How many there are.
    pub size: u64,
    /// The digest of all of them.
    pub digest: String,
}

/// The most bytes of a file that is read to its end.
pub(crate) const MAX_DIGESTED_BYTES: u64 = 64 << 20;

/// The first `most` bytes of an ordinary file, and the digest of all.
pub(crate) fn digested(path: &Path, most: usize) -> io::Result<Digested> {
    let mut file = open(path)?;
    let mut beginning = Vec::new();
    (&mut file).take(most as u64).read_to_end(&mut beginning)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&beginning);
    // A sparse file has no end that is worth waiting for.
    hasher.update_reader(file.take(MAX_DIGESTED_BYTES + 1))?;
    let size = hasher.count();
    if size > MAX_DIGESTED_BYTES {
        let what = format!("is longer than {} MiB", MAX_DIGESTED_BYTES >> 20);
        return Err(io::Error::other(what));
    }
    Ok(Digested {
        beginning,
        size,
        digest: hasher.finalize().to_hex().to_string(),
    })
}

/// Opens an ordinary file. A pipe is opened without waiting for its other end, and then refused.
fn open(path: &Path) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is no ordinary file"));
    }
    Ok(file)
}
