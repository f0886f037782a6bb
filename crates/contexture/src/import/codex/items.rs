//! Items of a response: thoughts, calls, and the blocks of messages.

use serde_json::Value;

use super::tag;
use crate::import::Object;
use crate::import::fields::{put_back, take_text};
use crate::import::parts::Said;
use crate::{Content, Part, ToolCall};

/// An item of a response, with the line around it.
pub(super) struct Item {
    pub timestamp: String,
    pub line: Object,
    pub item: Object,
    /// Whether the line is the item.
    pub bare: bool,
}

impl Item {
    /// What is left of the line.
    pub fn rest(self) -> Object {
        let mut line = self.line;
        match self.bare {
            true => line.extend(self.item),
            false => put_back(&mut line, "payload", self.item),
        }
        line
    }

    pub fn kind(&self) -> String {
        tag(&self.item).to_owned()
    }
}

/// A thought: its summary to read, and all of it for the provider to get back.
pub(super) fn thought(item: &mut Object) -> Content {
    let texts: Vec<&str> = ["summary", "content"]
        .iter()
        .filter_map(|key| item.get(*key)?.as_array())
        .flatten()
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    let thinking = texts.join("\n\n");
    let mut extra = Object::new();
    for key in ["summary", "content", "encrypted_content"] {
        if let Some(value) = item.shift_remove(key) {
            extra.insert(key.to_owned(), value);
        }
    }
    if let Some(id) = item.get("id") {
        extra.insert("id".to_owned(), id.clone());
    }
    Content::Parts(vec![Part::Thinking {
        thinking,
        signature: None,
        extra,
    }])
}

pub(super) fn call(item: &mut Object) -> Option<ToolCall> {
    let kind = tag(item).to_owned();
    if kind == "local_shell_call" {
        let id = take_text(item, "call_id").or_else(|| {
            // The first versions name the item alone.
            item.get("id").and_then(Value::as_str).map(str::to_owned)
        })?;
        let action = item.shift_remove("action").unwrap_or_default();
        return Some(ToolCall::new(id, "local_shell", action.to_string()));
    }
    let id = take_text(item, "call_id").unwrap_or_default();
    let name = take_text(item, "name").unwrap_or_default();
    let custom = kind == "custom_tool_call";
    let input = take_text(item, if custom { "input" } else { "arguments" });
    let mut call = ToolCall::new(id, name, input.unwrap_or_default());
    if custom {
        call.extra.insert("type".to_owned(), "custom".into());
    }
    Some(call)
}

/// Reads a block of the Responses form and gives back what is left of it.
pub(super) fn block(mut block: Object, said: &mut Said) -> Object {
    match block.get("type").and_then(Value::as_str) {
        Some("input_text" | "output_text" | "text") => {
            if let Some(text) = take_text(&mut block, "text") {
                said.parts.push(Part::text_part(text));
            }
        }
        Some("input_image") => {
            if let Some(url) = take_text(&mut block, "image_url") {
                let mut image_url = Object::from_iter([("url".to_owned(), url.into())]);
                if let Some(detail) = take_text(&mut block, "detail") {
                    image_url.insert("detail".to_owned(), detail.into());
                }
                let extra = Object::new();
                said.parts.push(Part::Image { image_url, extra });
            }
        }
        Some("refusal") => said.parts.push(Part::Other(std::mem::take(&mut block))),
        _ => {}
    }
    block
}
