//! Bounded JSON: the one door through which bytes from outside become values.
//!
//! What a text takes in memory is bounded before it is parsed ([`Footprint`]), for whatever comes from
//! files, models, servers and agents. Depth is bounded by `serde_json` itself.
//!
//! Documents and logs are read strictly ([`parse`]): `serde_json` takes the last of two equal keys in
//! silence, and in a transcript that is how two readers come to see two different conversations. Here it is
//! an error with its line and column, like every other defect.

mod footprint;

use std::fmt;

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

use crate::ContextError;
pub use footprint::{Footprint, fits, held};

/// The longest line or document that is read. Nothing a model can be told comes near it.
pub const MAX_BYTES: usize = 64 << 20;
/// The most memory that one line or document may take once it is parsed, and the lines of an input together.
pub const MAX_HELD_BYTES: usize = 96 << 20;

/// Why JSON from outside was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It would take too much memory.
    #[error("too large: it would take more than {} MiB of memory", max_held >> 20)]
    TooLarge {
        /// The most that it may take.
        max_held: usize,
    },
    /// It is not the JSON that is expected.
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
}

/// Reads JSON that came from outside, unless it would take more than `max_held` bytes of memory.
pub fn read<T: DeserializeOwned>(bytes: &[u8], max_held: usize) -> Result<T, ReadError> {
    if !fits(bytes, max_held) {
        return Err(ReadError::TooLarge { max_held });
    }
    Ok(serde_json::from_slice(bytes)?)
}

/// Reads JSON that stands in a text of somebody else's, within [`MAX_HELD_BYTES`].
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    read(text.as_bytes(), MAX_HELD_BYTES)
}

/// Parses one JSON document. `first_line` is the line at which `bytes` begin in their file.
pub fn parse(bytes: &[u8], first_line: usize) -> Result<Value, ContextError> {
    parse_within(bytes, first_line, MAX_HELD_BYTES)
}

/// The same, for a document that may take at most `max_held` bytes of memory.
pub fn parse_within(
    bytes: &[u8],
    first_line: usize,
    max_held: usize,
) -> Result<Value, ContextError> {
    if bytes.len() > MAX_BYTES {
        return Err(too_long(first_line));
    }
    if !fits(bytes, max_held) {
        return Err(too_large(first_line, max_held));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Strict
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| syntax(&error, first_line))
}

/// The error for a line above [`MAX_BYTES`].
pub fn too_long(line: usize) -> ContextError {
    ContextError::invalid(
        format!("line {line}"),
        format!("longer than {} MiB", MAX_BYTES >> 20),
        "split the document, or keep such data in a file and refer to it by path",
    )
}

/// The error for a document that would take more memory than it may.
pub(crate) fn too_large(line: usize, max_held: usize) -> ContextError {
    ContextError::invalid(
        format!("line {line}"),
        ReadError::TooLarge { max_held }.to_string(),
        "split the document, or give as text what is many small values",
    )
}

fn syntax(error: &serde_json::Error, first_line: usize) -> ContextError {
    let line = first_line + error.line().saturating_sub(1);
    let full = error.to_string();
    // serde_json appends its own position, which counts from the start of the slice.
    let what = full
        .rsplit_once(" at line ")
        .map_or(full.as_str(), |(w, _)| w);
    let hint = if what.starts_with("EOF") {
        "the document ends too early: was it cut off while being written?"
    } else if what.starts_with("recursion limit") {
        "nesting is limited to 128 levels"
    } else {
        "the input must be valid JSON in UTF-8, each key once in its object"
    };
    ContextError::invalid(
        format!("line {line}, column {}", error.column()),
        what,
        hint,
    )
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(value) = seq.next_element_seed(Strict)? {
            out.push(value);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if out.contains_key(&key) {
                return Err(de::Error::custom(format!("the key `{key}` stands twice")));
            }
            let value = map.next_value_seed(Strict)?;
            out.insert(key, value);
        }
        Ok(Value::Object(out))
    }
}

/// What kind of value this is, for messages to people.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The object in `value`, or an error that says what stands there instead.
pub(crate) fn object(value: Value) -> Result<Map<String, Value>, ContextError> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(ContextError::invalid(
            "",
            format!("must be an object, is {}", kind(&other)),
            "see `ctx build --help` for the shapes that are read",
        )),
    }
}
