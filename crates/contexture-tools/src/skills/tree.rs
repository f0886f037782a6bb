//! One skill's folder: read whole, or refused with the reason.

use std::path::{Path, PathBuf};

use super::front;
use super::{Scope, Skill};
use crate::file::{self, MAX_DIGESTED_BYTES};

/// Something that looks like a skill and cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Where.
    pub folder: PathBuf,
    /// Why.
    pub fault: Fault,
}

/// A file in the folder of a skill that came with a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path in the skill's folder.
    pub path: String,
    /// The digest of its bytes; of a link, of where it leads.
    pub digest: String,
    /// Its text, where it is one and not long.
    pub text: Option<String>,
}

/// Why a skill cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file or folder could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// There is no `SKILL.md`.
    #[error("has no SKILL.md")]
    NoFile,
    /// The file is too long.
    #[error("SKILL.md is longer than {} KiB", MOST_BYTES >> 10)]
    TooLong,
    /// The file is no text.
    #[error("SKILL.md is not UTF-8")]
    NotText,
    /// The file does not begin with front matter.
    #[error("SKILL.md does not begin with front matter between two lines of ---")]
    NoFrontMatter,
    /// The front matter cannot be read, or uses what is not allowed there.
    #[error("its front matter is refused: {0}")]
    BadFrontMatter(String),
    /// The name is none.
    #[error("its name must be 1 to 64 of a-z, 0-9 and -")]
    BadName,
    /// The name is not the folder's.
    #[error("its name is `{0}`, which is not its folder's")]
    NotItsFolder(String),
    /// A field is missing, too long, or of another type.
    #[error("{field}: {what}")]
    BadField {
        /// Which.
        field: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A link in the text leads out of the folder.
    #[error("it refers to `{0}`, outside its folder")]
    RefersOut(String),
    /// The folder, or something in it, is a link that leads out of where it must stay.
    #[error("a symbolic link leads out of the folder of skills")]
    LeadsOut,
    /// There is too much in the folder.
    #[error("has more than {0} files")]
    TooMany(usize),
    /// The files are too long to be looked through.
    #[error("has more than {} MiB in its folder", MAX_DIGESTED_BYTES >> 20)]
    TooLarge,
}

impl Fault {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "check the folder's permissions",
            Self::NoFile => "write one, or move the folder elsewhere",
            Self::TooLong => "move details into files beside it, and refer to them",
            Self::NotText => "save the file as UTF-8",
            Self::NoFrontMatter | Self::BadFrontMatter(_) => {
                "front matter is plain YAML without anchors and aliases, with `name` and `description`"
            }
            Self::BadName | Self::NotItsFolder(_) => "call the folder and the skill the same",
            Self::BadField { .. } => "see docs/skills.md for the fields",
            Self::RefersOut(_) => "keep what it refers to in its own folder",
            Self::LeadsOut => "copy what the link leads to",
            Self::TooMany(_) => "split the folder",
            Self::TooLarge => "keep large files elsewhere in the project",
        }
    }
}

/// The longest `SKILL.md`.
const MOST_BYTES: usize = 256 << 10;
/// The longest file whose text is kept, so that a change of it can be shown.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// The most files of a skill, and how deep they may lie.
const MOST_FILES: usize = 2_000;
const DEEPEST: usize = 16;

