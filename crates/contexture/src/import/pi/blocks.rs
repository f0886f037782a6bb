//! pi's content blocks, and what it makes text of.

use serde_json::Value;

use crate::import::Object;
use crate::import::fields::{flag, take_text};
use crate::import::parts::{self, Said};
use crate::{Part, ToolCall};

/// A command that the user ran, as pi tells the model of it.
pub(super) fn ran(run: &Object) -> String {
    let text = |key: &str| run.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut out = format!("Ran `{}`\n", text("command"));
    match text("output") {
        "" => out.push_str("(no output)"),
        output => out.push_str(&format!("```\n{output}\n```")),
    }
    match run.get("exitCode").and_then(Value::as_i64) {
        _ if flag(run, "cancelled") => out.push_str("\n\n(command cancelled)"),
        Some(code) if code != 0 => out.push_str(&format!("\n\nCommand exited with code {code}")),
        _ => {}
    }
    out
}

/// Reads a block and gives back what is left of it. A seal is one for Anthropic's models only;
/// elsewhere the field holds what another provider wants back.
pub(super) fn block(sealed: bool) -> impl Fn(Object, &mut Said) -> Object {
    move |mut block, said| {
        let is_text = |block: &Object, key: &str| block.get(key).is_some_and(Value::is_string);
        match block.get("type").and_then(Value::as_str) {
            Some("text") => parts::text(&mut block, said),
            Some("image") => said
                .parts
                .extend(parts::image(&mut block, "mimeType", "data")),
            Some("thinking") if is_text(&block, "thinking") => {
                let mut whole = std::mem::take(&mut block);
                if sealed && flag(&whole, "redacted") && is_text(&whole, "thinkingSignature") {
                    let seal = take_text(&mut whole, "thinkingSignature").unwrap_or_default();
                    block.insert("type".to_owned(), "thinking".into());
                    whole.insert("type".to_owned(), "redacted_thinking".into());
                    whole.insert("data".to_owned(), seal.into());
                    said.parts.push(Part::Other(whole));
                    return block;
                }
                whole.shift_remove("type");
                let thinking = take_text(&mut whole, "thinking").unwrap_or_default();
                let signature = match sealed {
                    true => take_text(&mut whole, "thinkingSignature"),
                    false => None,
                };
                said.parts.push(Part::Thinking {
                    thinking,
                    signature,
                    extra: whole,
                });
            }
            Some("toolCall") if is_text(&block, "id") && is_text(&block, "name") => {
                let id = take_text(&mut block, "id").unwrap_or_default();
                let name = take_text(&mut block, "name").unwrap_or_default();
                let arguments = match block.shift_remove("arguments") {
                    Some(arguments) => arguments.to_string(),
                    None => "{}".to_owned(),
                };
                said.calls.push(ToolCall::new(id, name, arguments));
            }
            _ => {}
        }
        block
    }
}
