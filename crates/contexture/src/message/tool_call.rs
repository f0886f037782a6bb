use serde_json::{Map, Value};

use crate::json;

/// A tool that the model asks to run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The call's id. Real logs reuse ids inside one session: pair by position, never by id alone.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, as JSON text; what a model wrote may be no JSON at all. For a custom tool, its
    /// input.
    pub arguments: String,
    /// Unknown fields of the call.
    pub extra: Map<String, Value>,
    /// Unknown fields of its `function` object.
    pub function_extra: Map<String, Value>,
}

impl ToolCall {
    /// A call of `name` with `arguments` as JSON text.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            extra: Map::new(),
            function_extra: Map::new(),
        }
    }

    /// Whether it calls one of OpenAI's custom tools, whose input is plain text.
    pub fn is_custom(&self) -> bool {
        self.extra.get("type").is_some_and(|kind| kind == "custom")
    }

    /// The arguments as an object, when they are one.
    pub fn arguments_object(&self) -> Option<Map<String, Value>> {
        json::from_text(&self.arguments).ok()
    }
}
