//! A message as a reader sees it: a few kinds of blocks, whatever form it was written in.

use serde_json::{Map, Value};

use crate::{Content, Message, Part, json};

/// A piece of a message.
pub(super) enum Block<'a> {
    Text(&'a str),
    Thinking(&'a str),
    /// An image that the message holds itself.
    Picture(&'a str),
    /// What cannot be shown, in words.
    Note(String),
    /// Data that no other kind fits, under its name.
    Data(String, String),
    Call {
        name: &'a str,
        id: &'a str,
        arguments: String,
    },
}

/// Fields in which several servers give a model's thoughts.
const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

/// The message's blocks: thoughts first, for they came first, and calls last.
pub(super) fn blocks(message: &Message) -> Vec<Block<'_>> {
    let mut out = Vec::new();
    for thought in THOUGHTS.iter().filter_map(|key| message.extra.get(*key)) {
        out.extend(thought.as_str().map(Block::Thinking));
    }
    match &message.content {
        Content::Null => {}
        Content::Text(text) => out.push(Block::Text(text)),
        Content::Parts(parts) => out.extend(parts.iter().map(part)),
    }
    for call in &message.tool_calls {
        out.push(Block::Call {
            name: &call.name,
            id: &call.id,
            arguments: pretty(&call.arguments),
        });
    }
    let known = |key: &str, value: &Value| THOUGHTS.contains(&key) && value.is_string();
    for (key, value) in &message.extra {
        if !value.is_null() && !known(key, value) {
            out.push(Block::Data(key.clone(), pretty_value(value)));
        }
    }
    out.retain(|block| match block {
        Block::Text(text) | Block::Thinking(text) => !text.trim().is_empty(),
        _ => true,
    });
    out
}

fn part(part: &Part) -> Block<'_> {
    match part {
        Part::Text { text, .. } => Block::Text(text),
        Part::Thinking { thinking, .. } => Block::Thinking(thinking),
        Part::Image { image_url, .. } => image(image_url),
        Part::File { file, .. } => {
            let field = |key: &str| file.get(key).and_then(Value::as_str);
            let name = field("filename").or_else(|| field("file_id"));
            let size = field("file_data").map_or(String::new(), |data| size(data.len() / 4 * 3));
            Block::Note(format!("file: {}{size}", name.unwrap_or("without a name")))
        }
        Part::Other(whole) => {
            let tag = whole.get("type").and_then(Value::as_str);
            let whole = pretty_value(&Value::Object(whole.clone()));
            Block::Data(tag.unwrap_or("part").to_owned(), whole)
        }
    }
}

/// Pictures of a kind that every reader draws, and that cannot hold anything but a picture.
const DRAWN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

fn image(image_url: &Map<String, Value>) -> Block<'_> {
    let url = image_url.get("url").and_then(Value::as_str).unwrap_or("");
    let Some(data) = url.strip_prefix("data:") else {
        return Block::Note(format!("image at {url}"));
    };
    let (kind, data) = data.split_once(";base64,").unwrap_or((data, ""));
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    if DRAWN.contains(&kind) && !data.is_empty() && data.chars().all(is_base64) {
        return Block::Picture(url);
    }
    let kind = kind.split([',', ';']).next().unwrap_or("");
    Block::Note(format!("image: {kind}{}", size(data.len() / 4 * 3)))
}

impl Block<'_> {
    /// What a picture is, where it cannot be drawn.
    pub(super) fn picture_note(url: &str) -> String {
        let kind = url.strip_prefix("data:").and_then(|u| u.split(';').next());
        let kind = kind.unwrap_or("data");
        format!("image: {kind}{}", size(url.len() / 4 * 3))
    }
}

/// `, 12 kB`.
fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!(", {bytes} bytes"),
        _ => format!(", {} kB", bytes / 1_000),
    }
}

/// JSON with a line for each field, unless it is short; what is no JSON as it is.
fn pretty(text: &str) -> String {
    match json::from_text::<Value>(text) {
        Ok(value) => pretty_value(&value),
        Err(_) => text.to_owned(),
    }
}

fn pretty_value(value: &Value) -> String {
    const SHORT: usize = 80;
    let compact = value.to_string();
    match compact.len() {
        0..=SHORT => compact,
        _ => serde_json::to_string_pretty(value).unwrap_or(compact),
    }
}
