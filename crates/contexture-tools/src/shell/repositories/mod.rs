//! Git repositories inside the project: those that were there are sealed as the project's own is, those that commands make
//! or change are left without anything that git would run.
//!
//! Git reads the configuration of a repository in a folder below whenever somebody enters it, and often from the folder
//! above, so what a command writes there runs when its user asks for a status.

mod config;
mod neutral;
mod tree;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::output::Folder;
use super::{ShellOptions, words};
use neutral::{Neutral, configured};
pub use tree::Stamp;
use tree::{Identity, Tree, stamp};

/// How long to look before the first command, and after each.
const BEFORE: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_secs(5);
/// The most repositories that are sealed: each takes a few mounts a command, or is kept in memory to be put back.
const MAX_SEALED: usize = 100;
const MAX_REMEMBERED: usize = 40;
/// Clocks of file systems may be a little behind ours.
const BEHIND: i64 = 1;

/// All that is known of the repositories in a project, from one command to the next.
#[derive(Default)]
pub struct Repositories {
    tree: Tree,
    looked: bool,
    known: HashMap<PathBuf, Identity>,
    files: HashSet<PathBuf>,
    /// What commands made. It is not sealed, so that they can go on with it.
    made: HashSet<PathBuf>,
}

/// Where to look.
#[derive(Clone)]
pub struct Place {
    /// The project first.
    pub roots: Vec<PathBuf>,
    /// What is no command's.
    pub skip: Vec<PathBuf>,
    /// The most repositories that are sealed.
    pub most: usize,
}

impl Place {
    /// Where commands may write. Our own folder is theirs where it cannot be sealed; what was taken out of repositories
    /// is in the outputs.
    pub fn new(options: &ShellOptions, seals: bool) -> Self {
        let mut roots = vec![options.root.clone()];
        roots.extend(options.writable.iter().cloned());
        let mut skip = vec![options.outputs.clone()];
        skip.extend(seals.then(|| options.root.join(".contexture")));
        Self {
            roots,
            skip,
            most: if seals { MAX_SEALED } else { MAX_REMEMBERED },
        }
    }
}

/// How things are before a command.
#[derive(Default)]
pub struct Before {
    /// Folders of repositories, and files that lead to some, which are to be sealed.
    pub sealed: Vec<PathBuf>,
    since: Stamp,
}

impl Repositories {
    /// Says what there is to seal. All folders are read once for this; later it is known from the last time.
    pub fn before(&mut self, place: &Place) -> Before {
        if !std::mem::replace(&mut self.looked, true) {
            let found = self
                .tree
                .look(&place.roots, &place.skip, Instant::now() + BEFORE);
            self.known = found.repositories;
            self.files = found.files.into_iter().collect();
        }
        let all = self.known.keys().chain(&self.files);
        let mut sealed: Vec<PathBuf> = all
            .filter(|path| !self.made.contains(*path))
            .cloned()
            .collect();
        sealed.retain(|path| fs::symlink_metadata(path).is_ok());
        sealed.sort_by_cached_key(|path| (path.components().count(), path.clone()));
        sealed.truncate(place.most);
        let (seconds, nanoseconds) = tree::now();
        Before {
            sealed,
            since: (seconds - BEHIND, nanoseconds),
        }
    }

    /// Takes out what git would run of what a command made or changed. Gives what there is to say about it.
    pub fn after(&mut self, place: &Place, before: &Before, folder: &Folder) -> Vec<String> {
        let found = self
            .tree
            .look(&place.roots, &place.skip, Instant::now() + AFTER);
        let root = place.roots.first().map_or(Path::new("/"), PathBuf::as_path);
        let mut neutral = Neutral::new(&place.roots, before.since, folder);
        let mut repositories: Vec<_> = found.repositories.iter().collect();
        repositories.sort();
        for (path, identity) in repositories {
            if before.sealed.contains(path) {
                continue;
            }
            let fresh = self.known.get(path) != Some(identity) && neutral.is_changed(path);
            if fresh {
                self.made.insert(path.clone());
            }
            neutral.repository(path, fresh);
        }
        let files: HashSet<PathBuf> = found.files.into_iter().collect();
        let new: Vec<&PathBuf> = files
            .difference(&self.files)
            .filter(|path| neutral.is_changed(path))
            .collect();
        if !new.is_empty() {
            let used = self
                .files
                .iter()
                .filter_map(|path| configured(path))
                .collect();
            new.iter().for_each(|path| neutral.pointer(path, &used));
        }
        self.made.extend(new.into_iter().cloned());
        let mut said = neutral.said;
        let shown = |path: &Path| {
            path.strip_prefix(root)
                .unwrap_or(path)
                .display()
                .to_string()
        };
        for path in &found.unread {
            let changed = |about: fs::Metadata| stamp(&about) >= before.since;
            if fs::symlink_metadata(path).is_ok_and(changed) {
                said.push(words::not_looked_into(&shown(path)));
            }
        }
        match &found.cut {
            Some(path) => {
                said.push(words::looked_too_long(&shown(path)));
                self.known.extend(found.repositories);
                self.files.extend(files);
            }
            None => {
                self.made
                    .retain(|path| found.repositories.contains_key(path) || files.contains(path));
                self.known = found.repositories;
                self.files = files;
            }
        }
        said
    }
}
