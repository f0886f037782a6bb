//! Where a stream's file is.

use crate::{Key, Kind, Stream};

/// Where the streams of a kind are, and how the names of their files end.
pub fn home(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Session => ("sessions", "/log.jsonl"),
        Kind::Chat => ("chats", "/history.jsonl"),
        Kind::Memory => ("memory/agent-context", ".jsonl"),
        Kind::Agent => ("agents", ".jsonl"),
        Kind::Canvas => ("canvas", ".jsonl"),
        Kind::Events => ("events", ".jsonl"),
        Kind::Pool => ("pool", ".jsonl"),
    }
}

/// The folder of a kind.
pub fn folder(kind: Kind) -> &'static str {
    home(kind).0
}

/// The stream that a name in the folder of its kind stands for.
pub fn stream_of(kind: Kind, name: &str) -> Option<Stream> {
    let (_, ending) = home(kind);
    let name = match ending.starts_with('/') {
        true => name,
        false => name.strip_suffix(ending)?,
    };
    let key = Key::from_file_name(name)?;
    Some(Stream { kind, key })
}

/// A stream's file.
pub fn path(stream: &Stream) -> String {
    let (folder, ending) = home(stream.kind);
    format!("{folder}/{}{ending}", stream.key.file_name())
}

/// The file that its writer locks.
pub fn lock_path(path: &str) -> String {
    format!("{}.lock", path.strip_suffix(".jsonl").unwrap_or(path))
}
