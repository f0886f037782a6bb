//! What a message says, as blocks.

use super::block::{Answer, Block, Source};
use crate::message::data_url::{DataUrl, Picture};
use crate::message::words::{ORPHAN, flat, is_blank, is_redacted, label, speaker, string, words};
use crate::message::{Content, Message, Part, Role};
use crate::text::unclosed;

/// Around an instruction that comes in the middle of a conversation, where the API has no place
/// for one but in a user turn.
const NOTE: (&str, &str) = ("<system-note>\n", "\n</system-note>");

/// The tag of [`NOTE`].
const NOTE_TAG: &str = "system-note";

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

/// What stands for the content of a failure that has none: the API takes no such failure.
const FAILED: &str = "[the tool failed and gave nothing back]";

/// The result of the call `tool_use_id`.
pub(super) fn result(message: &Message, tool_use_id: String) -> Block<'_> {
    let content = match answer(message) {
        Answer::Empty if message.failed() => Answer::Text(FAILED.into()),
        content => content,
    };
    Block::ToolResult {
        tool_use_id,
        // Nor does it take a failure with more than text; what is to be seen weighs more.
        is_error: message.failed() && !matches!(content, Answer::Blocks(_)),
        content,
    }
}

/// What a tool gave back. A tool's `name` is its call's and stands there.
fn answer(message: &Message) -> Answer<'_> {
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

/// The part in words.
fn said_in(part: &Part) -> Option<Block<'_>> {
    Block::text(words(part)?)
}

/// The content, thinking aside.
fn shown(message: &Message) -> Vec<Block<'_>> {
    match &message.content {
        Content::Null => Vec::new(),
        Content::Text(text) => Vec::from_iter(Block::text(text)),
        Content::Parts(parts) => parts
            .iter()
            .filter_map(|part| match message.role {
                Role::User | Role::Tool => media(part).or_else(|| said_in(part)),
                Role::System | Role::Developer | Role::Assistant => said_in(part),
            })
            .collect(),
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
    let Some(speaker) = speaker(message) else {
        return;
    };
    let first = blocks.iter_mut().find_map(|block| match block {
        Block::Text { text } => Some(text),
        _ => None,
    });
    match first {
        Some(text) => *text = format!("{speaker} {text}").into(),
        None => blocks.splice(0..0, Block::text(speaker)).for_each(drop),
    }
}

/// The part as something to look at, where it is that and the API can show it.
fn media(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Image { image_url, .. } => {
            let source = match Picture::at(string(image_url, "url")?)? {
                Picture::Url(url) => Source::Url { url },
                Picture::Data { media_type, data } => Source::Base64 { media_type, data },
            };
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

/// The tag is the one in the wrapping.
const _: () = {
    let (open, close) = NOTE;
    assert!(open.len() == NOTE_TAG.len() + "<>\n".len());
    assert!(close.len() == NOTE_TAG.len() + "\n</>".len());
};
