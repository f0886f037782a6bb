//! What is different in a folder from what the user trusted there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::lines::{self, Line};
use super::seen::{self, Seen, SeenFile};
use crate::view::{Paint, plural, revealed, safe, thousands};

/// A file that is different.
#[derive(Debug)]
pub struct Change {
    /// Its path from the root.
    pub name: String,
    pub kind: ChangeKind,
    before: Option<String>,
    now: Option<String>,
}

/// How it is different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    New,
    Changed,
    /// Gone from a skill that is still there.
    Gone,
}

/// The most lines of a file's change that are shown, and the most characters of a line.
const MAX_LINES: usize = 200;
const MAX_LINE_CHARS: usize = 500;

/// What is different in `seen` from the digests on record; `kept` says what there was.
pub fn between(known: &BTreeMap<String, String>, kept: &[SeenFile], seen: &Seen) -> Vec<Change> {
    let mut changes = Vec::new();
    let different = |name: &&String| known.get(*name) != seen.digests().get(*name);
    for name in seen.digests().keys().filter(different) {
        let is_skill = name.ends_with('/');
        let is_part =
            |file: &&SeenFile| file.name == *name || is_skill && file.name.starts_with(name);
        let before: Vec<&SeenFile> = kept.iter().filter(is_part).collect();
        // The texts are only believed as far as the record confirms them.
        let before = match known.get(name) {
            Some(digest) if *digest == digest_of(name, &before) => before,
            _ => Vec::new(),
        };
        let was = |name: &str| before.iter().find(|file| file.name == name);
        for file in seen.files().iter().filter(is_part) {
            let was = was(&file.name);
            if was.is_some_and(|was| was.digest == file.digest) {
                continue;
            }
            let is_lost = before.is_empty() && known.contains_key(name);
            let kind = if was.is_some() || is_lost {
                ChangeKind::Changed
            } else {
                ChangeKind::New
            };
            changes.push(Change {
                name: file.name.clone(),
                kind,
                before: was.and_then(|was| was.text.clone()),
                now: file.text.clone(),
            });
        }
        let is_there = |was: &SeenFile| seen.files().iter().any(|file| file.name == was.name);
        for was in before.into_iter().filter(|was| !is_there(was)) {
            changes.push(Change {
                name: was.name.clone(),
                kind: ChangeKind::Gone,
                before: None,
                now: None,
            });
        }
    }
    changes
}

fn digest_of(name: &str, files: &[&SeenFile]) -> String {
    if name.ends_with('/') {
        let parts = files.iter().map(|file| {
            let path = file.name.strip_prefix(name).unwrap_or(&file.name);
            (path, file.digest.as_str())
        });
        return seen::digest_of(parts);
    }
    files
        .first()
        .map_or_else(String::new, |file| file.digest.clone())
}

impl Change {
    /// The change for a person: each line that is different, with hidden characters spelled out.
    pub fn in_words(&self, paint: Paint) -> String {
        let mut out = format!("  {} {}\n", paint.bold(&safe(&self.name)), self.headline());
        for (sign, text) in self.lines() {
            let text = format!("{sign} {text}");
            let text = match sign {
                '+' => paint.fg(71, &text),
                '-' => paint.fg(167, &text),
                _ => paint.dim(&text),
            };
            let _ = writeln!(out, "    {text}");
        }
        out
    }

    /// The change for a program.
    pub fn to_value(&self) -> Value {
        let kind = match self.kind {
            ChangeKind::New => "new",
            ChangeKind::Changed => "changed",
            ChangeKind::Gone => "gone",
        };
        let lines = self.lines().into_iter();
        let lines: Vec<String> = lines.map(|(sign, text)| format!("{sign} {text}")).collect();
        json!({ "file": self.name, "change": kind, "lines": lines })
    }

    fn headline(&self) -> &'static str {
        match (self.kind, &self.before, &self.now) {
            (ChangeKind::New, _, Some(_)) => "is new:",
            (ChangeKind::New, ..) => "is new; it is no text, or too long to be shown",
            (ChangeKind::Gone, ..) => "is gone",
            (ChangeKind::Changed, Some(before), Some(now)) if before == now => {
                "has changed behind the part that is used"
            }
            (ChangeKind::Changed, Some(_), Some(_)) => "has changed:",
            (ChangeKind::Changed, None, Some(_)) => {
                "has changed; what it was is not kept, so this is all of it:"
            }
            (ChangeKind::Changed, ..) => "has changed; it is no text, or too long to be shown",
        }
    }

    /// The lines with their signs, as many as are shown.
    fn lines(&self) -> Vec<(char, String)> {
        let Some(now) = &self.now else {
            return Vec::new();
        };
        let before = self.before.as_deref().unwrap_or_default();
        let all = lines::between(before, now);
        let mut shown: Vec<(char, String)> = all.iter().take(MAX_LINES).map(shown).collect();
        if let Some(left) = all.len().checked_sub(MAX_LINES).filter(|left| *left > 0) {
            let rest = format!("{} more: open the file to see them", plural(left, "line"));
            shown.push(('…', rest));
        }
        shown
    }
}

fn shown(line: &Line<'_>) -> (char, String) {
    let (sign, text) = match line {
        Line::Same(text) => (' ', *text),
        Line::Added(text) => ('+', *text),
        Line::Removed(text) => ('-', *text),
        Line::Skipped => return ('…', String::new()),
    };
    let mut text = match text.char_indices().nth(MAX_LINE_CHARS) {
        None => revealed(text),
        Some((end, _)) => {
            let left = text[end..].chars().count();
            format!(
                "{} … and {} characters more",
                revealed(&text[..end]),
                thousands(left)
            )
        }
    };
    if sign == ' ' {
        text.truncate(text.trim_end().len());
    }
    (sign, text)
}
