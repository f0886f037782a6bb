//! What a message says, as blocks.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::block::{Answer, Block, Source, is_blank};
use super::data_url::DataUrl;
use crate::message::{Content, Message, Part, Role};
use crate::text::unclosed;

/// Around an instruction that comes in the middle of a conversation, where the API has no place
/// for one but in a user turn.
const NOTE: (&str, &str) = ("<system-note>\n", "\n</system-note>");

/// The tag of [`NOTE`].
const NOTE_TAG: &str = "system-note";

/// Before what a tool gave back when its call is not in the conversation.
const ORPHAN: &str = "[tool result without its call]";

/// The longest piece of a name or a type that is shown.
const SHOWN_MAX: usize = 100;

/// What a user or an assistant says; calls are not in it.
pub(super) fn said(message: &Message) -> Vec<Block<'_>> {
    let mut blocks = shown(message);
    if !blocks.is_empty() || !message.tool_calls.is_empty() {
        sign(message, &mut blocks);
        // The API takes no assistant turn that ends in thinking.
        if message.role == Role::Assistant {
            blocks.splice(0..0, thoughts(message));
        }
    }
    blocks
}

/// An instruction from before the conversation: the text alone, for the API takes nothing else.
pub(super) fn instruction(message: &Message) -> Option<Block<'_>> {
    let mut blocks = Vec::from_iter(Block::text(flat(message)));
    if !blocks.is_empty() {
        sign(message, &mut blocks);
    }
    blocks.pop()
}

/// An instruction in the midst of the conversation, as a part of a user turn.
pub(super) fn note(message: &Message) -> Option<Block<'_>> {
    match instruction(message)? {
        Block::Text { text } => {
            let (open, close) = NOTE;
            Block::text(format!("{open}{}{close}", unclosed(&text, NOTE_TAG)))
        }
        _ => None,
    }
}

/// What a tool gave back. A tool's `name` is its call's and stands there.
pub(super) fn answer(message: &Message) -> Answer<'_> {
    let blocks = shown(message);
    if !blocks
        .iter()
        .all(|block| matches!(block, Block::Text { .. }))
    {
        return Answer::Blocks(blocks);
    }
    match flat(message) {
        text if is_blank(&text) => Answer::Empty,
        text => Answer::Text(text),
    }
}

/// What a tool gave back, to no call that is known.
pub(super) fn orphan(message: &Message) -> Vec<Block<'_>> {
    let blocks = match answer(message) {
        Answer::Empty => return Vec::new(),
        Answer::Text(text) => Vec::from_iter(Block::text(text)),
        Answer::Blocks(blocks) => blocks,
    };
    Block::text(ORPHAN).into_iter().chain(blocks).collect()
}

/// The content, thinking aside.
fn shown(message: &Message) -> Vec<Block<'_>> {
    match &message.content {
        Content::Null => Vec::new(),
        Content::Text(text) => Vec::from_iter(Block::text(text)),
        Content::Parts(parts) => parts
            .iter()
            .filter_map(|part| match message.role {
                Role::User | Role::Tool => media(part).or_else(|| words(part)),
                Role::System | Role::Developer | Role::Assistant => words(part),
            })
            .collect(),
    }
}

/// All of the content as one text.
fn flat(message: &Message) -> Cow<'_, str> {
    match &message.content {
        Content::Parts(parts) if parts.iter().any(|part| part.text().is_none()) => {
            let texts = parts
                .iter()
                .filter_map(words)
                .filter_map(|block| match block {
                    Block::Text { text } => Some(text),
                    _ => None,
                });
            texts.collect::<Vec<_>>().join("\n").into()
        }
        _ => message.text(),
    }
}

/// Thinking that may be sent back, in order.
fn thoughts(message: &Message) -> Vec<Block<'_>> {
    match &message.content {
        Content::Parts(parts) => parts.iter().filter_map(thought).collect(),
        Content::Null | Content::Text(_) => Vec::new(),
    }
}

