//! `Agent.md` and `AGENTS.md`, within bounds.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Notice;
use crate::file;
use crate::plain::one_line;

/// The most bytes of one file, and of all.
const EACH: usize = 32 << 10;
const ALL: usize = 64 << 10;

/// The most folders between the root and where the agent works.
const DEEPEST: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Agent,
    Agents,
}

/// A file as far as it was read.
pub(super) struct Read {
    pub kind: Kind,
    /// Its path from the root, on one line.
    pub shown: String,
    text: String,
    cut: u64,
}

impl Read {
    /// What the template takes. The agent's own file speaks for itself, without a heading.
    pub(super) fn values(&self) -> Value {
        let path = match self.kind {
            Kind::Agent => "",
            Kind::Agents => &self.shown,
        };
        json!({ "path": path, "text": self.text, "cut": self.cut })
    }
}

/// The project's instructions that are there: `Agent.md` in the root, then `AGENTS.md` in each folder
/// from the root down to where the agent works.
pub fn instructions(root: &Path, cwd: &Path) -> Vec<PathBuf> {
    let found = candidates(root, cwd).into_iter();
    found
        .map(|(_, path)| path)
        .filter(|path| path.symlink_metadata().is_ok())
        .collect()
}

/// Reads them. Room is given to the nearest file first, because it is the most particular.
pub(super) fn read(root: &Path, cwd: &Path, notices: &mut Vec<Notice>) -> Vec<Read> {
    let mut room = ALL;
    let mut files = Vec::new();
    for (kind, path) in candidates(root, cwd).into_iter().rev() {
        if path.symlink_metadata().is_err() {
            continue;
        }
        let shown = shown(root, &path);
        let mut notice = |what: String, hint: &str| {
            notices.push(Notice {
                place: shown.clone(),
                what,
                hint: hint.to_owned(),
            });
        };
        match bounded(root, &path, EACH.min(room)) {
            Err(what) => notice(
                format!("left out: {what}"),
                "make it a plain text file in the project",
            ),
            Ok((text, cut)) => {
                room -= text.len();
                if cut > 0 {
                    let hint = format!(
                        "at most {} KiB a file and {} KiB in all are used",
                        EACH >> 10,
                        ALL >> 10
                    );
                    notice(format!("{cut} bytes at its end are left out"), &hint);
                }
                if cut > 0 || !text.trim().is_empty() {
                    files.push(Read {
                        kind,
                        shown,
                        text: text.trim().to_owned(),
                        cut,
                    });
                }
            }
        }
    }
    files.reverse();
    notices.reverse();
    files
}

/// The path from the root, on one line.
pub(super) fn shown(root: &Path, path: &Path) -> String {
    one_line(
        &path
            .strip_prefix(root)
            .unwrap_or(path)
            .display()
            .to_string(),
    )
}

fn candidates(root: &Path, cwd: &Path) -> Vec<(Kind, PathBuf)> {
    let mut all = vec![(Kind::Agent, root.join("Agent.md"))];
    all.push((Kind::Agents, root.join("AGENTS.md")));
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Ok(below) = real(cwd).strip_prefix(real(root)) {
        let mut folder = root.to_owned();
        for part in below.components().take(DEEPEST) {
            folder.push(part);
            all.push((Kind::Agents, folder.join("AGENTS.md")));
        }
    }
    all
}

/// At most `most` bytes of the file, and how many are left out. A link may not lead out of the
/// project: what it leads to would be sent to a model.
fn bounded(root: &Path, path: &Path, most: usize) -> Result<(String, u64), String> {
    let root = root.canonicalize().map_err(|error| error.to_string())?;
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(&root) {
        return Err("it is a link that leads out of the project".to_owned());
    }
    let (mut bytes, more) = file::read(&real, most).map_err(|error| error.to_string())?;
    if let Err(error) = std::str::from_utf8(&bytes) {
        // The limit may fall inside a character.
        if !more || error.error_len().is_some() {
            return Err("it is not UTF-8".to_owned());
        }
        bytes.truncate(error.valid_up_to());
    }
    let size = real.metadata().map_or(0, |about| about.len());
    let cut = match more {
        true => size.saturating_sub(bytes.len() as u64).max(1),
        false => 0,
    };
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok((text, cut))
}
