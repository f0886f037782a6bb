//! A disk that can lose power, fill up and fail, in memory.
//!
//! It keeps two truths: what a running system sees, and what is sure to be there after a power cut.
//! Only a sync moves something from the first to the second: a file's bytes when the file is synced,
//! a name when its folder is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use contexture_store::disk::{Create, Disk, DiskFile, Stat};

#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<World>>);

#[derive(Clone, Default)]
struct World {
    seen: Names,
    sure: Names,
    files: Vec<Bytes>,
    /// Operations that change or sync something, counted.
    ops: usize,
    /// What each sync was of, in order.
    syncs: Vec<String>,
    fault: Option<Fault>,
    /// Syncs of this name do nothing, and say that they did.
    forgets: Option<String>,
}

#[derive(Clone, Default)]
struct Names {
    files: BTreeMap<String, usize>,
    folders: BTreeSet<String>,
}

#[derive(Clone, Default)]
struct Bytes {
    seen: Vec<u8>,
    sure: Vec<u8>,
}

/// Which operations fail, and how.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub from: usize,
    pub to: usize,
    pub kind: io::ErrorKind,
}

/// What a power cut leaves of bytes that were written and not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Nothing,
    Half,
    All,
    /// The length, but not the bytes.
    Nuls,
}

impl SimDisk {
    pub fn ops(&self) -> usize {
        self.world().ops
    }

    pub fn syncs(&self) -> Vec<String> {
        self.world().syncs.clone()
    }

    pub fn fail(&self, fault: Option<Fault>) {
        self.world().fault = fault;
    }

    pub fn forget(&self, name: &str) {
        self.world().forgets = Some(name.to_owned());
    }

    /// The disk after a power cut.
    pub fn after_power_cut(&self, left: Left) -> Self {
        let world = self.world();
        // A name is only found through folders that are there.
        let reachable = |path: &str| {
            let mut parents = path.match_indices('/').map(|(at, _)| &path[..at]);
            parents.all(|parent| world.sure.folders.contains(parent))
        };
        let mut names = world.sure.clone();
        names.files.retain(|path, _| reachable(path));
        names.folders.retain(|path| reachable(path));
        let files = world.files.iter().map(|bytes| {
            let mut kept = bytes.sure.clone();
            let grown = bytes
                .seen
                .strip_prefix(bytes.sure.as_slice())
                .unwrap_or_default();
            match left {
                Left::Nothing => {}
                Left::Half => kept.extend_from_slice(&grown[..grown.len() / 2]),
                Left::All => kept.extend_from_slice(grown),
                Left::Nuls => kept.resize(kept.len() + grown.len(), 0),
            }
            Bytes {
                seen: kept.clone(),
                sure: kept,
            }
        });
        let after = World {
            seen: names.clone(),
            sure: names,
            files: files.collect(),
            ..World::default()
        };
        Self(Arc::new(Mutex::new(after)))
    }

