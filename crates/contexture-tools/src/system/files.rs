//! `Agent.md` and `AGENTS.md`, within bounds, each read once: what is judged is what is used.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Notice;
use crate::file;
use crate::plain::one_line;

/// The most bytes that are used of one file, and of all.
const EACH: usize = 32 << 10;
const ALL: usize = 64 << 10;

/// The folder of a project's templates.
const TEMPLATES: &str = ".contexture/templates";
/// The most templates of a project.
const MAX_TEMPLATES: usize = 64;
/// The most files of that folder that are looked at.
const MAX_LISTED: usize = 1_000;

/// The most folders between the root and where the agent works.
const DEEPEST: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Agent,
    Agents,
    Template,
}

/// The project's instruction files: `Agent.md` in the root, then `AGENTS.md` in each folder from the root down to where
/// the agent works, then the templates that stand in the place of ours.
#[derive(Debug, Clone, Default)]
pub struct Instructions {
    files: Vec<Instruction>,
}

/// An instruction file.
#[derive(Debug, Clone)]
pub struct Instruction {
    kind: Kind,
    shown: String,
    content: Result<Content, String>,
}

#[derive(Debug, Clone)]
struct Content {
    text: String,
    size: u64,
    digest: String,
}

/// A file as far as it is used.
pub(super) struct Used<'a> {
    pub kind: Kind,
    /// Its path from the root, on one line.
    pub shown: &'a str,
    text: &'a str,
    cut: u64,
}

impl Instructions {
    /// Reads the files that are there.
    pub fn read(root: &Path, cwd: &Path) -> Self {
        let found = candidates(root, cwd).into_iter();
        let found = found.filter(|(_, path)| path.symlink_metadata().is_ok());
        let files = found.map(|(kind, path)| Instruction {
            kind,
            shown: shown(root, &path),
            content: content(root, &path),
        });
        Self {
            files: files.collect(),
        }
    }

    /// The files, also those that cannot be used.
    pub fn files(&self) -> &[Instruction] {
        &self.files
    }

    /// The project's templates: the name of each, its path from the root, and its text or why it cannot be used.
    pub fn templates(&self) -> impl Iterator<Item = (&str, &str, Result<&str, String>)> {
        let all = self.files.iter().filter(|file| file.kind == Kind::Template);
        all.map(|file| {
            let name = file.shown.rsplit('/').next().unwrap_or_default();
            let text = match &file.content {
                Ok(content) if content.size > EACH as u64 => {
                    Err(format!("it has more than {} KiB", EACH >> 10))
                }
                Ok(content) => Ok(content.text.as_str()),
                Err(why) => Err(why.clone()),
            };
            (name.trim_end_matches(".md"), file.shown.as_str(), text)
        })
    }

    /// What is used of them. Room is given to the nearest file first, because it is the most particular.
    pub(super) fn used(&self, notices: &mut Vec<Notice>) -> Vec<Used<'_>> {
        let mut room = ALL;
        let mut used = Vec::new();
        let spoken = self.files.iter().filter(|file| file.kind != Kind::Template);
        for file in spoken.rev() {
            let mut notice = |what: String, hint: &str| {
                notices.push(Notice {
                    place: file.shown.clone(),
                    what,
                    hint: hint.to_owned(),
                });
            };
            let content = match &file.content {
                Ok(content) => content,
                Err(what) => {
                    notice(
                        format!("left out: {what}"),
                        "make it a plain text file in the project",
                    );
                    continue;
                }
            };
            let end = content.text.floor_char_boundary(room);
            let text = &content.text[..end];
            room -= text.len();
            let cut = content.size.saturating_sub(text.len() as u64);
            if cut > 0 {
                let hint = format!(
                    "at most {} KiB a file and {} KiB in all are used",
                    EACH >> 10,
                    ALL >> 10
                );
                notice(format!("{cut} bytes at its end are left out"), &hint);
            }
            if cut > 0 || !text.trim().is_empty() {
                used.push(Used {
                    kind: file.kind,
                    shown: &file.shown,
                    text: text.trim(),
                    cut,
                });
            }
        }
        used.reverse();
        notices.reverse();
        used
    }
}

impl Instruction {
    /// Its path from the root, on one line.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The digest of all its bytes; none where it cannot be used.
    pub fn digest(&self) -> Option<&str> {
        self.content
            .as_ref()
            .ok()
            .map(|content| content.digest.as_str())
    }

    /// Its text, as far as it could ever be used.
    pub fn text(&self) -> Option<&str> {
        self.content
            .as_ref()
            .ok()
            .map(|content| content.text.as_str())
    }
}

impl Used<'_> {
    /// What the template takes. The agent's own file speaks for itself, without a heading.
    pub(super) fn values(&self) -> Value {
        let path = match self.kind {
            Kind::Agent => "",
            Kind::Agents | Kind::Template => self.shown,
        };
        json!({ "path": path, "text": self.text, "cut": self.cut })
    }
}

/// The path from the root, on one line.
fn shown(root: &Path, path: &Path) -> String {
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
    all.extend(
        templates(root)
            .into_iter()
            .map(|path| (Kind::Template, path)),
    );
    all
}

/// The files of the folder of templates, by name.
fn templates(root: &Path) -> Vec<PathBuf> {
    let Ok(folder) = std::fs::read_dir(root.join(TEMPLATES)) else {
        return Vec::new();
    };
    let paths = folder.filter_map(|entry| Some(entry.ok()?.path()));
    let is_template = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let mut all: Vec<PathBuf> = paths.filter(is_template).take(MAX_LISTED).collect();
    all.sort();
    all.truncate(MAX_TEMPLATES);
    all
}

/// A file's text, as far as it could be used, and the digest of all of it. A link may not lead out of the project: what
/// it leads to would be sent to a model.
fn content(root: &Path, path: &Path) -> Result<Content, String> {
    let root = root.canonicalize().map_err(|error| error.to_string())?;
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(&root) {
        return Err("it is a link that leads out of the project".to_owned());
    }
    let file = file::digested(&real, EACH).map_err(|error| error.to_string())?;
    let mut bytes = file.beginning;
    if let Err(error) = std::str::from_utf8(&bytes) {
        // The limit may fall inside a character.
        let whole = file.size == bytes.len() as u64;
        if whole || error.error_len().is_some() {
            return Err("it is not UTF-8".to_owned());
        }
        bytes.truncate(error.valid_up_to());
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(Content {
        text,
        size: file.size,
        digest: file.digest,
    })
}
