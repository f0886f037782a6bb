//! Session files of other tools, read into entries without loss.
//!
//! What has a place of its own goes there: messages, calls, results, thinking, compactions, branches.
//! The rest of a line stays with the entry that was made of it, in `meta.source`, and a line that no
//! entry type fits becomes a `custom` entry with the line in it. Whatever comes out folds.

mod claude_code;
mod codex;
mod fields;
mod log;
mod parts;
mod pi;
mod transcript;

use std::collections::BTreeMap;
use std::slice;

use serde_json::{Map, Value};

use crate::json::{self, MAX_HELD_BYTES};
use crate::{ContextError, Entry, Payload, Role};

/// A session file, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Whose file it is.
    pub source: Source,
    /// The log that it becomes.
    pub entries: Vec<Entry>,
    /// What has no place of its own and is kept beside: fields in `meta.source` as
    /// `claude-code.user.gitBranch`, whole lines in `custom` entries as `claude-code.attachment`, each
    /// with how often it came.
    pub kept: BTreeMap<String, usize>,
    /// Lines that could not be read, by number, with the reason.
    pub skipped: Vec<(usize, String)>,
}

/// Whose session file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Claude Code: `~/.claude/projects/*/*.jsonl`.
    ClaudeCode,
    /// Codex: `~/.codex/sessions/**/rollout-*.jsonl`.
    Codex,
    /// pi: `~/.pi/agent/sessions/**/*.jsonl`.
    Pi,
    /// Whatever a build reads: entries, messages, a request's body.
    Transcript,
}

impl Source {
    /// Its name in `kept` and in `custom` entries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Pi => "pi",
            Self::Transcript => "transcript",
        }
    }
}

impl Imported {
    /// Reads a session file. Its content says whose it is.
    ///
    /// In another tool's file a line that is no JSON object is skipped and named; such files end in the
    /// middle of a line when the tool was killed. Our own forms are read strictly.
    pub fn read(bytes: &[u8]) -> Result<Self, ContextError> {
        // The lines are held together.
        if !json::fits(bytes, MAX_HELD_BYTES) {
            return Err(json::too_large(1, MAX_HELD_BYTES));
        }
        match detect(bytes) {
            Source::ClaudeCode => Ok(claude_code::read(Lines::of(bytes))),
            Source::Codex => Ok(codex::read(Lines::of(bytes))),
            Source::Pi => Ok(pi::read(Lines::of(bytes))),
            Source::Transcript => transcript::read(bytes),
        }
    }
}

/// The model of a session, as far as its log says: that of its last request, the last that was chosen, or that answered
/// in the tool whose session it was.
pub fn model<'a>(log: impl DoubleEndedIterator<Item = &'a Entry>) -> Option<&'a str> {
    log.rev().find_map(|entry| match &entry.payload {
        Payload::Request(record) => record.model.as_deref(),
        Payload::ModelChange(data) => data.get("model")?.as_str(),
        Payload::Message { message } if message.role == Role::Assistant => {
            let named = source(entry).iter().find_map(named);
            // What a tool said in a model's place is in angle brackets.
            named.filter(|name| !name.starts_with('<'))
        }
        _ => None,
    })
}

/// Returns true if the entry is what a helper of the conversation said, or was told, in the tool whose session it was.
pub fn is_helpers(entry: &Entry) -> bool {
    let aside = |line: &Value| line.get("isSidechain") == Some(&Value::Bool(true));
    source(entry).iter().any(aside)
}

/// The remains of the lines that became an entry.
fn source(entry: &Entry) -> &[Value] {
    let source = entry.meta.as_ref().and_then(|meta| meta.get("source"));
    match source {
        Some(Value::Array(lines)) => lines,
        Some(line) => slice::from_ref(line),
        None => &[],
    }
}

fn named(line: &Value) -> Option<&str> {
    line.get("message")?.get("model")?.as_str()
}

type Object = Map<String, Value>;

/// The lines of a file that are JSON objects.
struct Lines {
    read: Vec<Object>,
    skipped: Vec<(usize, String)>,
}

impl Lines {
    fn of(bytes: &[u8]) -> Self {
        let mut lines = Self {
            read: Vec::new(),
            skipped: Vec::new(),
        };
        for (number, line) in numbered(bytes) {
            match json::parse(line, number) {
                Ok(Value::Object(map)) => lines.read.push(map),
                Ok(other) => {
                    let what = format!("must be an object, is {}", json::kind(&other));
                    lines.skipped.push((number, what));
                }
                Err(error) => lines.skipped.push((number, error.to_string())),
            }
        }
        lines
    }
}

/// The lines that are not blank, with their numbers.
fn numbered(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    // Editors on one system write a mark before the first line.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes
        .split(|&b| b == b'\n')
        .enumerate()
        .map(|(n, line)| (n + 1, line))
        .filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace))
}

/// Whose file it is: the first line that can be of one tool only decides.
fn detect(bytes: &[u8]) -> Source {
    for (number, line) in numbered(bytes) {
        if !line.trim_ascii_start().starts_with(b"{") {
            continue;
        }
        if let Ok(Value::Object(map)) = json::parse(line, number)
            && let Some(source) = owner(&map)
        {
            return source;
        }
    }
    Source::Transcript
}

/// Who writes lines like this one.
fn owner(map: &Object) -> Option<Source> {
    let has = |key: &str| map.contains_key(key);
    let object = |key: &str| matches!(map.get(key), Some(Value::Object(_)));
    let tag = map.get("type").and_then(Value::as_str);
    if has("messages") || has("sessionEntries") || (has("payload") && has("id")) {
        return Some(Source::Transcript);
    }
    if let Some(tag) = tag {
        if codex::is_envelope(tag) && has("payload") {
            return Some(Source::Codex);
        }
        if has("parentUuid") || has("leafUuid") || (has("sessionId") && !has("message")) {
            return Some(Source::ClaudeCode);
        }
        if matches!(tag, "user" | "assistant") && object("message") {
            return Some(Source::ClaudeCode);
        }
        if tag == "file-history-snapshot" {
            return Some(Source::ClaudeCode);
        }
        if pi::is_entry(tag) && !has("payload") && (has("timestamp") || object("message")) {
            return Some(Source::Pi);
        }
        if codex::is_bare(tag, map) {
            return Some(Source::Codex);
        }
    }
    if has("record_type") || (tag.is_none() && has("id") && has("timestamp") && !has("role")) {
        return Some(Source::Codex);
    }
    (has("role") || has("payload")).then_some(Source::Transcript)
}
