//! What a message says, in words alone, for the forms that have no place for more.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::data_url::Picture;
use super::{Content, Message, Part};

/// Before what a tool gave back when its call is not in the conversation.
pub(super) const ORPHAN: &str = "[tool result without its call]";

/// The longest piece of a name or a type that is shown.
const SHOWN_MAX: usize = 100;

/// All of the content as one text.
pub(super) fn flat(message: &Message) -> Cow<'_, str> {
    match &message.content {
        Content::Parts(parts) if parts.iter().any(|part| part.text().is_none()) => {
            let texts: Vec<_> = parts.iter().filter_map(words).collect();
            texts.join("\n").into()
        }
        _ => message.text(),
    }
}

/// The part in words: its text, or what is left out; nothing where that is blank.
pub(crate) fn words(part: &Part) -> Option<Cow<'_, str>> {
    let words: Cow<'_, str> = match part {
        Part::Text { text, .. } => text.into(),
        Part::Image { image_url, .. } => match string(image_url, "url").and_then(Picture::at) {
            Some(_) => "[image left out: only a user turn can show one]".into(),
            None => "[image left out: unsupported address]".into(),
        },
        Part::File { file, .. } => {
            let name = ["filename", "file_id"]
                .iter()
                .find_map(|key| string(file, key))
                .map_or("unnamed".into(), label);
            format!("[file left out: {name}]").into()
        }
        Part::Thinking { .. } => return None,
        Part::Other(map) if is_redacted(map) => return None,
        // A refusal is what an assistant said in place of a text.
        Part::Other(map) => match ["text", "refusal"]
            .iter()
            .find_map(|key| map.get(*key)?.as_str())
        {
            Some(text) => text.into(),
            None => {
                let tag = string(map, "type").map_or("unknown".into(), label);
                format!("[part of type {tag} left out]").into()
            }
        },
    };
    (!is_blank(&words)).then_some(words)
}

/// The speaker's name as it stands before a text, where the form has no field for it.
pub(super) fn speaker(message: &Message) -> Option<String> {
    let name = message.name.as_deref().filter(|name| !is_blank(name))?;
    // Nothing in a name may look like the end of it, or like another line.
    let name = label(name).replace(|c: char| c.is_whitespace() || matches!(c, '[' | ']'), "_");
    Some(format!("[{name}]:"))
}

pub(super) fn is_redacted(map: &Map<String, Value>) -> bool {
    map.get("type")
        .is_some_and(|tag| tag == "redacted_thinking")
}

/// The string at `key`, if there is more than blanks in it.
pub(super) fn string<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key)?.as_str().filter(|text| !is_blank(text))
}

/// `text` as a short label on one line.
pub(super) fn label(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '_' } else { c };
    text.chars().take(SHOWN_MAX).map(shown).collect()
}

pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(is_blank_char)
}

/// Whether Anthropic strips it: white space, and the four separators that Python counts to it.
pub(super) fn is_blank_char(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}