    /// The disk after the process was killed: the system still has all that was written.
    pub fn after_kill(&self) -> Self {
        let mut world = self.world().clone();
        world.fault = None;
        Self(Arc::new(Mutex::new(world)))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

impl World {
    /// Counts an operation, and says whether it fails.
    fn op(&mut self) -> io::Result<()> {
        let now = self.ops;
        self.ops += 1;
        match self.fault {
            Some(fault) if (fault.from..fault.to).contains(&now) => Err(fault.kind.into()),
            _ => Ok(()),
        }
    }

    /// Whether a sync does its work.
    fn sync(&mut self, name: String) -> io::Result<bool> {
        self.op()?;
        let works = self.forgets.as_ref() != Some(&name);
        self.syncs.push(name);
        Ok(works)
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl Disk for SimDisk {
    fn open(&self, path: &str, create: Create) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.world();
        let found = world.seen.files.get(path).copied();
        let inode = match (found, create) {
            (Some(_), Create::New) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(inode), _) => inode,
            (None, Create::No) => return Err(io::ErrorKind::NotFound.into()),
            (None, _) => {
                world.op()?;
                if !world.seen.folders.contains(parent(path)) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                world.files.push(Bytes::default());
                let inode = world.files.len() - 1;
                world.seen.files.insert(path.to_owned(), inode);
                inode
            }
        };
        Ok(Box::new(SimFile {
            disk: self.clone(),
            path: path.to_owned(),
            inode,
        }))
    }

    fn make_folder(&self, path: &str) -> io::Result<()> {
        let mut world = self.world();
        if world.seen.folders.contains(path) {
            return Ok(());
        }
        world.op()?;
        world.seen.folders.insert(path.to_owned());
        if path.is_empty() {
            world.sure.folders.insert(String::new());
        }
        Ok(())
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        let mut world = self.world();
        if world.sync(format!("folder {path}"))? {
            let World { seen, sure, .. } = &mut *world;
            sure.files.retain(|name, _| parent(name) != path);
            let files = seen.files.iter().filter(|(name, _)| parent(name) == path);
            sure.files
                .extend(files.map(|(name, inode)| (name.clone(), *inode)));
            let inside = |name: &&String| !name.is_empty() && parent(name) == path;
            sure.folders
                .extend(seen.folders.iter().filter(inside).cloned());
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.world();
        world.op()?;
        let inode = world
            .seen
            .files
            .remove(from)
            .ok_or(io::ErrorKind::NotFound)?;
        world.seen.files.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut world = self.world();
        if world.seen.files.contains_key(path) {
            world.op()?;
            world.seen.files.remove(path);
            return Ok(());
        }
        let used = world.seen.files.keys().any(|name| parent(name) == path);
        match world.seen.folders.contains(path) && !used {
            true => {
                world.op()?;
                world.seen.folders.remove(path);
                Ok(())
            }
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let world = self.world();
        let all = world.seen.files.keys().chain(&world.seen.folders);
        let inside = all.filter(|name| !name.is_empty() && parent(name) == path);
        Ok(inside
            .map(|name| name.rsplit('/').next().unwrap().to_owned())
            .collect())
    }

    fn links(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn stat(&self, path: &str) -> io::Result<Stat> {
        let world = self.world();
        let inode = *world.seen.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Stat {
            len: world.files[inode].seen.len() as u64,
            modified: Some(SystemTime::UNIX_EPOCH),
        })
    }

    fn place(&self, path: &str) -> String {
        path.to_owned()
    }
}

struct SimFile {
    disk: SimDisk,
    path: String,
    inode: usize,
}

impl SimFile {
    fn op(&self, world: &mut World) -> io::Result<()> {
        // What a lock file says is for people: nothing hangs on it.
        match self.path.ends_with(".lock") {
            true => Ok(()),
            false => world.op(),
        }
    }
}

impl DiskFile for SimFile {
    fn length(&self) -> io::Result<u64> {
        let world = self.disk.world();
        match world.seen.files.values().any(|inode| *inode == self.inode) {
            true => Ok(world.files[self.inode].seen.len() as u64),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let world = self.disk.world();
        let bytes = &world.files[self.inode].seen;
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        let failed = self.op(&mut world);
        // A disk that fills up takes what still fits.
        let taken = if failed.is_err() {
            bytes.len() / 2
        } else {
            bytes.len()
        };
        let file = &mut world.files[self.inode].seen;
        let end = offset as usize + taken;
        if file.len() < end {
            file.resize(end, 0);
        }
        file[offset as usize..end].copy_from_slice(&bytes[..taken]);
        failed
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        self.op(&mut world)?;
        world.files[self.inode].seen.resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.disk.world();
        if world.sync(format!("file {}", self.path))? {
            let bytes = &mut world.files[self.inode];
            bytes.sure = bytes.seen.clone();
        }
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}
