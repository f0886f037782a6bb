use contexture::{Message, Part, ToolCall};
use serde_json::{Map, Value};

use super::{Reader, Room, assistant, garbage, object, parse, text};
use crate::{Delta, MAX_CALLS, ModelError, Reply, Stop, Usage};

/// Anthropic's messages.
#[derive(Debug, Default)]
pub struct Messages {
    blocks: Vec<Block>,
    stop: Option<Stop>,
    usage: Option<Usage>,
    model: Option<String>,
    begun: bool,
    /// The calls that have begun, with those that are not kept.
    calls: usize,
    room: Room,
}

/// A block of content, as far as it has come.
#[derive(Debug)]
struct Block {
    index: u64,
    block: Map<String, Value>,
    /// A call's arguments, as JSON text in pieces.
    arguments: String,
}

impl Reader for Messages {
    fn event(
        &mut self,
        _kind: &str,
        data: &str,
        on_delta: &mut dyn FnMut(Delta),
    ) -> Result<Option<Reply>, ModelError> {
        let event = parse(data)?;
        match text(&event, "type").unwrap_or_default() {
            "message_start" => {
                self.begun = true;
                if let Some(message) = event.get("message") {
                    self.model = text(message, "model").map(str::to_owned);
                    self.usage = object(message, "usage").map(Usage);
                }
            }
            "content_block_start" => self.start(&event, on_delta)?,
            "content_block_delta" => self.delta(&event, on_delta)?,
            "message_delta" => {
                if let Some(reason) = event
                    .get("delta")
                    .and_then(|delta| text(delta, "stop_reason"))
                {
                    self.stop = Some(stop(reason));
                }
                // It brings the last word on what it brings, and nothing on the rest.
                if let Some(more) = object(&event, "usage") {
                    let usage = self.usage.get_or_insert_default();
                    usage
                        .0
                        .extend(more.into_iter().filter(|(_, value)| !value.is_null()));
                }
            }
            "message_stop" => return self.end().map(Some),
            "error" => return Err(ModelError::of_event(&event)),
            // Pings, ends of blocks, and what is yet to be invented.
            _ => {}
        }
        Ok(None)
    }

    fn end(&mut self) -> Result<Reply, ModelError> {
        if !self.begun {
            return Err(ModelError::Cut);
        }
        let stop = self.stop.clone().ok_or(ModelError::Cut)?;
        let message = message(std::mem::take(&mut self.blocks));
        let usage = self.usage.take();
        Ok(Reply {
            stop,
            message,
            usage,
            model: self.model.take(),
        })
    }
}

impl Messages {
    fn start(&mut self, event: &Value, on_delta: &mut dyn FnMut(Delta)) -> Result<(), ModelError> {
        let block =
            object(event, "content_block").ok_or_else(|| garbage("a block without content"))?;
        let index = index(event)?;
        if block.get("type").is_some_and(|kind| kind == "tool_use") {
            self.calls += 1;
            if self.calls > MAX_CALLS + 1 {
                return Ok(());
            }
        }
        self.room.take_value(&event["content_block"])?;
        if block.get("type").is_some_and(|kind| kind == "tool_use")
            && let Some(Value::String(name)) = block.get("name")
        {
            on_delta(Delta::Call { name: name.clone() });
        }
        if let Some(Value::String(said)) = block.get("text").filter(|said| *said != "") {
            on_delta(Delta::Text(said.clone()));
        }
        self.blocks.push(Block {
            index,
            block,
            arguments: String::new(),
        });
        Ok(())
    }

