//! OpenAI's chat message: read without loss, written for the log and for the wire.

use std::borrow::Cow;
use std::io::Write;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::words::words;
use super::{Content, FAILED, Message, Part, Role, ToolCall};
use crate::ContextError;
use crate::json::{kind, object};

/// Reads a chat message. The error names the field, as in `tool_calls[0].function.name`.
pub fn read(value: Value) -> Result<Message, ContextError> {
    let mut map = object(value)?;
    let role = match map.shift_remove("role") {
        Some(Value::String(name)) => Role::parse(&name).ok_or_else(|| {
            let known = Role::ALL.map(Role::as_str).join(", ");
            ContextError::invalid(
                "role",
                format!("unknown role `{}`", clip(&name)),
                format!("a role is one of {known}"),
            )
        })?,
        Some(other) => return Err(mismatch("role", "a string", &other)),
        None => {
            return Err(ContextError::invalid(
                "role",
                "is missing",
                "a message is `{\"role\":…,\"content\":…}`",
            ));
        }
    };
    let content = match map.shift_remove("content") {
        None | Some(Value::Null) => Content::Null,
        Some(Value::String(text)) => Content::Text(text),
        Some(Value::Array(parts)) => Content::Parts(
            parts
                .into_iter()
                .enumerate()
                .map(|(i, part)| read_part(part).map_err(|e| e.within(&format!("content[{i}]"))))
                .collect::<Result<_, _>>()?,
        ),
        Some(other) => {
            return Err(mismatch(
                "content",
                "a string, null or an array of parts",
                &other,
            ));
        }
    };
    let tool_calls = match take_either(&mut map, "tool_calls", "toolCalls")? {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(calls)) => calls
            .into_iter()
            .enumerate()
            .map(|(i, call)| read_call(call).map_err(|e| e.within(&format!("tool_calls[{i}]"))))
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(mismatch("tool_calls", "an array", &other)),
    };
    let tool_call_id = match take_either(&mut map, "tool_call_id", "toolCallId")? {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id),
        Some(other) => return Err(mismatch("tool_call_id", "a string", &other)),
    };
    Ok(Message {
        role,
        content,
        tool_calls,
        tool_call_id,
        name: take_string(&mut map, "name")?,
        id: take_string(&mut map, "id")?,
        include_in_context: take_bool(&mut map, "includeInContext")?.unwrap_or(true),
        pin: take_bool(&mut map, "pin")?.unwrap_or(false),
        extra: map,
    })
}

fn read_part(value: Value) -> Result<Part, ContextError> {
    // A bare string in a list of parts is what several clients write for a text part.
    if let Value::String(text) = value {
        return Ok(Part::text_part(text));
    }
    let mut map = object(value)?;
    let Some(Value::String(tag)) = map.get("type") else {
        return Err(ContextError::invalid(
            "type",
            "is missing",
            "a part names its type: text, image_url, file or thinking",
        ));
    };
    match tag.as_str() {
        "text" => {
            let text = take_string(&mut map, "text")?.unwrap_or_default();
            map.shift_remove("type");
            Ok(Part::Text { text, extra: map })
        }
        "image_url" => {
            let image_url = match map.shift_remove("image_url") {
                Some(Value::Object(image_url)) => image_url,
                Some(Value::String(url)) => Map::from_iter([("url".to_owned(), url.into())]),
                Some(other) => return Err(mismatch("image_url", "an object", &other)),
                None => Map::new(),
            };
            map.shift_remove("type");
            Ok(Part::Image {
                image_url,
                extra: map,
            })
        }
        "file" => {
            let file = match map.shift_remove("file") {
                Some(value) => object(value).map_err(|e| e.within("file"))?,
                None => Map::new(),
            };
            map.shift_remove("type");
            Ok(Part::File { file, extra: map })
        }
        "thinking" => {
            let thinking = take_string(&mut map, "thinking")?.unwrap_or_default();
            let signature = take_string(&mut map, "signature")?;
            map.shift_remove("type");
            Ok(Part::Thinking {
                thinking,
                signature,
                extra: map,
            })
        }
        _ => Ok(Part::Other(map)),
    }
}

