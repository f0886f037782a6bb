//! What commands must not change, though it lies in the project: what runs programs later (git's hooks
//! and configuration), and our own files.
//!
//! Where the sandbox can seal these, they are sealed. Where it cannot, they are put back afterwards.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::output::{Folder, plain_folders, private_file};
use super::words;

/// What is protected in a project.
#[derive(Default)]
pub struct Protected {
    /// Cannot be changed, nor anything in it.
    pub sealed: Vec<PathBuf>,
    /// Can be changed inside, but not moved away: what is sealed lies there.
    pub pinned: Vec<PathBuf>,
    /// Was not there, and must not be there afterwards.
    pub absent: Vec<PathBuf>,
    /// Must lead to where they lead to.
    pub links: Vec<PathBuf>,
}

/// Files of git that name programs to run, or other files that do.
const GIT: &[&str] = &[
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "remotes",
    "branches",
];

impl Protected {
    /// What is protected in the project's root, in the repositories that may be written and in `nested` ones, and of ours.
    pub fn of(root: &Path, writable: &[PathBuf], outputs: &Path, nested: &[PathBuf]) -> Self {
        let mut all = Self::default();
        for path in [
            root.join("contexture.json"),
            root.join(".contexture"),
            outputs.to_owned(),
        ] {
            all.add(path);
        }
        let roots = writable.iter().map(PathBuf::as_path).chain([root]);
        let found = roots.flat_map(|root| [root.join(".git"), root.to_owned()]);
        let found: Vec<PathBuf> = found
            .filter(|git| !git.is_dir() || is_repository(git))
            .collect();
        let others = nested.iter().filter(|path| !found.contains(path));
        for git in found.iter().chain(others).cloned() {
            match fs::symlink_metadata(&git) {
                // Without a repository there is nothing of git's to protect, and `git init` works.
                Ok(about) if about.is_dir() => {
                    GIT.iter().for_each(|name| all.add(git.join(name)));
                    all.pinned.push(git);
                }
                // The `.git` of a worktree is a file that names a folder; it may be a link, too.
                Ok(_) => all.add(git),
                Err(_) => {}
            }
        }
        all
    }

    fn add(&mut self, path: PathBuf) {
        match fs::symlink_metadata(&path) {
            Err(_) => self.absent.push(path),
            Ok(about) => {
                // A link itself cannot be sealed; what it leads to can.
                if about.is_symlink() {
                    self.sealed.extend(path.canonicalize());
                    self.links.push(path);
                } else {
                    self.sealed.push(path);
                }
            }
        }
    }
}

/// Whether a path in a project is one that an agent must not write: git's hooks and configuration in any repository, and
/// our own files. Links in it have been followed.
pub fn is_protected(root: &Path, path: &Path) -> bool {
    let all = Protected::of(root, &[], &root.join(".contexture/outputs"), &[]);
    let all = [all.sealed, all.absent, all.links];
    let mut above = path.ancestors().take_while(|above| above.starts_with(root));
    all.iter().flatten().any(|sealed| path.starts_with(sealed)) || above.any(is_gits)
}

/// Whether git finds there what to run, or where to look for it: in a repository that is there, or would be.
fn is_gits(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((name, folder)) = name.zip(path.parent()) else {
        return false;
    };
    let in_git = || folder.components().any(|part| part.as_os_str() == ".git");
    // The `.git` of a worktree is a file.
    name == ".git" && !path.is_dir() || GIT.contains(&name) && (in_git() || is_repository(folder))
}

/// By its name, or by what is in it.
fn is_repository(folder: &Path) -> bool {
    let has = |name: &&str| folder.join(name).exists();
    folder.ends_with(".git") || ["HEAD", "config", "objects"].iter().all(has)
}

/// Remembers how protected files are, to put them back.
pub struct Guard {
    kept: Vec<(PathBuf, Was)>,
    /// Folders where nothing may be added.
    closed: Vec<PathBuf>,
}

enum Was {
    Absent,
    File(Vec<u8>, Permissions),
    Link(PathBuf),
    Folder(Permissions),
    /// Too large, or something else: only that it is there is known.
    Other,
}

/// The largest file that is kept in memory, and how many of them.
const LARGEST: u64 = 1 << 20;
const MOST: usize = 2_000;

