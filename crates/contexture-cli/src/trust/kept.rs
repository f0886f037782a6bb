//! The texts of what the user trusted, kept in the user's state so that a change can be shown.

use std::path::{Path, PathBuf};

use contexture::json;
use contexture_store::UserState;
use serde::{Deserialize, Serialize};

use super::record::write_private;
use super::seen::{Seen, SeenFile};
use crate::{input, user};

#[derive(Serialize, Deserialize)]
struct Kept {
    version: u64,
    files: Vec<SeenFile>,
}

const VERSION: u64 = 1;
const FILE: &str = "trusted.json";
/// The most bytes of all texts together.
const MAX_TEXT_BYTES: usize = 1 << 20;
const MAX_FILE_BYTES: usize = 8 << 20;

/// The files as they were trusted; none where they are not kept. Whoever uses one compares its digest with the record.
pub fn load(root: &Path) -> Vec<SeenFile> {
    let read = || -> Option<Kept> {
        let bytes = input::small_file(&path(root)?, MAX_FILE_BYTES).ok()?;
        serde_json::from_value(json::parse(&bytes, 1).ok()?).ok()
    };
    let kept = read().filter(|kept| kept.version == VERSION);
    kept.map_or_else(Vec::new, |kept| kept.files)
}

/// Keeps the files as they were seen, as far as there is room. Without them a change is still noticed, and shown as a
/// whole.
pub fn save(root: &Path, seen: &Seen) {
    let before = load(root).into_iter();
    let is_seen = |file: &SeenFile| seen.files().iter().any(|known| known.name == file.name);
    // What was trusted in other folders of the project.
    let others = before.filter(|file| !is_seen(file) && !in_seen_skill(&file.name, seen));
    let mut room = MAX_TEXT_BYTES;
    let files = seen.files().iter().cloned().chain(others).map(|mut file| {
        match file.text.as_ref().map(String::len) {
            Some(length) if length <= room => room -= length,
            _ => file.text = None,
        }
        file
    });
    let kept = Kept {
        version: VERSION,
        files: files.collect(),
    };
    let Some(path) = path(root) else { return };
    if let Ok(bytes) = serde_json::to_vec(&kept)
        && bytes.len() <= MAX_FILE_BYTES
    {
        let _ = write_private(&path, &bytes);
    }
}

/// Forgets them.
pub fn remove(root: &Path) {
    if let Some(path) = path(root) {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether the file belonged to a skill that is there, and is not in it any more.
fn in_seen_skill(name: &str, seen: &Seen) -> bool {
    let skills = seen.digests().keys().filter(|name| name.ends_with('/'));
    skills.into_iter().any(|skill| name.starts_with(skill))
}

fn path(root: &Path) -> Option<PathBuf> {
    let state = UserState::new(user::state()?).project(root).ok()?;
    // What others could have changed is not believed.
    state.is_known().ok()?.then(|| state.folder().join(FILE))
}