fn read_call(value: Value) -> Result<ToolCall, ContextError> {
    let mut map = object(value)?;
    let custom = map.get("type").is_some_and(|kind| kind == "custom");
    let (place, field) = if custom {
        ("custom", "input")
    } else {
        ("function", "arguments")
    };
    let mut function = match map.shift_remove(place) {
        Some(value) => object(value).map_err(|e| e.within(place))?,
        None => {
            return Err(ContextError::invalid(
                place,
                "is missing",
                "a call is `{\"id\":…,\"type\":\"function\",\"function\":{\"name\":…,\"arguments\":\"…\"}}`",
            ));
        }
    };
    let name = take_string(&mut function, "name")
        .map_err(|e| e.within(place))?
        .unwrap_or_default();
    let arguments = match function.shift_remove(field) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        // Some servers give the object itself.
        Some(other) => other.to_string(),
    };
    let id = take_string(&mut map, "id")?.unwrap_or_default();
    if map.get("type").is_some_and(|t| t == "function") {
        map.shift_remove("type");
    }
    Ok(ToolCall {
        id,
        name,
        arguments,
        extra: map,
        function_extra: function,
    })
}

fn take_either(
    map: &mut Map<String, Value>,
    wire: &str,
    ours: &str,
) -> Result<Option<Value>, ContextError> {
    match (map.shift_remove(wire), map.shift_remove(ours)) {
        (Some(_), Some(_)) => Err(ContextError::invalid(
            wire,
            format!("stands beside `{ours}`, which means the same"),
            "keep one of the two",
        )),
        (one, other) => Ok(one.or(other)),
    }
}

fn take_string(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>, ContextError> {
    match map.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(mismatch(key, "a string", &other)),
    }
}

fn take_bool(map: &mut Map<String, Value>, key: &str) -> Result<Option<bool>, ContextError> {
    match map.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(value)),
        Some(other) => Err(mismatch(key, "true or false", &other)),
    }
}

fn mismatch(place: &str, wanted: &str, found: &Value) -> ContextError {
    ContextError::invalid(
        place,
        format!("must be {wanted}, is {}", kind(found)),
        "messages follow OpenAI's chat format",
    )
}

fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Appends the message as it goes over the wire: without what is ours alone, and without thinking,
/// for which the chat format has no place. Nor has it one for media of anybody but a user.
pub fn write(message: &Message, out: &mut Vec<u8>) {
    write_form(message, Form::Wire, out);
}

/// The message as a value in canonical form, without our own fields: what `modelMessages` shows.
pub fn shown(message: &Message) -> Value {
    let mut bytes = Vec::new();
    write_form(message, Form::Shown, &mut bytes);
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// The hash of what a model is shown of the message.
pub(crate) fn hash(message: &Message) -> blake3::Hash {
    let mut hash = blake3::Hasher::new();
    write_form(message, Form::Shown, &mut hash);
    hash.finalize()
}

fn write_form(message: &Message, form: Form, out: impl Write) {
    let written = serde_json::to_writer(out, &Written { message, form });
    // Writing to memory fails only when a map key is no string, and ours all are.
    debug_assert!(written.is_ok());
}

/// The message as it stands in the log.
pub(super) struct Canonical<'a>(pub &'a Message);

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = Form::Log;
        Written {
            message: self.0,
            form,
        }
        .serialize(serializer)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Everything.
    Log,
    /// Without our own fields.
    Shown,
    /// Without our own fields and without thinking.
    Wire,
}

struct Written<'a> {
    message: &'a Message,
    form: Form,
}