impl Guard {
    /// Remembers what nothing else protects. With `sealed` that is what is not there yet, and links. Our own
    /// folder is never remembered: it is large, and other sessions write there at the same time.
    pub fn of(protected: &Protected, sealed: bool, root: &Path) -> Self {
        let mut guard = Self {
            kept: protected
                .absent
                .iter()
                .map(|path| (path.clone(), Was::Absent))
                .collect(),
            closed: Vec::new(),
        };
        protected.links.iter().for_each(|path| guard.remember(path));
        if !sealed {
            for path in &protected.pinned {
                if let Ok(about) = fs::symlink_metadata(path) {
                    guard.kept.push((path.clone(), was(path, &about)));
                }
            }
            let ours = root.join(".contexture");
            for path in protected
                .sealed
                .iter()
                .filter(|path| !path.starts_with(&ours))
            {
                guard.remember(path);
            }
        }
        guard
    }

    fn remember(&mut self, path: &Path) {
        let Ok(about) = fs::symlink_metadata(path) else {
            return;
        };
        if self.kept.len() >= MOST {
            return;
        }
        self.kept.push((path.to_owned(), was(path, &about)));
        if about.is_dir() {
            let entries: Vec<_> = fs::read_dir(path).into_iter().flatten().flatten().collect();
            // What is not remembered must not be taken for new.
            if self.kept.len() + entries.len() <= MOST {
                self.closed.push(path.to_owned());
                entries
                    .iter()
                    .for_each(|entry| self.remember(&entry.path()));
            }
        }
    }

    /// Puts back what was changed. Gives what there is to say about it.
    pub fn put_back(&self, root: &Path, folder: &Folder) -> Vec<String> {
        let mut said = Vec::new();
        let mut put = |path: &Path, was: &Was| {
            let name = path
                .strip_prefix(root)
                .unwrap_or(path)
                .display()
                .to_string();
            match put_back(path, was, root, folder) {
                Ok(None) => {}
                Ok(Some(kept)) => said.push(words::put_back(&name, &kept)),
                Err(error) => said.push(words::not_put_back(&name, &error.to_string())),
            }
        };
        for (path, was) in &self.kept {
            put(path, was);
        }
        for folder in &self.closed {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if !self.kept.iter().any(|(path, _)| *path == entry.path()) {
                    put(&entry.path(), &Was::Absent);
                }
            }
        }
        said
    }
}

fn was(path: &Path, about: &Metadata) -> Was {
    if let (true, Ok(target)) = (about.is_symlink(), fs::read_link(path)) {
        return Was::Link(target);
    }
    if about.is_dir() {
        return Was::Folder(about.permissions());
    }
    if !about.is_file() || about.len() > LARGEST {
        return Was::Other;
    }
    fs::read(path).map_or(Was::Other, |bytes| Was::File(bytes, about.permissions()))
}

/// Puts one path back. Says where the changed one is now, if it was changed.
fn put_back(path: &Path, was: &Was, root: &Path, folder: &Folder) -> io::Result<Option<String>> {
    plain_folders(path, root)?;
    let about = fs::symlink_metadata(path).ok();
    let same = match (was, &about) {
        (Was::Absent, None) => true,
        (Was::Other, Some(_)) => true,
        (Was::Folder(mode), Some(about)) => about.is_dir() && about.permissions() == *mode,
        (Was::Link(target), Some(_)) => fs::read_link(path).is_ok_and(|now| now == *target),
        (Was::File(bytes, mode), Some(about)) => {
            about.is_file()
                && about.permissions() == *mode
                && about.len() == bytes.len() as u64
                && fs::read(path).is_ok_and(|now| now == *bytes)
        }
        _ => false,
    };
    if same {
        return Ok(None);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
        let mode = fs::metadata(parent)?.permissions().mode();
        fs::set_permissions(parent, Permissions::from_mode(mode | 0o700))?;
    }
    let kept = match (was, about) {
        (_, None) => "gone".to_owned(),
        (Was::Folder(mode), Some(about)) if about.is_dir() => {
            fs::set_permissions(path, mode.clone())?;
            return Ok(Some("gone".to_owned()));
        }
        (_, Some(about)) => match folder.take_in(path) {
            Ok(kept) => kept,
            Err(_) if about.is_dir() => fs::remove_dir_all(path).map(|()| "gone".to_owned())?,
            Err(_) => fs::remove_file(path).map(|()| "gone".to_owned())?,
        },
    };
    match was {
        Was::Absent => {}
        Was::Folder(mode) => {
            fs::create_dir(path)?;
            fs::set_permissions(path, mode.clone())?;
        }
        Was::Link(target) => std::os::unix::fs::symlink(target, path)?,
        Was::Other => return Err(io::Error::other("only small files can be")),
        Was::File(bytes, mode) => {
            private_file(path)?.write_all(bytes)?;
            fs::set_permissions(path, Permissions::from_mode(mode.mode() & 0o7777))?;
        }
    }
    Ok(Some(kept))
}