/// Reads the skill in a folder.
pub(super) fn read(folder: &Path, scope: Scope) -> Result<Skill, Fault> {
    let real = folder.canonicalize().map_err(unreadable)?;
    let path = real.join("SKILL.md");
    if !real.is_dir() || path.symlink_metadata().is_err() {
        return Err(Fault::NoFile);
    }
    let inside = look_through(&real)?;
    let (files, bytes) = match scope {
        Scope::User => (Vec::new(), whole(&path)?),
        // The same bytes are judged and used.
        Scope::Project => digests(&real, inside)?,
    };
    let text = String::from_utf8(bytes).map_err(|_| Fault::NotText)?;
    let (front, body) = front::split(&text).ok_or(Fault::NoFrontMatter)?;
    let skill = front::read(front, body, folder, scope)?;
    match refers_out(body) {
        Some(target) => Err(Fault::RefersOut(target.chars().take(100).collect())),
        None => Ok(Skill { files, ..skill }),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn unreadable(error: std::io::Error) -> Fault {
    Fault::Unreadable(error.to_string())
}

fn whole(path: &Path) -> Result<Vec<u8>, Fault> {
    match file::read(path, MOST_BYTES).map_err(unreadable)? {
        (_, true) => Err(Fault::TooLong),
        (bytes, false) => Ok(bytes),
    }
}

/// The digests of all that is in the folder, by path, and the bytes of its `SKILL.md`.
fn digests(root: &Path, mut inside: Vec<PathBuf>) -> Result<(Vec<SkillFile>, Vec<u8>), Fault> {
    inside.sort();
    let (mut files, mut own, mut size) = (Vec::new(), None, 0);
    for path in inside {
        let name = path.strip_prefix(root).unwrap_or(&path);
        let mut made = SkillFile {
            path: name.display().to_string(),
            digest: "no ordinary file".to_owned(),
            text: None,
        };
        let about = path.symlink_metadata().map_err(unreadable)?;
        if about.is_symlink() {
            let target = path.read_link().map_err(unreadable)?;
            made.digest = format!("link:{}", target.display());
        } else if about.is_file() {
            let is_own = name == Path::new("SKILL.md");
            let most = if is_own { MOST_BYTES } else { MAX_TEXT_BYTES };
            size += about.len();
            if size > MAX_DIGESTED_BYTES {
                return Err(Fault::TooLarge);
            }
            let read = file::digested(&path, most).map_err(unreadable)?;
            if is_own && read.size > MOST_BYTES as u64 {
                return Err(Fault::TooLong);
            }
            if read.size <= MAX_TEXT_BYTES as u64 {
                made.text = std::str::from_utf8(&read.beginning).ok().map(str::to_owned);
            }
            made.digest = read.digest;
            if is_own {
                own = Some(read.beginning);
            }
        }
        files.push(made);
    }
    // What is no file by itself is a link to one in the folder, or says what it is.
    let own = own.map_or_else(|| whole(&root.join("SKILL.md")), Ok)?;
    Ok((files, own))
}

/// All that is in the folder. Refuses links that lead out of it, and more files than anybody would look through.
fn look_through(root: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut folders = vec![(root.to_owned(), 0)];
    let (mut found, mut count) = (Vec::new(), 0);
    while let Some((folder, depth)) = folders.pop() {
        for item in folder.read_dir().map_err(unreadable)? {
            let item = item.map_err(unreadable)?;
            count += 1;
            if count > MOST_FILES || depth > DEEPEST {
                return Err(Fault::TooMany(MOST_FILES));
            }
            let kind = item.file_type().map_err(unreadable)?;
            let path = item.path();
            if kind.is_dir() {
                folders.push((path, depth + 1));
                continue;
            }
            if kind.is_symlink() {
                // A link to nothing could lead anywhere by the time it is followed.
                match path.canonicalize() {
                    Ok(target) if target.starts_with(root) => {}
                    _ => return Err(Fault::LeadsOut),
                }
            }
            found.push(path);
        }
    }
    Ok(found)
}

/// The first Markdown link to a file above the folder.
fn refers_out(body: &str) -> Option<&str> {
    targets(body).find(|target| {
        let plain = target.to_ascii_lowercase().replace("%2e", ".");
        let plain = plain
            .replace("%2f", "/")
            .replace("%5c", "/")
            .replace('\\', "/");
        let is_address = plain.contains("://") || plain.starts_with("mailto:");
        !is_address && plain.split(['/', '#', '?']).any(|part| part == "..")
    })
}

/// The targets of Markdown's links: `[a](target)` and `[a]: target`.
fn targets(body: &str) -> impl Iterator<Item = &str> {
    let inline = body.split("](").skip(1);
    let defined = body
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('[')?.split_once("]:"))
        .map(|(_, rest)| rest);
    inline.chain(defined).filter_map(|rest| {
        let rest = rest.trim_start();
        let rest = rest.strip_prefix('<').unwrap_or(rest);
        rest.split([')', '>', ' ', '\n', '"']).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_above_are_found() {
        for out in [
            "see [x](../x.md)",
            "![x](a/../../b.png)",
            "[x](<../a b>)",
            "[x](%2E%2e/x)",
            "[x](..\\x)",
            "[x]: ../x",
            "[a](ok.md) and [b](..)",
        ] {
            assert!(refers_out(out).is_some(), "{out}");
        }
        for fine in [
            "cd ../x",
            "[x](a/b.md#..x)",
            "[x](https://e.org/a/../b)",
            "[x](a..b/c)",
            "...",
        ] {
            assert_eq!(refers_out(fine), None, "{fine}");
        }
    }
}
