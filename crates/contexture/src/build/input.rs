//! What a build reads: spec 002's input object, a log, a transcript, or a chat request's body.

use serde_json::{Map, Value};

use super::{ContextConfig, Turn};
use crate::json::{self, MAX_HELD_BYTES, kind, object};
use crate::message::{openai, params};
use crate::prompt::Section;
use crate::{ContextError, Entry, Message};

/// Spec 002's `ContextBuildInput`, and what else a build can be given.
#[derive(Debug, Clone, Default)]
pub struct BuildInput {
    /// The log.
    pub session_entries: Vec<Entry>,
    /// What this turn brings.
    pub turn: Turn,
    /// Limits that override the caller's, as given.
    pub config: Map<String, Value>,
    /// The model that the input names.
    pub model: Option<String>,
    /// Parameters of a chat request.
    pub params: Map<String, Value>,
}

/// Spec 002's `ContextUpdateRequest`.
pub type UpdateRequest = BuildInput;

/// The fields of an input object.
const FIELDS: [&str; 12] = [
    "systemPrompt",
    "sessionEntries",
    "inputMessages",
    "newMessages",
    "runtimeInitData",
    "runtimeHints",
    "toolSpecs",
    "overflowHint",
    "config",
    "sections",
    "now",
    "model",
];

impl BuildInput {
    /// Reads whatever `bytes` hold: an input object, entries or messages as JSONL, an array of
    /// messages, or a chat request's body.
    pub fn read(bytes: &[u8]) -> Result<Self, ContextError> {
        // The lines of a log are held together.
        if !json::fits(bytes, MAX_HELD_BYTES) {
            return Err(json::too_large(1, MAX_HELD_BYTES));
        }
        if is_jsonl(bytes) {
            return Self::from_lines(bytes);
        }
        match json::parse(bytes, 1)? {
            Value::Array(values) => Self::from_array(values),
            Value::Object(map) => Self::from_object(map),
            other => Err(ContextError::invalid(
                "line 1",
                format!("must be an object or an array, is {}", kind(&other)),
                SHAPES,
            )),
        }
    }

    /// The input with a transcript as its log.
    pub fn from_messages(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut input = Self::default();
        for message in messages {
            input.push_message(message);
        }
        input
    }

    /// The same with a system prompt for this call alone.
    #[must_use]
    pub fn with_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.turn.system_prompt = Some(text.into());
        self
    }

    /// The limits: the caller's, with what the input itself says on top.
    pub fn config_over(&self, base: ContextConfig) -> Result<ContextConfig, ContextError> {
        base.overlaid(&self.config)
    }

    fn from_lines(bytes: &[u8]) -> Result<Self, ContextError> {
        let mut input = Self::default();
        for (n, line) in bytes.split(|&b| b == b'\n').enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let value = json::parse(line, n + 1)?;
            input
                .push_value(value)
                .map_err(|error| error.within(&format!("line {}", n + 1)))?;
        }
        Ok(input)
    }

    fn from_array(values: Vec<Value>) -> Result<Self, ContextError> {
        let mut input = Self::default();
        for (i, value) in values.into_iter().enumerate() {
            input
                .push_value(value)
                .map_err(|error| error.within(&format!("[{i}]")))?;
        }
        Ok(input)
    }

    /// A message or an entry, told apart by its fields.
    fn push_value(&mut self, value: Value) -> Result<(), ContextError> {
        let map = object(value)?;
        if map.contains_key("role") {
            self.push_message(openai::read(Value::Object(map))?);
            return Ok(());
        }
        if map.contains_key("messages") {
            return Err(ContextError::invalid(
                "",
                "is a whole session, one of several",
                "pick one with --line N",
            ));
        }
        if !map.contains_key("type") {
            return Err(ContextError::invalid(
                "",
                "is neither a message nor an entry",
                SHAPES,
            ));
        }
        self.session_entries
            .push(Entry::from_value(Value::Object(map))?);
        Ok(())
    }

    fn push_message(&mut self, message: Message) {
        let parent = self.session_entries.last().map(|entry| entry.id.clone());
        let mut entry = Entry::message(parent.as_ref(), "", message);
        // Its id follows from the one before, but a transcript has no branches: the same message
        // logged twice is the same entry.
        entry.parent_id = None;
        self.session_entries.push(entry);
    }

    fn from_object(mut map: Map<String, Value>) -> Result<Self, ContextError> {
        if map.contains_key("role") || (map.contains_key("type") && map.contains_key("payload")) {
            let mut input = Self::default();
            let pushed = input.push_value(Value::Object(map));
            return pushed.map(|()| input).map_err(|e| e.within("line 1"));
        }
        if map.contains_key("messages") {
            return Self::from_body(map);
        }
        if let Some(unknown) = map.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            let nearest = crate::text::nearest(unknown, &FIELDS);
            return Err(ContextError::invalid(
                unknown.clone(),
                "is no field of the input",
                nearest.map_or_else(|| SHAPES.to_owned(), |n| format!("did you mean `{n}`?")),
            ));
        }
        let mut input = Self::default();
        for (i, value) in take_array(&mut map, "sessionEntries")?
            .into_iter()
            .enumerate()
        {
            let place = format!("sessionEntries[{i}]");
            input
                .push_value(value)
                .map_err(|error| error.within(&place))?;
        }
        let mut messages = take_messages(&mut map, "inputMessages")?;
        messages.extend(take_messages(&mut map, "newMessages")?);
        input.turn = Turn {
            system_prompt: take_text(&mut map, "systemPrompt")?,
            sections: take_sections(&mut map)?,
            tools: match map.shift_remove("toolSpecs") {
                None | Some(Value::Null) => None,
                Some(value) => Some(array(value).map_err(|e| e.within("toolSpecs"))?),
            },
            runtime_init: take_map(&mut map, "runtimeInitData")?,
            hints: take_map(&mut map, "runtimeHints")?,
            messages,
            overflow: match map.shift_remove("overflowHint") {
                None | Some(Value::Null) => false,
                Some(Value::Bool(hint)) => hint,
                Some(other) => return Err(mismatch("overflowHint", "true or false", &other)),
            },
            now: take_text(&mut map, "now")?,
            ..Turn::default()
        };
        input.config = take_map(&mut map, "config")?.unwrap_or_default();
        input.model = take_text(&mut map, "model")?;
        Ok(input)
    }

    /// A chat request's body, or a transcript with fields of its own around it.
    fn from_body(mut map: Map<String, Value>) -> Result<Self, ContextError> {
        let mut input = Self::default();
        for (i, value) in take_array(&mut map, "messages")?.into_iter().enumerate() {
            let place = format!("messages[{i}]");
            let message = openai::read(value).map_err(|error| error.within(&place))?;
            input.push_message(message);
        }
        if map.contains_key("tools") {
            let tools = take_array(&mut map, "tools")?;
            input.turn.tools = Some(tools);
        }
        input.model = take_text(&mut map, "model")?;
        for key in params::chat() {
            if let Some(value) = map.shift_remove(key) {
                input.params.insert(key.to_owned(), value);
            }
        }
        Ok(input)
    }
}

