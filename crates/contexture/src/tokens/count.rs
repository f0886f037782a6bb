//! The tokens of a request, and the contract's formula for them.
//!
//! Providers do not publish how they frame messages. The formula's constants are an upper bound
//! for what they report on text. It is what a [`Tokenizer`] counts by that does not know better.

use serde_json::{Map, Value};

use super::Tokenizer;
use crate::message::words;
use crate::{Content, Message, Part};

/// Every request costs this much before its first message.
pub const REQUEST: usize = 3;
/// Every message, and every tool call, costs this much before its text.
pub const FRAME: usize = 4;
/// The most an image costs at OpenAI: 85 and 8 tiles of 170.
pub const IMAGE: usize = 1_445;
/// What an image of low detail costs there.
pub const IMAGE_LOW: usize = 85;

/// Providers tell a model with tools how to use them, at their own expense but in our window. The
/// largest such preamble that one has published is below this.
const TOOL_PREAMBLE: usize = 600;

/// The tokens of a request beside its messages and tools: for an estimate with what a provider adds for tools.
pub fn frame(tokenizer: &dyn Tokenizer, first: Option<&Message>, has_tools: bool) -> usize {
    let preamble = if has_tools && !tokenizer.exact() {
        TOOL_PREAMBLE
    } else {
        0
    };
    tokenizer.frame(first) + preamble
}

/// The tokens of a request of these messages and tools.
pub fn request<'a>(
    tokenizer: &dyn Tokenizer,
    messages: impl IntoIterator<Item = &'a Message> + Clone,
    tools: &[Value],
) -> usize {
    if let Some(whole) = tokenizer.request(&mut messages.clone().into_iter(), tools) {
        return whole;
    }
    let mut messages = messages.into_iter().peekable();
    let frame = frame(tokenizer, messages.peek().copied(), !tools.is_empty());
    frame + messages.map(|m| tokenizer.message(m)).sum::<usize>() + tokenizer.tools(tools)
}

/// The tokens of one message.
pub(super) fn message<T: Tokenizer + ?Sized>(tokenizer: &T, message: &Message) -> usize {
    let text = |text: &str| tokenizer.count(text);
    let optional = |text: &Option<String>| text.as_deref().map_or(0, |t| tokenizer.count(t));
    FRAME
        + text(message.role.as_str())
        + text(&message.text())
        + media(tokenizer, &message.content)
        + optional(&message.name)
        + optional(&message.tool_call_id)
        + message
            .tool_calls
            .iter()
            .map(|call| FRAME + text(&call.id) + text(&call.name) + text(&call.arguments))
            .sum::<usize>()
}

/// The tokens of one tool spec: those of its compact JSON.
pub(super) fn tool<T: Tokenizer + ?Sized>(tokenizer: &T, spec: &Value) -> usize {
    tokenizer.count(&spec.to_string())
}

fn media<T: Tokenizer + ?Sized>(tokenizer: &T, content: &Content) -> usize {
    let Content::Parts(parts) = content else {
        return 0;
    };
    // What has no place in a message is sent in words, and words that meet others may cost more.
    let in_words = |part: &Part| words(part).map_or(0, |text| FRAME + tokenizer.count(&text));
    parts
        .iter()
        .map(|part| match part {
            Part::Text { .. } => 0,
            Part::Image { image_url, .. } => match image_url.get("detail") {
                Some(detail) if detail == "low" => IMAGE_LOW,
                _ => IMAGE,
            },
            Part::File { file, .. } => self::file(tokenizer, file).max(in_words(part)),
            Part::Thinking { thinking, .. } => tokenizer.count(thinking),
            Part::Other(whole) => {
                let whole = Value::Object(whole.clone()).to_string();
                tokenizer.count(&whole).max(in_words(part))
            }
        })
        .sum()
}

/// A file costs its text and, for a PDF, a picture of each page. Without opening it, the bytes it
/// stands for are what bounds both: base64 is four characters for three of them.
fn file<T: Tokenizer + ?Sized>(tokenizer: &T, file: &Map<String, Value>) -> usize {
    let field = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
    tokenizer.count(field("filename"))
        + tokenizer.count(field("file_id"))
        + field("file_data").len() / 4
}
