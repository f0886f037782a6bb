//! Every folder that commands may write to, and which of them git would take for a repository.
//!
//! Looking through a large project takes long. So each folder is read once, and again only when the kernel says that its
//! entries changed: the time of its last change (`ctime`) cannot be set by anybody.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// When something was changed last, in seconds and nanoseconds.
pub type Stamp = (i64, i64);

/// The stamp of something that is changed now.
pub fn now() -> Stamp {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (
        i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
        i64::from(now.subsec_nanos()),
    )
}

pub fn stamp(about: &Metadata) -> Stamp {
    (about.ctime(), about.ctime_nsec())
}

/// The kernel's stamps are this coarse: what was read sooner after a change may have missed the next.
const COARSE: Duration = Duration::from_millis(50);
/// The most folders that are kept in memory.
const MAX_FOLDERS: usize = 500_000;

/// Which folder it is, whatever its name.
pub type Identity = (u64, u64);

#[derive(Default)]
pub struct Tree {
    folders: HashMap<PathBuf, Seen>,
}

/// A folder as it was when it was read.
struct Seen {
    changed: Stamp,
    /// Long enough after its change that nothing can have been missed.
    settled: bool,
    folders: Vec<OsString>,
    git: Option<Identity>,
    /// It has a `.git` that is a file or a link.
    file: bool,
}

/// What was found.
#[derive(Default)]
pub struct Found {
    /// Folders that git would take for a repository's own, and which they are.
    pub repositories: HashMap<PathBuf, Identity>,
    /// Files and links of the name `.git`, which lead to such folders.
    pub files: Vec<PathBuf>,
    /// Folders that changed and cannot be read.
    pub unread: Vec<PathBuf>,
    /// Where looking was cut short.
    pub cut: Option<PathBuf>,
}

impl Tree {
    /// Looks through all folders below these, for as long as it may take. Links are not followed.
    pub fn look(&mut self, roots: &[PathBuf], skip: &[PathBuf], until: Instant) -> Found {
        let mut found = Found::default();
        let mut before = std::mem::take(&mut self.folders);
        let mut left: Vec<PathBuf> = roots.to_vec();
        while let Some(path) = left.pop() {
            if skip.contains(&path) || self.folders.contains_key(&path) {
                continue;
            }
            if Instant::now() > until || self.folders.len() >= MAX_FOLDERS {
                found.cut = Some(path);
                // What was known is not read again next time.
                before.extend(self.folders.drain());
                self.folders = before;
                return found;
            }
            let Ok(about) = fs::symlink_metadata(&path) else {
                continue;
            };
            if !about.is_dir() {
                continue;
            }
            let known = before.remove(&path);
            let known = known.filter(|seen| seen.settled && seen.changed == stamp(&about));
            let seen = match known.map_or_else(|| read(&path, &about), Ok) {
                Ok(seen) => seen,
                Err(_) => {
                    found.unread.push(path);
                    continue;
                }
            };
            found
                .repositories
                .extend(seen.git.map(|git| (path.clone(), git)));
            found.files.extend(seen.file.then(|| path.join(".git")));
            left.extend(seen.folders.iter().map(|name| path.join(name)));
            self.folders.insert(path, seen);
        }
        found
    }
}

fn read(path: &Path, about: &Metadata) -> io::Result<Seen> {
    let (seconds, nanoseconds) = stamp(about);
    let changed = UNIX_EPOCH
        + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
        + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default());
    let age = SystemTime::now()
        .duration_since(changed)
        .unwrap_or_default();
    let mut seen = Seen {
        changed: (seconds, nanoseconds),
        settled: age > COARSE,
        folders: Vec::new(),
        git: None,
        file: false,
    };
    let mut has = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            seen.folders.push(name.clone());
        } else if name == ".git" {
            seen.file = true;
        }
        let telling = ["HEAD", "commondir", "objects", "refs"];
        has.extend(telling.into_iter().find(|telling| name == *telling));
    }
    let has = |names: [&str; 2]| names.iter().all(|name| has.contains(name));
    // The second form is that of a work tree; in a folder that others refer to, there is no HEAD.
    let git = path.file_name() == Some(OsStr::new(".git"))
        || has(["objects", "refs"])
        || has(["HEAD", "commondir"]);
    seen.git = git.then(|| (about.dev(), about.ino()));
    Ok(seen)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn names(found: &Found, root: &Path) -> Vec<String> {
        let inside = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
        let mut names: Vec<_> = found.repositories.keys().map(inside).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_new_is_found_at_any_depth_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |path: &str| fs::create_dir_all(root.join(path)).unwrap();
        make("a/b/c/.git");
        make("bare/objects");
        make("bare/refs");
        make("plain/objects");
        make(".git/modules/m/objects");
        make(".git/modules/m/refs");
        make(".git/worktrees/w");
        for file in [".git/worktrees/w/HEAD", ".git/worktrees/w/commondir"] {
            fs::write(root.join(file), "").unwrap();
        }
        let mut tree = Tree::default();
        let roots = [root.clone()];
        let mut found = tree.look(&roots, &[], later());
        let mut expected = vec![
            ".git",
            ".git/modules/m",
            ".git/worktrees/w",
            "a/b/c/.git",
            "bare",
        ];
        assert_eq!(names(&found, &root), expected);
        // In quick succession, as a command would.
        for number in 0..20 {
            make(&format!("a/b/{number}/.git"));
            found = tree.look(&roots, &[], later());
            assert_eq!(names(&found, &root).len(), expected.len() + 1, "{number}");
            fs::remove_dir_all(root.join(format!("a/b/{number}"))).unwrap();
        }
        fs::create_dir(root.join("plain/refs")).unwrap();
        fs::create_dir(root.join("w")).unwrap();
        fs::write(root.join("w/.git"), "gitdir: ../.git/worktrees/w").unwrap();
        found = tree.look(&roots, &[], later());
        expected.push("plain");
        assert_eq!(names(&found, &root), expected);
        assert_eq!(found.files, [root.join("w/.git")]);
        assert!(found.cut.is_none());
    }

    #[test]
    fn it_says_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let roots = [folder.path().to_owned()];
        let found = Tree::default().look(&roots, &[], Instant::now() - Duration::from_millis(1));
        assert_eq!(found.cut.as_deref(), Some(folder.path()));
    }
}