fn thought(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Thinking {
            thinking,
            signature,
            ..
        } => {
            let signature = signature.as_deref().filter(|seal| !is_blank(seal))?;
            Some(Block::Thinking {
                thinking,
                signature,
            })
        }
        Part::Other(map) if is_redacted(map) => {
            let data = string(map, "data")?;
            Some(Block::RedactedThinking { data })
        }
        Part::Text { .. } | Part::Image { .. } | Part::File { .. } | Part::Other(_) => None,
    }
}

/// Puts the speaker's name before the first text.
fn sign(message: &Message, blocks: &mut Vec<Block<'_>>) {
    let Some(name) = message.name.as_deref().filter(|name| !is_blank(name)) else {
        return;
    };
    // Nothing in a name may look like the end of it, or like another line.
    let name = label(name).replace(|c: char| c.is_whitespace() || matches!(c, '[' | ']'), "_");
    let first = blocks.iter_mut().find_map(|block| match block {
        Block::Text { text } => Some(text),
        _ => None,
    });
    match first {
        Some(text) => *text = format!("[{name}]: {text}").into(),
        None => blocks
            .splice(0..0, Block::text(format!("[{name}]:")))
            .for_each(drop),
    }
}

/// The part as something to look at, where it is that and the API can show it.
fn media(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Image { image_url, .. } => {
            let url = string(image_url, "url")?;
            let source = image(url)?;
            Some(Block::Image { source })
        }
        Part::File { file, .. } => {
            let source = string(file, "file_data").and_then(document).or_else(|| {
                let file_id = string(file, "file_id")?;
                Some(Source::File { file_id })
            })?;
            let title = string(file, "filename").map(label);
            Some(Block::Document { source, title })
        }
        Part::Text { .. } | Part::Thinking { .. } | Part::Other(_) => None,
    }
}

fn image(url: &str) -> Option<Source<'_>> {
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        return Some(Source::Url { url });
    }
    let DataUrl { media, data } = DataUrl::parse(url)?;
    let media_type = match media.as_str() {
        "image/jpeg" | "image/jpg" => "image/jpeg",
        "image/png" => "image/png",
        "image/gif" => "image/gif",
        "image/webp" => "image/webp",
        _ => return None,
    };
    Some(Source::Base64 { media_type, data })
}

fn document(url: &str) -> Option<Source<'_>> {
    let file = DataUrl::parse(url)?;
    if file.media.starts_with("text/") {
        let data = file.decode().filter(|text| !is_blank(text))?;
        let media_type = "text/plain";
        return Some(Source::Text { media_type, data });
    }
    let media_type = "application/pdf";
    let data = file.data;
    (file.media == media_type).then_some(Source::Base64 { media_type, data })
}

/// The part in words: its text, or what is left out.
fn words(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Text { text, .. } => Block::text(text),
        Part::Image { image_url, .. } => {
            Block::text(match string(image_url, "url").and_then(image) {
                Some(_) => "[image left out: only a user turn can show one]",
                None => "[image left out: unsupported address]",
            })
        }
        Part::File { file, .. } => {
            let name = ["filename", "file_id"]
                .iter()
                .find_map(|key| string(file, key))
                .map_or("unnamed".into(), label);
            Block::text(format!("[file left out: {name}]"))
        }
        Part::Thinking { .. } => None,
        Part::Other(map) if is_redacted(map) => None,
        // A refusal is what an assistant said in place of a text.
        Part::Other(map) => match ["text", "refusal"]
            .iter()
            .find_map(|key| map.get(*key)?.as_str())
        {
            Some(text) => Block::text(text),
            None => {
                let tag = string(map, "type").map_or("unknown".into(), label);
                Block::text(format!("[part of type {tag} left out]"))
            }
        },
    }
}

fn is_redacted(map: &Map<String, Value>) -> bool {
    map.get("type")
        .is_some_and(|tag| tag == "redacted_thinking")
}

/// The string at `key`, if there is more than blanks in it.
fn string<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key)?.as_str().filter(|text| !is_blank(text))
}

/// `text` as a short label on one line.
fn label(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '_' } else { c };
    text.chars().take(SHOWN_MAX).map(shown).collect()
}

/// The tag is the one in the wrapping.
const _: () = {
    let (open, close) = NOTE;
    assert!(open.len() == NOTE_TAG.len() + "<>\n".len());
    assert!(close.len() == NOTE_TAG.len() + "\n</>".len());
};
