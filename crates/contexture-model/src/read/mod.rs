//! From a provider's reply to a message: event by event, or from a whole document.

mod chat;
mod messages;
mod responses;

use contexture::json::{self, ReadError, held};
use contexture::{Content, Message, Part, ToolCall};
use serde_json::{Map, Value};

use crate::{Api, Delta, MAX_CALLS, ModelError, Reply};
pub use chat::Chat;
pub use messages::Messages;
pub use responses::Responses;

/// The most bytes of a reply that came as one document, and the most memory that is kept of any.
pub(crate) const MAX_REPLY_BYTES: usize = 16 << 20;
/// The most memory that a document or an event may take while it is read.
const MAX_HELD_BYTES: usize = 32 << 20;

/// Reads a stream's events.
pub trait Reader: Send {
    /// Takes the next event. Gives the reply when it is whole.
    fn event(
        &mut self,
        kind: &str,
        data: &str,
        on_delta: &mut dyn FnMut(Delta),
    ) -> Result<Option<Reply>, ModelError>;

    /// There are no more events. Some servers just hang up when they are done.
    fn end(&mut self) -> Result<Reply, ModelError>;
}

/// The reader for an API's streams.
pub fn reader(api: Api) -> Box<dyn Reader> {
    match api {
        Api::Chat => Box::new(Chat::default()),
        Api::Responses => Box::new(Responses::default()),
        Api::Messages => Box::new(Messages::default()),
    }
}

/// Reads a reply that came as one document.
pub fn whole(api: Api, body: &[u8]) -> Result<Reply, ModelError> {
    let value = parse(&String::from_utf8_lossy(body))?;
    match api {
        Api::Chat => chat::whole(&value),
        Api::Responses => responses::whole(&value),
        Api::Messages => messages::whole(&value),
    }
}

fn parse(data: &str) -> Result<Value, ModelError> {
    let value: Value =
        json::read(data.as_bytes(), MAX_HELD_BYTES).map_err(|error| match error {
            ReadError::TooLarge { max_held } => ModelError::TooLarge {
                what: format!("it would take more than {} MiB of memory", max_held >> 20),
            },
            ReadError::Malformed(_) => garbage(&error.to_string()),
        })?;
    if !value.is_object() {
        return Err(garbage("it is no JSON object"));
    }
    Ok(value)
}

/// The room that is left for what is kept of a reply.
#[derive(Debug)]
struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MAX_REPLY_BYTES)
    }
}

impl Room {
    /// Takes so many bytes of it.
    fn take(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }

    /// Takes what a value holds.
    fn take_value(&mut self, value: &Value) -> Result<(), ModelError> {
        self.take(held(value))
    }
}

/// The error for a reply above [`MAX_REPLY_BYTES`].
pub(crate) fn too_large() -> ModelError {
    ModelError::TooLarge {
        what: format!("a reply holds at most {} MiB", MAX_REPLY_BYTES >> 20),
    }
}

fn garbage(what: &str) -> ModelError {
    ModelError::Garbage {
        what: what.to_owned(),
    }
}

/// The message of these parts and calls. Text alone stays plain.
fn assistant(parts: Vec<Part>, mut calls: Vec<ToolCall>) -> Message {
    calls.truncate(MAX_CALLS + 1);
    let content = match parts.as_slice() {
        [] => Content::Null,
        [Part::Text { text, extra }] if extra.is_empty() => Content::Text(text.clone()),
        _ => Content::Parts(parts),
    };
    Message {
        content,
        ..Message::calls(calls)
    }
}

/// The text of a field; none where it is not there, or no text.
fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

/// The object of a field, copied.
fn object(value: &Value, name: &str) -> Option<Map<String, Value>> {
    match value.get(name) {
        Some(Value::Object(map)) => Some(map.clone()),
        _ => None,
    }
}
