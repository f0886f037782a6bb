//! Anthropic's content blocks, as Claude Code writes them down.

use serde_json::Value;

use crate::import::Object;
use crate::import::fields::{put_back, take_text};
use crate::import::parts::{self, Said, take_content};
use crate::{Content, Message, Part, ToolCall};

/// What a user's line says: results of tools, and the rest around them.
pub(super) fn user_pieces(blocks: Vec<Value>) -> (Vec<Message>, Object) {
    let mut pieces = Vec::new();
    let mut said = Said::default();
    for (n, value) in blocks.into_iter().enumerate() {
        match value {
            Value::Object(mut result) if is_result(&result) => {
                flush(&mut said, &mut pieces);
                let id = take_text(&mut result, "tool_use_id").unwrap_or_default();
                let failed = result.get("is_error").and_then(Value::as_bool);
                if failed.is_some() {
                    result.shift_remove("is_error");
                }
                let (content, _) = take_content(&mut result, "content", shown);
                pieces.push(parts::result(id, content, failed));
                put_back(&mut said.rest, &n.to_string(), result);
            }
            other => said.take(n, other, shown),
        }
    }
    flush(&mut said, &mut pieces);
    if pieces.is_empty() {
        pieces.push(silence());
    }
    (pieces, said.rest)
}

fn flush(said: &mut Said, pieces: &mut Vec<Message>) {
    let content = said.content();
    if content != Content::Null {
        pieces.push(Message {
            content,
            ..Message::user("")
        });
    }
}

pub(super) fn silence() -> Message {
    Message {
        content: Content::Null,
        ..Message::user("")
    }
}

fn is_result(block: &Object) -> bool {
    block.get("type").is_some_and(|tag| tag == "tool_result")
        && block.get("tool_use_id").is_some_and(Value::is_string)
}

/// Reads a block of something that calls no tools.
fn shown(block: Object, said: &mut Said) -> Object {
    match block.get("type").is_some_and(|tag| tag == "tool_use") {
        true => block,
        false => self::block(block, said),
    }
}

/// Reads a block of Anthropic's form and gives back what is left of it.
pub(super) fn block(mut block: Object, said: &mut Said) -> Object {
    let is_text = |block: &Object, key: &str| block.get(key).is_some_and(Value::is_string);
    match block.get("type").and_then(Value::as_str) {
        Some("text") => parts::text(&mut block, said),
        Some("thinking") if is_text(&block, "thinking") => {
            block.shift_remove("type");
            let thinking = take_text(&mut block, "thinking").unwrap_or_default();
            let signature = take_text(&mut block, "signature");
            let extra = std::mem::take(&mut block);
            said.parts.push(Part::Thinking {
                thinking,
                signature,
                extra,
            });
        }
        Some("redacted_thinking") if is_text(&block, "data") => {
            said.parts.push(Part::Other(std::mem::take(&mut block)));
        }
        Some("image" | "document") => parts::anthropic_media(&mut block, said),
        Some("tool_use") if is_text(&block, "id") && is_text(&block, "name") => {
            let id = take_text(&mut block, "id").unwrap_or_default();
            let name = take_text(&mut block, "name").unwrap_or_default();
            let input = block.shift_remove("input");
            let input = input.map_or_else(|| "{}".to_owned(), |input| input.to_string());
            said.calls.push(ToolCall::new(id, name, input));
        }
        _ => {}
    }
    block
}