    fn delta(&mut self, event: &Value, on_delta: &mut dyn FnMut(Delta)) -> Result<(), ModelError> {
        let index = index(event)?;
        let block = self.blocks.iter_mut().rfind(|block| block.index == index);
        let Some(block) = block else {
            return match self.calls > MAX_CALLS {
                true => Ok(()),
                false => Err(garbage("a piece of a block that never began")),
            };
        };
        let delta = event.get("delta").unwrap_or(&Value::Null);
        let room = &mut self.room;
        let mut grow = |field: &str| {
            let more = text(delta, field).unwrap_or_default();
            room.take(more.len())?;
            match block.block.get_mut(field) {
                Some(Value::String(so_far)) => so_far.push_str(more),
                _ => drop(block.block.insert(field.to_owned(), more.into())),
            }
            Ok::<_, ModelError>(more.to_owned())
        };
        match text(delta, "type").unwrap_or_default() {
            "text_delta" => on_delta(Delta::Text(grow("text")?)),
            "thinking_delta" => on_delta(Delta::Thinking(grow("thinking")?)),
            "signature_delta" => drop(grow("signature")?),
            "input_json_delta" => {
                let more = text(delta, "partial_json").unwrap_or_default();
                room.take(more.len())?;
                block.arguments.push_str(more);
            }
            "citations_delta" => {
                let citation = delta.get("citation").cloned().unwrap_or_default();
                room.take_value(&citation)?;
                let all = block
                    .block
                    .entry("citations")
                    .or_insert_with(|| Value::Array(Vec::new()));
                match all {
                    Value::Array(all) => all.push(citation),
                    other => *other = Value::Array(vec![citation]),
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A reply in one document.
pub(super) fn whole(value: &Value) -> Result<Reply, ModelError> {
    if text(value, "type") == Some("error") {
        return Err(ModelError::of_event(value));
    }
    let blocks = value.get("content").and_then(Value::as_array);
    let blocks = blocks.ok_or_else(|| garbage("it has no content"))?;
    let blocks = blocks.iter().zip(0..).filter_map(|(block, index)| {
        let block = block.as_object()?.clone();
        Some(Block {
            index,
            block,
            arguments: String::new(),
        })
    });
    Ok(Reply {
        message: message(blocks.collect()),
        stop: stop(text(value, "stop_reason").unwrap_or("end_turn")),
        usage: object(value, "usage").map(Usage),
        model: text(value, "model").map(str::to_owned),
    })
}

/// The blocks as a message: thoughts with their seals, text, calls; what we do not know as it is.
fn message(blocks: Vec<Block>) -> Message {
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    for Block {
        mut block,
        arguments,
        ..
    } in blocks
    {
        let kind = match block.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            _ => String::new(),
        };
        let mut take = |name: &str| match block.shift_remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        match kind.as_str() {
            "tool_use" => {
                let (id, name) = (
                    take("id").unwrap_or_default(),
                    take("name").unwrap_or_default(),
                );
                let arguments = match (arguments.trim().is_empty(), block.shift_remove("input")) {
                    (false, _) => arguments,
                    (true, Some(input @ Value::Object(_))) => input.to_string(),
                    (true, _) => "{}".to_owned(),
                };
                calls.push(ToolCall::new(id, name, arguments));
            }
            "text" => {
                let text = take("text").unwrap_or_default();
                block.shift_remove("type");
                // Nothing but blanks is refused when it is sent back.
                if !text.trim().is_empty() {
                    parts.push(Part::Text { text, extra: block });
                }
            }
            "thinking" => {
                let thinking = take("thinking").unwrap_or_default();
                let signature = take("signature").filter(|seal| !seal.is_empty());
                block.shift_remove("type");
                parts.push(Part::Thinking {
                    thinking,
                    signature,
                    extra: block,
                });
            }
            _ => parts.push(Part::Other(block)),
        }
    }
    assistant(parts, calls)
}

fn index(event: &Value) -> Result<u64, ModelError> {
    let index = event.get("index").and_then(Value::as_u64);
    index.ok_or_else(|| garbage("a block without an index"))
}

fn stop(reason: &str) -> Stop {
    match reason {
        "end_turn" | "stop_sequence" => Stop::End,
        "tool_use" => Stop::Tools,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        "pause_turn" => Stop::Paused,
        other => Stop::Other(other.to_owned()),
    }
}