const SHAPES: &str = "the input is an input object (sessionEntries, inputMessages, …), entries or messages as \
                      JSONL, an array of messages, or `{\"messages\":[…]}`";

/// Whether the bytes are one JSON object a line: the first two lines that are not blank both begin
/// one. In a document over several lines the second line is a key or a bracket, or is indented and
/// the first is not whole; the lines of a log may be indented, and are.
fn is_jsonl(bytes: &[u8]) -> bool {
    let mut lines = bytes
        .split(|&b| b == b'\n')
        .filter(|l| !l.iter().all(u8::is_ascii_whitespace));
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else {
        return false;
    };
    let opens = |line: &[u8]| line.trim_ascii_start().starts_with(b"{");
    let whole = |line: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    opens(first) && opens(second) && (second.starts_with(b"{") || whole(first))
}

fn take_sections(map: &mut Map<String, Value>) -> Result<Option<Vec<Section>>, ContextError> {
    let Some(value) = map.shift_remove("sections").filter(|v| !v.is_null()) else {
        return Ok(None);
    };
    let values = array(value).map_err(|e| e.within("sections"))?;
    let read = |(i, value)| {
        serde_json::from_value(value).map_err(|error: serde_json::Error| {
            ContextError::invalid(
                format!("sections[{i}]"),
                error.to_string(),
                "a section is `{\"name\",\"origin\",\"stability\",\"priority\",\"text\"}`",
            )
        })
    };
    values
        .into_iter()
        .enumerate()
        .map(read)
        .collect::<Result<_, _>>()
        .map(Some)
}

fn take_messages(map: &mut Map<String, Value>, key: &str) -> Result<Vec<Message>, ContextError> {
    let values = take_array(map, key)?.into_iter().enumerate();
    values
        .map(|(i, v)| openai::read(v).map_err(|e| e.within(&format!("{key}[{i}]"))))
        .collect()
}

fn take_array(map: &mut Map<String, Value>, key: &str) -> Result<Vec<Value>, ContextError> {
    match map.shift_remove(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => array(value).map_err(|e| e.within(key)),
    }
}

fn take_text(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>, ContextError> {
    match map.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(mismatch(key, "a string", &other)),
    }
}

fn take_map(
    map: &mut Map<String, Value>,
    key: &str,
) -> Result<Option<Map<String, Value>>, ContextError> {
    match map.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => object(value).map(Some).map_err(|e| e.within(key)),
    }
}

fn array(value: Value) -> Result<Vec<Value>, ContextError> {
    match value {
        Value::Array(values) => Ok(values),
        other => Err(mismatch("", "an array", &other)),
    }
}

fn mismatch(place: &str, wanted: &str, found: &Value) -> ContextError {
    ContextError::invalid(
        place,
        format!("must be {wanted}, is {}", kind(found)),
        SHAPES,
    )
}