impl Written<'_> {
    /// Whether no content goes over the wire.
    fn says_nothing(&self) -> bool {
        let Message { role, content, .. } = self.message;
        match content {
            Content::Null => true,
            Content::Text(_) => false,
            Content::Parts(parts) => parts.iter().all(|part| sent(part, *role).is_none()),
        }
    }
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Destructured, so that a new field forces a decision here.
        let Message {
            role,
            content,
            tool_calls,
            tool_call_id,
            name,
            id,
            include_in_context,
            pin,
            extra,
        } = self.message;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role.as_str())?;
        match content {
            _ if self.form == Form::Wire && self.says_nothing() => {
                // Of an assistant the chat format takes null for nothing, but no empty list; of
                // anybody else it takes neither.
                let nothing = (*role != Role::Assistant).then_some("");
                map.serialize_entry("content", &nothing)?;
            }
            Content::Null => map.serialize_entry("content", &())?,
            Content::Text(text) => map.serialize_entry("content", text)?,
            Content::Parts(parts) => {
                map.serialize_entry("content", &Parts(parts, *role, self.form))?;
            }
        }
        if !tool_calls.is_empty() {
            map.serialize_entry("tool_calls", &Calls(tool_calls))?;
        }
        if let Some(id) = tool_call_id {
            map.serialize_entry("tool_call_id", id)?;
        }
        if let Some(name) = name {
            map.serialize_entry("name", name)?;
        }
        if self.form == Form::Log {
            if let Some(id) = id {
                map.serialize_entry("id", id)?;
            }
            if !include_in_context {
                map.serialize_entry("includeInContext", &false)?;
            }
            if *pin {
                map.serialize_entry("pin", &true)?;
            }
        }
        let ours = |key: &str| *role == Role::Tool && FAILED.contains(&key);
        for (key, value) in extra {
            if self.form == Form::Log || !ours(key) {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

struct Parts<'a>(&'a [Part], Role, Form);

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(parts, role, form) = self;
        let mut seq = serializer.serialize_seq(None)?;
        for part in *parts {
            match form {
                Form::Log | Form::Shown => seq.serialize_element(&PartForm(part))?,
                Form::Wire => {
                    if let Some(part) = sent(part, *role) {
                        seq.serialize_element(&PartForm(&part))?;
                    }
                }
            }
        }
        seq.end()
    }
}

/// The part as it goes over the wire, if it does: thinking has no place there. Only a user may show
/// more than text, so of others the rest is said in words.
fn sent(part: &Part, role: Role) -> Option<Cow<'_, Part>> {
    let is_refusal = |map: &Map<String, Value>| map.get("type").is_some_and(|t| t == "refusal");
    match part {
        _ if part.is_thinking() => None,
        Part::Text { .. } => Some(Cow::Borrowed(part)),
        Part::Other(map) if role == Role::Assistant && is_refusal(map) => Some(Cow::Borrowed(part)),
        _ if role == Role::User => Some(Cow::Borrowed(part)),
        _ => words(part).map(|text| Cow::Owned(Part::text_part(text))),
    }
}

struct PartForm<'a>(&'a Part);

impl Serialize for PartForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let extra = match self.0 {
            Part::Text { text, extra } => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
                extra
            }
            Part::Image { image_url, extra } => {
                map.serialize_entry("type", "image_url")?;
                map.serialize_entry("image_url", image_url)?;
                extra
            }
            Part::File { file, extra } => {
                map.serialize_entry("type", "file")?;
                map.serialize_entry("file", file)?;
                extra
            }
            Part::Thinking {
                thinking,
                signature,
                extra,
            } => {
                map.serialize_entry("type", "thinking")?;
                map.serialize_entry("thinking", thinking)?;
                if let Some(signature) = signature {
                    map.serialize_entry("signature", signature)?;
                }
                extra
            }
            Part::Other(whole) => whole,
        };
        for (key, value) in extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

struct Calls<'a>(&'a [ToolCall]);

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Call))
    }
}

struct Call<'a>(&'a ToolCall);

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolCall {
            id,
            name,
            arguments,
            extra,
            function_extra,
        } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", id)?;
        if !extra.contains_key("type") {
            map.serialize_entry("type", "function")?;
        }
        for (key, value) in extra {
            map.serialize_entry(key, value)?;
        }
        let place = if self.0.is_custom() {
            "custom"
        } else {
            "function"
        };
        let field = if self.0.is_custom() {
            "input"
        } else {
            "arguments"
        };
        map.serialize_entry(place, &Function(name, (field, arguments), function_extra))?;
        map.end()
    }
}

struct Function<'a>(&'a str, (&'a str, &'a str), &'a Map<String, Value>);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", self.0)?;
        map.serialize_entry(self.1.0, self.1.1)?;
        for (key, value) in self.2 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
