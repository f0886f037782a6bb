//! Arguments within their bounds. The schema says the same, and whoever calls a tool checks it; this
//! is for callers that did not.

use serde_json::{Map, Value, json};

/// A whole number with bounds and a default.
pub(super) struct Number {
    pub name: &'static str,
    pub least: usize,
    pub most: usize,
    pub usual: usize,
}

/// How many lines to load.
pub(super) const COUNT: Number = Number {
    name: "count",
    least: 1,
    most: 200,
    usual: 20,
};

/// How many of the newest to pass over.
pub(super) const OFFSET: Number = Number {
    name: "offset",
    least: 0,
    most: 2_000,
    usual: 0,
};

impl Number {
    pub(super) fn schema(&self, about: &str) -> Value {
        json!({
            "type": "integer",
            "minimum": self.least,
            "maximum": self.most,
            "default": self.usual,
            "description": about,
        })
    }

    pub(super) fn of(&self, arguments: &Map<String, Value>) -> Result<usize, String> {
        Ok(self.given(arguments)?.unwrap_or(self.usual))
    }

    pub(super) fn given(&self, arguments: &Map<String, Value>) -> Result<Option<usize>, String> {
        let Self {
            name, least, most, ..
        } = self;
        let value = match arguments.get(*name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        // To JSON Schema, 20.0 is an integer as well.
        let number = value
            .as_f64()
            .filter(|number| number.fract() == 0.0)
            .filter(|&number| number >= *least as f64 && number <= *most as f64);
        match number {
            Some(number) => Ok(Some(number as usize)),
            None => Err(format!(
                "`{name}` must be a whole number from {least} to {most}"
            )),
        }
    }
}

/// A text of at most `most` characters.
pub(super) fn text<'a>(
    arguments: &'a Map<String, Value>,
    name: &str,
    most: usize,
) -> Result<Option<&'a str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.chars().nth(most).is_none() => Ok(Some(text)),
        Some(Value::String(_)) => Err(format!("`{name}` has more than {most} characters")),
        Some(_) => Err(format!("`{name}` must be a text")),
    }
}

/// The schema of an object with these properties and no others.
pub(super) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
