use std::collections::BTreeMap;

use contexture::{Message, Part, ToolCall};
use serde_json::{Map, Value};

use super::chat::settled;
use super::{Reader, Room, assistant, garbage, object, parse, text};
use crate::{Delta, MAX_CALLS, ModelError, Reply, Stop, Usage};

/// OpenAI's responses.
///
/// Pieces are for whoever watches. What counts are the items as they come when they are done.
#[derive(Debug, Default)]
pub struct Responses {
    done: BTreeMap<u64, Map<String, Value>>,
    begun: bool,
    /// The calls that are done, with those that are not kept.
    calls: usize,
    room: Room,
}

impl Reader for Responses {
    fn event(
        &mut self,
        kind: &str,
        data: &str,
        on_delta: &mut dyn FnMut(Delta),
    ) -> Result<Option<Reply>, ModelError> {
        if data.trim() == "[DONE]" {
            return Ok(None);
        }
        let event = parse(data)?;
        let kind = text(&event, "type").unwrap_or(kind);
        let delta = || text(&event, "delta").unwrap_or_default().to_owned();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                on_delta(Delta::Text(delta()));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                on_delta(Delta::Thinking(delta()));
            }
            "response.output_item.added" => {
                let item = event.get("item").unwrap_or(&Value::Null);
                if matches!(
                    text(item, "type"),
                    Some("function_call" | "custom_tool_call")
                ) {
                    let name = text(item, "name").unwrap_or_default().to_owned();
                    on_delta(Delta::Call { name });
                }
            }
            "response.output_item.done" => {
                let at = event.get("output_index").and_then(Value::as_u64);
                let at = at.unwrap_or(self.done.len() as u64);
                let item =
                    object(&event, "item").ok_or_else(|| garbage("an item without content"))?;
                let kind = text(&event["item"], "type");
                let is_call = matches!(kind, Some("function_call" | "custom_tool_call"));
                self.calls += usize::from(is_call);
                if !is_call || self.calls <= MAX_CALLS + 1 {
                    self.room.take_value(&event["item"])?;
                    self.done.insert(at, item);
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                let response = event.get("response").unwrap_or(&Value::Null);
                return self.reply(response).map(Some);
            }
            "response.failed" => {
                let failed = event.get("response").unwrap_or(&event);
                return Err(ModelError::of_event(failed));
            }
            "error" => return Err(ModelError::of_event(&event)),
            _ => {}
        }
        self.begun = true;
        Ok(None)
    }

    fn end(&mut self) -> Result<Reply, ModelError> {
        Err(ModelError::Cut)
    }
}

impl Responses {
    fn reply(&mut self, response: &Value) -> Result<Reply, ModelError> {
        let done = std::mem::take(&mut self.done)
            .into_values()
            .collect::<Vec<_>>();
        reply(response, done)
    }
}

/// A reply in one document.
pub(super) fn whole(value: &Value) -> Result<Reply, ModelError> {
    if value.get("error").is_some_and(|error| !error.is_null()) {
        return Err(ModelError::of_event(value));
    }
    if value.get("output").and_then(Value::as_array).is_none() {
        return Err(garbage("it has no output"));
    }
    reply(value, Vec::new())
}

fn reply(response: &Value, done: Vec<Map<String, Value>>) -> Result<Reply, ModelError> {
    let items = match response.get("output").and_then(Value::as_array) {
        Some(output) if done.is_empty() => output
            .iter()
            .filter_map(|item| item.as_object().cloned())
            .collect(),
        _ => done,
    };
    let message = message(items);
    let why = response
        .get("incomplete_details")
        .and_then(|why| text(why, "reason"));
    let stop = match (text(response, "status").unwrap_or("completed"), why) {
        ("completed", _) => Stop::End,
        (_, Some("max_output_tokens")) => Stop::Length,
        (_, Some("content_filter")) => Stop::Refused,
        (_, Some(other)) => Stop::Other(other.to_owned()),
        (other, None) => Stop::Other(other.to_owned()),
    };
    Ok(Reply {
        stop: settled(stop, &message),
        message,
        usage: object(response, "usage").map(Usage),
        model: text(response, "model").map(str::to_owned),
    })
}

/// The items as a message. A thought keeps what it takes to send it back.
fn message(items: Vec<Map<String, Value>>) -> Message {
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    for mut item in items {
        let kind = match item.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            _ => String::new(),
        };
        let mut take = |name: &str| match item.shift_remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        match kind.as_str() {
            "message" => {
                let blocks = item.get("content").and_then(Value::as_array);
                for block in blocks.into_iter().flatten() {
                    match (text(block, "type"), text(block, "text")) {
                        (Some("output_text"), Some("")) => {}
                        (Some("output_text"), Some(said)) => parts.push(Part::text_part(said)),
                        _ => parts.extend(block.as_object().cloned().map(Part::Other)),
                    }
                }
            }
            "function_call" | "custom_tool_call" => {
                let custom = kind == "custom_tool_call";
                let arguments = take(if custom { "input" } else { "arguments" });
                let id = take("call_id").unwrap_or_default();
                let name = take("name").unwrap_or_default();
                let mut call = ToolCall::new(id, name, arguments.unwrap_or_default());
                if custom {
                    call.extra.insert("type".to_owned(), "custom".into());
                }
                calls.push(call);
            }
            "reasoning" => {
                let texts = ["summary", "content"]
                    .iter()
                    .filter_map(|key| item.get(*key)?.as_array());
                let texts: Vec<&str> = texts
                    .flatten()
                    .filter_map(|part| text(part, "text"))
                    .collect();
                let thinking = texts.join("\n\n");
                item.shift_remove("type");
                item.shift_remove("status");
                parts.push(Part::Thinking {
                    thinking,
                    signature: None,
                    extra: item,
                });
            }
            _ => parts.push(Part::Other(item)),
        }
    }
    assistant(parts, calls)
}
