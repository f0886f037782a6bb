//! JSON Schemas of tools' arguments, from whoever wrote them: nothing is fetched, and checking takes
//! bounded time.
//!
//! A schema is a small program. `allOf` and `$ref` alone can double the work with every line, and a
//! pattern can backtrack for ever. So patterns run on an engine that takes linear time, references stay
//! inside the schema, and the steps that a check would take are counted before it is done.

mod walk;

use std::fmt;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

/// The most bytes of a schema.
const MOST_BYTES: usize = 128 << 10;
/// The most bytes that one pattern may take when it is compiled.
const MOST_PATTERN: usize = 1 << 20;
/// The most faults that are told at once.
const MOST_FAULTS: usize = 5;
/// The most characters of one fault.
const LONGEST_FAULT: usize = 300;

/// A schema that arguments can be checked with.
pub struct Schema {
    validator: Validator,
    source: Value,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is not one of an object.
    #[error("its root is not of type object")]
    NotAnObject,
    /// It is too long.
    #[error("it has {bytes} bytes, and {MOST_BYTES} are the most")]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// It is nested too deeply.
    #[error("{place}: nested too deeply")]
    TooDeep {
        /// Where, as a JSON pointer.
        place: String,
    },
    /// It refers to something outside of itself, or in a way that cannot be bounded.
    #[error("{place}: the reference `{to}` is not to a place inside of it")]
    Outside {
        /// Where, as a JSON pointer.
        place: String,
        /// To what.
        to: String,
    },
    /// It refers to itself without end.
    #[error("{place}: refers to itself without looking at anything")]
    Cycle {
        /// Where, as a JSON pointer.
        place: String,
    },
    /// It is not a schema.
    #[error("{what}")]
    Invalid {
        /// What is wrong.
        what: String,
    },
}

impl SchemaError {
    /// What whoever wrote the tool can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAnObject => "a tool's arguments are an object: say `\"type\": \"object\"`",
            Self::TooLong { .. } | Self::TooDeep { .. } => "make the schema smaller",
            Self::Outside { .. } => "put what it refers to under `$defs`",
            Self::Cycle { .. } => "put a property or an item between the two",
            Self::Invalid { .. } => "see https://json-schema.org",
        }
    }
}

impl Schema {
    /// Reads a schema.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let bytes = schema.to_string().len();
        if bytes > MOST_BYTES {
            return Err(SchemaError::TooLong { bytes });
        }
        let kind = schema.get("type");
        if !schema.is_object() || kind.is_some_and(|kind| kind != "object") {
            return Err(SchemaError::NotAnObject);
        }
        walk::inspect(schema)?;
        let patterns = PatternOptions::regex()
            .size_limit(MOST_PATTERN)
            .dfa_size_limit(MOST_PATTERN);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|error| SchemaError::Invalid {
                what: cut(&error.masked().to_string()),
            })?;
        Ok(Self {
            validator,
            source: schema.clone(),
        })
    }

    /// A schema that takes every object.
    pub fn permissive() -> Value {
        json!({ "type": "object", "additionalProperties": true })
    }

    /// Whether the schema allows these arguments. Says otherwise where it does not, and what was
    /// expected, but never the value: it may be long, or a secret.
    pub fn check(&self, arguments: &Map<String, Value>) -> Result<(), String> {
        let instance = Value::Object(arguments.clone());
        if !walk::affordable(&self.source, &instance) {
            return Err("the arguments are too many or too deep to be checked".to_owned());
        }
        let mut faults: Vec<String> = Vec::new();
        for error in self.validator.iter_errors(&instance).take(MOST_FAULTS) {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() {
                "arguments"
            } else {
                &place
            };
            faults.push(cut(&format!("{place}: {}", error.masked())));
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(faults.join("; ")),
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.source).finish()
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_FAULT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
