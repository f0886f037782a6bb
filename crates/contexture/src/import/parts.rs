//! Content blocks of the tools, as our parts and calls.

use serde_json::Value;

use super::Object;
use super::fields::{put_back, take_object, take_text};
use crate::{Content, Message, Part, ToolCall};

/// What blocks say.
#[derive(Default)]
pub(super) struct Said {
    pub parts: Vec<Part>,
    pub calls: Vec<ToolCall>,
    /// What is left of each block, by its number. It also tells where the calls stood.
    pub rest: Object,
}

impl Said {
    /// Reads a list of blocks.
    pub fn read(blocks: Vec<Value>, read: impl Fn(Object, &mut Self) -> Object) -> Self {
        let mut said = Self::default();
        for (n, block) in blocks.into_iter().enumerate() {
            said.take(n, block, &read);
        }
        said
    }

    /// Reads the `n`th block.
    pub fn take(&mut self, n: usize, block: Value, read: impl Fn(Object, &mut Self) -> Object) {
        match block {
            Value::Object(block) => {
                let rest = read(block, self);
                put_back(&mut self.rest, &n.to_string(), rest);
            }
            Value::String(text) => self.parts.push(Part::text_part(text)),
            other => drop(self.rest.insert(n.to_string(), other)),
        }
    }

    /// The content; none where all was calls.
    pub fn content(&mut self) -> Content {
        match std::mem::take(&mut self.parts) {
            parts if parts.is_empty() => Content::Null,
            parts => Content::Parts(parts),
        }
    }
}

/// The content at `key`: plain text or blocks. What is left of it goes back there.
pub(super) fn take_content(
    map: &mut Object,
    key: &str,
    read: impl Fn(Object, &mut Said) -> Object,
) -> (Content, Vec<ToolCall>) {
    match map.shift_remove(key) {
        Some(Value::String(text)) => (Content::Text(text), Vec::new()),
        Some(Value::Array(blocks)) => {
            let mut said = Said::read(blocks, read);
            let content = said.content();
            put_back(map, key, said.rest);
            (content, said.calls)
        }
        Some(other) => {
            map.insert(key.to_owned(), other);
            (Content::Null, Vec::new())
        }
        None => (Content::Null, Vec::new()),
    }
}

/// Adds to a message what comes after it.
pub(super) fn extend(message: &mut Message, content: Content, calls: Vec<ToolCall>) {
    if content != Content::Null {
        let before = message.parts();
        message.content = content;
        message.content = Content::Parts([before, message.parts()].concat());
    }
    message.tool_calls.extend(calls);
}

/// What a tool gave back, and whether it failed. It says something, if only an empty text.
pub(super) fn result(id: String, content: Content, failed: Option<bool>) -> Message {
    let failed = failed.map(|failed| ("isError".to_owned(), failed.into()));
    Message {
        content: match content {
            Content::Null => Content::Text(String::new()),
            content => content,
        },
        extra: failed.into_iter().collect(),
        ..Message::tool_result(id, "")
    }
}

/// A text block of the usual form. Other fields than the text stay in the line: a provider that does
/// not know them would refuse them.
pub(super) fn text(block: &mut Object, said: &mut Said) {
    if let Some(text) = take_text(block, "text") {
        block.shift_remove("type");
        said.parts.push(Part::text_part(text));
    }
}

/// An image by its type and bytes, which are the fields of these names.
pub(super) fn image(block: &mut Object, media: &str, data: &str) -> Option<Part> {
    let url = data_url(block, media, data)?;
    Some(Part::Image {
        image_url: Object::from_iter([("url".to_owned(), url.into())]),
        extra: Object::new(),
    })
}

/// An image or a file of Anthropic's form.
pub(super) fn anthropic_media(block: &mut Object, said: &mut Said) {
    let Some(mut source) = take_object(block, "source") else {
        return;
    };
    let is_image = block.get("type").is_some_and(|tag| tag == "image");
    let part = match source.get("type").and_then(Value::as_str) {
        Some("base64") if is_image => image(&mut source, "media_type", "data"),
        Some("base64") => data_url(&mut source, "media_type", "data").map(|url| Part::File {
            file: Object::from_iter([("file_data".to_owned(), url.into())]),
            extra: Object::new(),
        }),
        Some("url") if is_image => take_text(&mut source, "url").map(|url| Part::Image {
            image_url: Object::from_iter([("url".to_owned(), url.into())]),
            extra: Object::new(),
        }),
        _ => None,
    };
    said.parts.extend(part);
    put_back(block, "source", source);
}

fn data_url(block: &mut Object, media: &str, data: &str) -> Option<String> {
    let plain = |text: &str| {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '+' | '-' | '.');
        !text.is_empty() && text.chars().all(legal)
    };
    let is_text = |key: &str| block.get(key).is_some_and(Value::is_string);
    let known = block.get(media).and_then(Value::as_str).is_some_and(plain);
    if !known || !is_text(data) {
        return None;
    }
    let media = take_text(block, media)?;
    let data = take_text(block, data)?;
    Some(format!("data:{media};base64,{data}"))
}
