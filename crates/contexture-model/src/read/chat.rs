use contexture::{Message, Part, ToolCall};
use serde_json::{Map, Value};

use super::{Reader, Room, assistant, garbage, object, parse, text};
use crate::{Delta, MAX_CALLS, ModelError, Reply, Stop, Usage};

/// OpenAI's chat completions, and all who speak like it.
#[derive(Debug, Default)]
pub struct Chat {
    said: String,
    refusal: String,
    thought: String,
    /// The field that the thought came in: servers do not agree on it.
    thought_field: &'static str,
    calls: Vec<Call>,
    stop: Option<Stop>,
    usage: Option<Usage>,
    model: Option<String>,
    begun: bool,
    room: Room,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    kind: String,
    name: String,
    arguments: String,
}

const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

impl Reader for Chat {
    fn event(
        &mut self,
        _kind: &str,
        data: &str,
        on_delta: &mut dyn FnMut(Delta),
    ) -> Result<Option<Reply>, ModelError> {
        if data.trim() == "[DONE]" {
            return self.end().map(Some);
        }
        let chunk = parse(data)?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(ModelError::of_event(&chunk));
        }
        self.begun = true;
        if let Some(model) = text(&chunk, "model") {
            self.model = Some(model.to_owned());
        }
        if let Some(usage) = object(&chunk, "usage") {
            self.usage = Some(Usage(usage));
        }
        let choice = chunk.get("choices").and_then(|choices| choices.get(0));
        if let Some(choice) = choice {
            if let Some(delta) = choice.get("delta") {
                self.take(delta, on_delta)?;
            }
            if let Some(reason) = text(choice, "finish_reason") {
                self.stop = Some(stop(reason));
            }
        }
        Ok(None)
    }

    fn end(&mut self) -> Result<Reply, ModelError> {
        if !self.begun {
            return Err(ModelError::Cut);
        }
        // Without a reason to stop, it was cut off; what is there may be half a call.
        let stop = self.stop.clone().ok_or(ModelError::Cut)?;
        let mut parts = Vec::new();
        if !self.thought.is_empty() {
            parts.push(thought(
                std::mem::take(&mut self.thought),
                self.thought_field,
            ));
        }
        if !self.refusal.is_empty() {
            let refusal = std::mem::take(&mut self.refusal);
            parts.push(Part::Other(Map::from_iter([
                ("type".to_owned(), "refusal".into()),
                ("refusal".to_owned(), refusal.into()),
            ])));
        }
        if !self.said.is_empty() {
            parts.push(Part::text_part(std::mem::take(&mut self.said)));
        }
        let calls = std::mem::take(&mut self.calls)
            .into_iter()
            .map(Call::done)
            .collect();
        let message = assistant(parts, calls);
        Ok(Reply {
            stop: settled(stop, &message),
            message,
            usage: self.usage.take(),
            model: self.model.take(),
        })
    }
}

impl Chat {
    fn take(&mut self, delta: &Value, on_delta: &mut dyn FnMut(Delta)) -> Result<(), ModelError> {
        for field in THOUGHTS {
            if let Some(thought) = text(delta, field).filter(|thought| !thought.is_empty()) {
                // Some send it in both.
                if self.thought_field.is_empty() || self.thought_field == field {
                    self.room.take(thought.len())?;
                    self.thought_field = field;
                    self.thought.push_str(thought);
                    on_delta(Delta::Thinking(thought.to_owned()));
                }
            }
        }
        if let Some(said) = text(delta, "content").filter(|said| !said.is_empty()) {
            self.room.take(said.len())?;
            self.said.push_str(said);
            on_delta(Delta::Text(said.to_owned()));
        }
        if let Some(refusal) = text(delta, "refusal") {
            self.room.take(refusal.len())?;
            self.refusal.push_str(refusal);
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.call(call, on_delta)?;
        }
        Ok(())
    }

    /// A piece of a call. It belongs to the call of its index, unless it names another id: there are
    /// servers that give every call the index 0.
    fn call(&mut self, piece: &Value, on_delta: &mut dyn FnMut(Delta)) -> Result<(), ModelError> {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = text(piece, "id").unwrap_or_default();
        let kind = text(piece, "type").unwrap_or_default();
        let inner = piece
            .get("function")
            .or_else(|| piece.get("custom"))
            .unwrap_or(&Value::Null);
        let name = text(inner, "name").unwrap_or_default();
        let same = |call: &Call| {
            let of_index = index.is_none() || call.index == index;
            of_index && (id.is_empty() || call.id.is_empty() || call.id == id)
        };
        let whole = index.is_none() && !name.is_empty();
        let at = match self.calls.iter().rposition(same).filter(|_| !whole) {
            Some(at) => at,
            // A piece of a call that is not kept.
            None if self.calls.len() > MAX_CALLS => return Ok(()),
            None => {
                self.calls.push(Call {
                    index,
                    ..Call::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            self.room.take(id.len())?;
            call.id = id.to_owned();
        }
        if call.kind.is_empty() {
            self.room.take(kind.len())?;
            call.kind = kind.to_owned();
        }
        if call.name.is_empty() && !name.is_empty() {
            self.room.take(name.len())?;
            call.name = name.to_owned();
            on_delta(Delta::Call {
                name: name.to_owned(),
            });
        }
        match inner.get("arguments").or_else(|| inner.get("input")) {
            Some(Value::String(more)) => {
                self.room.take(more.len())?;
                call.arguments.push_str(more);
            }
            // Some local servers send an object at once.
            Some(object @ Value::Object(_)) => {
                call.arguments = object.to_string();
                self.room.take(call.arguments.len())?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Call {
    fn done(self) -> ToolCall {
        let mut call = ToolCall::new(self.id, self.name, self.arguments);
        if self.kind == "custom" {
            call.extra.insert("type".to_owned(), "custom".into());
        } else if call.arguments.trim().is_empty() {
            call.arguments = "{}".to_owned();
        }
        call
    }
}

/// A reply in one document.
pub(super) fn whole(value: &Value) -> Result<Reply, ModelError> {
    if value.get("error").is_some_and(|error| !error.is_null()) {
        return Err(ModelError::of_event(value));
    }
    let choice = value.get("choices").and_then(|choices| choices.get(0));
    let choice = choice.ok_or_else(|| garbage("it has no choices"))?;
    let said = choice
        .get("message")
        .ok_or_else(|| garbage("it has no message"))?;
    let mut reader = Chat {
        begun: true,
        ..Chat::default()
    };
    reader.take(said, &mut |_| {})?;
    reader.stop = Some(stop(text(choice, "finish_reason").unwrap_or("stop")));
    reader.usage = object(value, "usage").map(Usage);
    reader.model = text(value, "model").map(str::to_owned);
    reader.end()
}

/// Whoever calls tools waits for them, whatever the server says.
pub(super) fn settled(stop: Stop, message: &Message) -> Stop {
    match stop {
        Stop::End if !message.tool_calls.is_empty() => Stop::Tools,
        Stop::Tools if message.tool_calls.is_empty() => Stop::End,
        other => other,
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "stop" => Stop::End,
        "tool_calls" | "function_call" => Stop::Tools,
        "length" | "max_tokens" => Stop::Length,
        "content_filter" => Stop::Refused,
        other => Stop::Other(other.to_owned()),
    }
}

fn thought(thinking: String, field: &str) -> Part {
    Part::Thinking {
        thinking,
        signature: None,
        extra: Map::from_iter([("field".to_owned(), field.into())]),
    }
}
