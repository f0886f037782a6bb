//! Repositories without what git would run of them.
//!
//! Whoever wrote them may still be there and put a link in a folder's place, so all is done from a folder that was
//! opened without following any.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, openat, renameat, statat,
};

use super::config::clean;
use super::tree::{Stamp, stamp};
use crate::shell::output::{Folder, unique};
use crate::shell::words;

/// More than a path can be long.
const MAX_PATH_BYTES: u64 = 16 << 10;
/// The largest configuration that is read.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What was changed since a moment, and what is said of it.
pub struct Neutral<'a> {
    roots: &'a [PathBuf],
    since: Stamp,
    folder: &'a Folder,
    pub said: Vec<String>,
}

impl<'a> Neutral<'a> {
    pub fn new(roots: &'a [PathBuf], since: Stamp, folder: &'a Folder) -> Self {
        Self {
            roots,
            since,
            folder,
            said: Vec::new(),
        }
    }

    pub fn is_changed(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|about| stamp(&about) >= self.since)
    }

    /// Looks at one. A fresh one is looked at as a whole, another where it was changed.
    pub fn repository(&mut self, path: &Path, fresh: bool) {
        let Ok(git) = self.open(path) else {
            return;
        };
        for name in ["config", "config.worktree"] {
            self.config(&git, path, name, fresh);
        }
        for name in ["hooks", "remotes", "branches"] {
            self.programs(&git, path, name, fresh);
        }
        // Where another folder's configuration counts instead of its own, it is that of the one it belongs to.
        let name = OsStr::new("commondir");
        if self.changed(&git, name, fresh).is_some() {
            let common = small(&path.join(name)).unwrap_or_default();
            let common = path.join(common.trim()).canonicalize().ok();
            let own = path.parent().filter(|above| above.ends_with("worktrees"));
            let inside = |folder: &PathBuf| self.roots.iter().any(|root| folder.starts_with(root));
            if common != own.and_then(Path::parent).map(Path::to_owned)
                && common.as_ref().is_some_and(inside)
            {
                let taken = self.take_out(&git, name);
                let shown = self.shown(&path.join(name));
                self.said.push(match taken {
                    Ok(kept) => words::neutral(&shown, &kept),
                    Err(error) => words::not_neutral(&shown, &error.to_string()),
                });
            }
        }
    }

    /// Looks at a `.git` that a command made and that leads to a repository. One that nobody entered so far would be
    /// entered through it, so it must be one in which git runs nothing. Those in `used` are entered anyway.
    pub fn pointer(&mut self, path: &Path, used: &HashSet<PathBuf>) {
        let Some(folder) = configured(path).filter(|folder| !used.contains(folder)) else {
            return;
        };
        let inside = self.roots.iter().any(|root| folder.starts_with(root));
        if !inside || folder.ends_with(".git") || self.is_harmless(&folder) {
            return;
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return;
        };
        let taken = self
            .open(parent)
            .and_then(|parent| self.take_out(&parent, name));
        let shown = self.shown(path);
        self.said.push(match taken {
            Ok(kept) => words::neutral(&shown, &kept),
            Err(error) => words::not_neutral(&shown, &error.to_string()),
        });
    }

    /// Whether git runs nothing in a repository, as it is.
    fn is_harmless(&self, path: &Path) -> bool {
        let Ok(git) = self.open(path) else {
            return false;
        };
        let clean = |name: &str| match read(&git, name) {
            Ok(text) => clean(&text, |_| false).is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        let hooks = openat(&git, "hooks", FOLDER, Mode::empty());
        let hooks = hooks.map(|hooks| names(&hooks)).unwrap_or_default();
        let samples = hooks.iter().all(|name| name.ends_with(b".sample"));
        clean("config") && clean("config.worktree") && samples
    }

    /// Opens a folder of ours, and no other through a link.
    fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        let root = self.roots.iter().find(|root| path.starts_with(root));
        let root = root.ok_or(io::ErrorKind::NotFound)?;
        let mut folder = openat(CWD, root, FOLDER, Mode::empty())?;
        for name in path.strip_prefix(root).unwrap_or(path) {
            folder = openat(&folder, name, FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }

    /// What is there, if it was changed.
    fn changed(&self, folder: &OwnedFd, name: &OsStr, fresh: bool) -> Option<FileType> {
        let about = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = FileType::from_raw_mode(about.st_mode);
        let late = |about: &Stat| {
            let nanoseconds = i64::try_from(about.st_ctime_nsec).unwrap_or_default();
            (about.st_ctime, nanoseconds) >= self.since
        };
        let behind = || statat(folder, name, AtFlags::empty()).is_ok_and(|about| late(&about));
        let changed = fresh || late(&about) || kind == FileType::Symlink && behind();
        changed.then_some(kind)
    }

    fn config(&mut self, git: &OwnedFd, path: &Path, name: &str, fresh: bool) {
        let Some(kind) = self.changed(git, OsStr::new(name), fresh) else {
            return;
        };
        let shown = self.shown(&path.join(name));
        let text = if kind == FileType::RegularFile {
            read(git, name).ok()
        } else {
            None
        };
        let inside = |value: &str| {
            let folder = path.join(value).canonicalize();
            folder.is_ok_and(|folder| self.roots.iter().any(|root| folder.starts_with(root)))
        };
        let (text, dropped) = match text.map(|text| clean(&text, inside)) {
            Some(None) => return,
            Some(Some(cleaned)) => (cleaned.text, cleaned.dropped),
            None => (String::new(), vec!["all of it".to_owned()]),
        };
        let said = match self.take_out(git, OsStr::new(name)) {
            Ok(kept) => match write(git, name, &text) {
                Ok(()) => words::cleaned(&shown, &dropped, &kept),
                Err(error) => words::not_neutral(&shown, &error.to_string()),
            },
            Err(error) => words::not_neutral(&shown, &error.to_string()),
        };
        self.said.push(said);
    }

    /// Hooks, and old forms of remotes, which may name programs too. Samples are never run.
    fn programs(&mut self, git: &OwnedFd, path: &Path, name: &str, fresh: bool) {
        let all = path.join(name);
        let mut taken = Vec::new();
        match openat(git, name, FOLDER, Mode::empty()) {
            Ok(folder) => {
                let names = names(&folder);
                for name in names.iter().map(|name| OsStr::from_bytes(name)) {
                    let sample = name.as_bytes().ends_with(b".sample");
                    if !sample && self.changed(&folder, name, fresh).is_some() {
                        taken.push((all.join(name), self.take_out(&folder, name)));
                    }
                }
            }
            // A link, or no folder.
            Err(_) => {
                if self.changed(git, OsStr::new(name), fresh).is_some() {
                    taken.push((all, self.take_out(git, OsStr::new(name))));
                }
            }
        }
        for (path, taken) in taken {
            let shown = self.shown(&path);
            self.said.push(match taken {
                Ok(kept) => words::neutral(&shown, &kept),
                Err(error) => words::not_neutral(&shown, &error.to_string()),
            });
        }
    }

    /// Moves something to the outputs, or at least to where git does not look. Says where it is now.
    fn take_out(&self, folder: &OwnedFd, name: &OsStr) -> io::Result<String> {
        let mode = Mode::from_raw_mode(fstat(folder)?.st_mode);
        if !mode.contains(Mode::RWXU) {
            _ = fchmod(folder, mode | Mode::RWXU);
        }
        self.folder.take_from(folder, name).or_else(|_| {
            let aside = format!("refused-{}", unique());
            renameat(folder, name, folder, &aside)?;
            Ok(aside)
        })
    }

    fn shown(&self, path: &Path) -> String {
        let root = self.roots.first().map_or(Path::new("/"), PathBuf::as_path);
        path.strip_prefix(root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

/// The folder whose configuration git reads where it finds this `.git`.
pub fn configured(path: &Path) -> Option<PathBuf> {
    let parent = path.parent()?;
    let git = if fs::symlink_metadata(path).ok()?.is_symlink() {
        path.canonicalize().ok()?
    } else {
        let text = small(path)?;
        let named = text.strip_prefix("gitdir:")?.trim();
        parent.join(named).canonicalize().ok()?
    };
    match small(&git.join("commondir")) {
        Some(common) => git.join(common.trim()).canonicalize().ok(),
        None => Some(git),
    }
}

/// A file that holds a path.
fn small(path: &Path) -> Option<String> {
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, how, Mode::empty()).ok()?);
    let mut text = String::new();
    file.take(MAX_PATH_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

fn names(folder: &OwnedFd) -> Vec<Vec<u8>> {
    let entries = rustix::fs::Dir::read_from(folder)
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.map(|entry| entry.file_name().to_bytes().to_vec());
    names.filter(|name| name != b"." && name != b"..").collect()
}

fn read(folder: &OwnedFd, name: &str) -> io::Result<Vec<u8>> {
    let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, how, Mode::empty())?);
    if !file.metadata()?.is_file() || file.metadata()?.len() > MAX_CONFIG_BYTES {
        return Err(io::Error::other("too large, or no file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_CONFIG_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(folder: &OwnedFd, name: &str, text: &str) -> io::Result<()> {
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    File::from(openat(folder, name, how, mode)?).write_all(text.as_bytes())
}
