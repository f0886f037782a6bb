use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Create, Disk, DiskFile, Stat};

/// A folder of the machine's file system.
///
/// Every name is looked up in the folder that was opened before it, and no link is followed on the
/// way, nor in the place of the folder itself: somebody who can put a link there cannot make us write elsewhere.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    /// Whether the root is known to be durable.
    made: AtomicBool,
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const PRIVATE_FOLDER: Mode = Mode::RWXU;

impl RealDisk {
    /// The folder `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            made: AtomicBool::new(false),
        }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn folder(&self, path: &str) -> io::Result<OwnedFd> {
        // The way to the root is the user's choice and may well lead through links; the root itself is ours.
        let mut folder = rustix::fs::openat(CWD, &self.root, FOLDER, Mode::empty())?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            folder = rustix::fs::openat(&folder, name, FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }

    /// The folder itself, durable once it is made: nothing in it can be before. Also when it was
    /// there: whoever made it may have been killed before this.
    fn make_root(&self) -> io::Result<()> {
        match self.root.symlink_metadata() {
            Ok(root) if root.is_symlink() => return Err(Errno::LOOP.into()),
            Ok(root) if root.is_dir() && self.made.load(Ordering::Acquire) => return Ok(()),
            _ => {}
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root)?;
        let parent = self
            .root
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        self.made.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes a folder with those above it, all for the user alone.
    pub fn make_folders(&self, path: &str) -> io::Result<()> {
        self.make_root()?;
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            self.make_folder(&path[..end])?;
        }
        Ok(())
    }

    /// Removes what has this name, with all that is in it; nothing where nothing has. A link is removed, and what it
    /// leads to stays.
    pub fn remove_all(&self, path: &str) -> io::Result<()> {
        match self.parent(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            parent => {
                let (folder, name) = parent?;
                let name = CString::new(name)?;
                remove_all(&folder, &name, 0)
            }
        }
    }

    fn items(&self, path: &str, wanted: fn(FileType) -> bool) -> io::Result<Vec<String>> {
        let folder = match self.folder(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut names = Vec::new();
        for item in Dir::read_from(&folder)? {
            let item = item?;
            match item.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) if wanted(item.file_type()) => names.push(name.to_owned()),
                Ok(_) => {}
            }
        }
        Ok(names)
    }

    /// The folder that a path is in, and its name there.
    fn parent<'p>(&self, path: &'p str) -> io::Result<(OwnedFd, &'p str)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.folder(folder)?, name))
    }
}

/// How deep folders are removed that somebody else made.
const MAX_DEPTH: usize = 256;

fn remove_all(folder: &OwnedFd, name: &CStr, depth: usize) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) if depth < MAX_DEPTH => {}
        Err(error) => return Err(error.into()),
    }
    let inside = rustix::fs::openat(folder, name, FOLDER, Mode::empty())?;
    let mut names = Vec::new();
    for item in Dir::read_from(&inside)? {
        let name = item?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    for name in names {
        remove_all(&inside, &name, depth + 1)?;
    }
    match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &str, create: Create) -> io::Result<Box<dyn DiskFile>> {
        let (folder, name) = self.parent(path)?;
        let how = match create {
            Create::No => OFlags::empty(),
            Create::Yes => OFlags::CREATE,
            Create::New => OFlags::CREATE | OFlags::EXCL,
        };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | how;
        let opened = rustix::fs::openat(&folder, name, flags, PRIVATE_FILE);
        let opened = match opened {
            // What may only be read can be read all the same; writing to it will say so.
            Err(Errno::ACCESS | Errno::ROFS | Errno::PERM) if create == Create::No => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
                rustix::fs::openat(&folder, name, flags, Mode::empty())?
            }
            other => other?,
        };
        let file = File::from(opened);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "is no regular file",
            ));
        }
        Ok(Box::new(RealFile(file)))
    }

    fn make_folder(&self, path: &str) -> io::Result<()> {
        if path.is_empty() {
            return self.make_root();
        }
        let (folder, name) = self.parent(path)?;
        match rustix::fs::mkdirat(&folder, name, PRIVATE_FOLDER) {
            Err(Errno::EXIST) => self.folder(path).map(drop),
            other => Ok(other?),
        }
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        File::from(self.folder(path)?).sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from_folder, from) = self.parent(from)?;
        let (to_folder, to) = self.parent(to)?;
        Ok(rustix::fs::renameat(&from_folder, from, &to_folder, to)?)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {
                Ok(rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR)?)
            }
            other => Ok(other?),
        }
    }

    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        // A link is not ours, whatever it is called.
        self.items(path, |kind| kind != FileType::Symlink)
    }

    fn links(&self, path: &str) -> io::Result<Vec<String>> {
        self.items(path, |kind| kind == FileType::Symlink)
    }

    fn stat(&self, path: &str) -> io::Result<Stat> {
        // One call a file, so that thousands are listed at once: the folders on the way are looked
        // at again when anything is opened.
        let stat = rustix::fs::statat(CWD, self.root.join(path), AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(Errno::LOOP.into()),
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "is no regular file",
                ));
            }
        }
        let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
        let since = u64::try_from(stat.st_mtime).ok();
        let since = since.map(|seconds| Duration::new(seconds, nanos));
        Ok(Stat {
            len: u64::try_from(stat.st_size).unwrap_or(0),
            modified: since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)),
        })
    }

    fn place(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn length(&self) -> io::Result<u64> {
        let meta = self.0.metadata()?;
        if meta.nlink() == 0 {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "was removed or replaced",
            ));
        }
        Ok(meta.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.0.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
