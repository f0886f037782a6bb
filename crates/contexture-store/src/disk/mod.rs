//! What the store needs of a disk, and no more. The tests put a disk in its place that fails, fills
//! up, or forgets what was not synced.
//!
//! Paths are relative to the data folder, with `/` between names that are already safe.

mod real;

use std::io;
use std::time::SystemTime;

pub use real::RealDisk;

/// A folder with files in it.
pub trait Disk: Send + Sync {
    /// Opens a file for reading and writing. A link is never followed.
    fn open(&self, path: &str, create: Create) -> io::Result<Box<dyn DiskFile>>;
    /// Makes a folder where there is none.
    fn make_folder(&self, path: &str) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &str) -> io::Result<()>;
    /// Puts a file in the place of another, whole.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file, or a folder that is empty.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// The names in a folder but for links, in no order; none when there is no such folder.
    fn names(&self, path: &str) -> io::Result<Vec<String>>;
    /// The names of links in a folder: none of them is ours.
    fn links(&self, path: &str) -> io::Result<Vec<String>>;
    /// How long a file is, and when it last changed.
    fn stat(&self, path: &str) -> io::Result<Stat>;
    /// The path as people would look for it.
    fn place(&self, path: &str) -> String;
}

/// Whether a file that is not there is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// No: that is an error.
    No,
    /// Yes, empty, for its owner only.
    Yes,
    /// Yes, and it must not have been there.
    New,
}

/// What a listing says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its length in bytes.
    pub len: u64,
    /// When it last changed.
    pub modified: Option<SystemTime>,
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Its length; an error when it is no longer the file of its name.
    fn length(&self) -> io::Result<u64>;
    /// Reads at `offset`; fewer bytes only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of it at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts it.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
    /// Takes the file for this process alone; whether that worked. It ends with the file.
    fn try_lock(&self) -> io::Result<bool>;
}
