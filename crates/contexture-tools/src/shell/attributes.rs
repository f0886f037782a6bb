//! Permissions of files outside of the project, where the sandbox cannot keep commands from changing them: those that
//! matter most are put back.

use std::collections::VecDeque;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::words;

/// The most files that are remembered.
const MAX_FILES: usize = 4_000;
const PERMISSIONS: u32 = 0o7777;

/// The permissions of credentials, of the home, and of what lies right in it.
#[derive(Default)]
pub struct Modes {
    kept: Vec<Kept>,
}

struct Kept {
    path: PathBuf,
    /// The device and the number of the file: another in its place is not changed.
    which: (u64, u64),
    mode: u32,
}

impl Modes {
    /// Remembers them, but for what lies where commands may write.
    pub fn new(home: &Path, denied: &[PathBuf], writable: &[PathBuf]) -> Self {
        let mut modes = Self::default();
        let mut left: VecDeque<PathBuf> = denied.iter().cloned().collect();
        let entries = fs::read_dir(home).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).chain([home.to_owned()]) {
            modes.keep(&path, writable);
        }
        while let Some(path) = left.pop_front().filter(|_| modes.kept.len() < MAX_FILES) {
            if modes.keep(&path, writable) {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                left.extend(entries.take(MAX_FILES).map(|entry| entry.path()));
            }
        }
        modes
    }

    /// Remembers a path, and says whether it is a folder.
    fn keep(&mut self, path: &Path, writable: &[PathBuf]) -> bool {
        let about = fs::symlink_metadata(path).ok();
        let about = about.filter(|about| !about.is_symlink());
        let Some(about) = about.filter(|_| !writable.iter().any(|root| path.starts_with(root)))
        else {
            return false;
        };
        self.kept.push(Kept {
            path: path.to_owned(),
            which: (about.dev(), about.ino()),
            mode: about.mode() & PERMISSIONS,
        });
        about.is_dir()
    }

    /// Puts back what was changed. Gives what there is to say about it.
    pub fn put_back(&self) -> Vec<String> {
        self.kept.iter().filter_map(Kept::put_back).collect()
    }
}

impl Kept {
    fn put_back(&self) -> Option<String> {
        let about = fs::symlink_metadata(&self.path).ok()?;
        let made = about.mode() & PERMISSIONS;
        if (about.dev(), about.ino()) != self.which || made == self.mode {
            return None;
        }
        let name = self.path.display().to_string();
        Some(
            match fs::set_permissions(&self.path, Permissions::from_mode(self.mode)) {
                Ok(()) => words::mode_put_back(&name, made, self.mode),
                Err(error) => words::mode_not_put_back(&name, made, self.mode, &error.to_string()),
            },
        )
    }
}
