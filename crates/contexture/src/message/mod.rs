//! The canonical message and its wire forms.
//!
//! The canonical form is OpenAI's chat message, so that existing transcripts work as they are;
//! [`openai`] reads and writes it, [`anthropic`] and [`responses`] write the same conversation in
//! Anthropic's form and in that of OpenAI's responses API.

pub mod anthropic;
mod data_url;
mod names;
pub mod openai;
mod pairs;
pub(crate) mod params;
mod part;
pub mod responses;
mod role;
mod size;
mod tool_call;
mod tool_choice;
mod tool_spec;
mod words;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

pub(crate) use names::legal;
pub use part::Part;
pub use role::Role;
pub use tool_call::ToolCall;
pub(crate) use words::words;

/// The form in which a request goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// OpenAI's chat completions body.
    #[default]
    OpenAi,
    /// Anthropic's messages body.
    Anthropic,
    /// The body of OpenAI's responses API.
    Responses,
}

/// The fields of a tool's result that say whether it failed. The chat form does not know them.
const FAILED: [&str; 2] = ["is_error", "isError"];

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content,
    /// Tools that an assistant asks to run.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
    /// The speaker's name, where there are several of one role.
    pub name: Option<String>,
    /// Our own identity of the message; never sent.
    pub id: Option<String>,
    /// Whether the message may be shown to the model; never sent.
    pub include_in_context: bool,
    /// Whether the message must be in every later request, verbatim; never sent.
    pub pin: bool,
    /// Fields we do not know: kept, and passed through. And, of a tool's result, `isError`.
    pub extra: Map<String, Value>,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Content {
    /// Nothing, as in an assistant message that only calls tools.
    #[default]
    Null,
    /// Plain text.
    Text(String),
    /// A list of parts.
    Parts(Vec<Part>),
}

impl Message {
    /// A message of `role` that says `text`.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: Content::Text(text.into()),
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            id: None,
            include_in_context: true,
            pin: false,
            extra: Map::new(),
        }
    }

    /// A system message.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text)
    }

    /// A user message.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, text)
    }

    /// An assistant message.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, text)
    }

    /// An assistant message that calls tools and says nothing.
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self {
            content: Content::Null,
            tool_calls: calls.into_iter().collect(),
            ..Self::assistant("")
        }
    }

    /// The result of the tool call `id`.
    pub fn tool_result(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            tool_call_id: Some(id.into()),
            ..Self::new(Role::Tool, text)
        }
    }

    /// The same message with another text, and none of its own content.
    pub(crate) fn saying(&self, text: impl Into<String>) -> Self {
        // Destructured, so that a new field forces a decision here.
        let Self {
            role,
            content: _,
            tool_calls,
            tool_call_id,
            name,
            id,
            include_in_context,
            pin,
            extra,
        } = self;
        Self {
            role: *role,
            content: Content::Text(text.into()),
            tool_calls: tool_calls.clone(),
            tool_call_id: tool_call_id.clone(),
            name: name.clone(),
            id: id.clone(),
            include_in_context: *include_in_context,
            pin: *pin,
            extra: extra.clone(),
        }
    }

    /// All text of the message: its content's text parts, one after another.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match &self.content {
            Content::Null => "".into(),
            Content::Text(text) => text.into(),
            Content::Parts(parts) => match parts.as_slice() {
                [one] => one.text().unwrap_or_default().into(),
                parts => parts
                    .iter()
                    .filter_map(Part::text)
                    .collect::<String>()
                    .into(),
            },
        }
    }

    /// The parts of the content, however it was written.
    pub fn parts(&self) -> Vec<Part> {
        match &self.content {
            Content::Null => Vec::new(),
            Content::Text(text) => vec![Part::text_part(text.clone())],
            Content::Parts(parts) => parts.clone(),
        }
    }

    /// Whether it is the result of a tool that failed: `is_error` or `isError` says so.
    pub fn failed(&self) -> bool {
        let says = |key: &str| self.extra.get(key).is_some_and(|failed| failed == true);
        self.role == Role::Tool && FAILED.into_iter().any(says)
    }

    /// Whether there is nothing in it that a model could read or act on.
    ///
    /// Thinking alone counts as nothing: no provider takes an assistant turn made of it, and an
    /// interrupted reply leaves just that. Nor do calls, unless it is an assistant who makes them.
    pub fn is_empty(&self) -> bool {
        (self.tool_calls.is_empty() || self.role != Role::Assistant)
            && match &self.content {
                Content::Null => true,
                Content::Text(text) => text.trim().is_empty(),
                Content::Parts(parts) => parts.iter().all(Part::is_empty),
            }
    }
}

impl Message {
    /// Whether a model is shown the same: all but what is ours alone.
    pub(crate) fn shows_same(&self, other: &Self) -> bool {
        // Destructured, so that a new field forces a decision here.
        let Self {
            role,
            content,
            tool_calls,
            tool_call_id,
            name,
            id: _,
            include_in_context: _,
            pin: _,
            extra,
        } = self;
        *role == other.role
            && *content == other.content
            && *tool_calls == other.tool_calls
            && *tool_call_id == other.tool_call_id
            && *name == other.name
            && *extra == other.extra
    }
}

impl Serialize for Message {
    /// The canonical form, with our own fields where they differ from the default.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        openai::Canonical(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        openai::read(value)
            .map_err(|error| serde::de::Error::custom(format!("{error} ({})", error.hint())))
    }
}
