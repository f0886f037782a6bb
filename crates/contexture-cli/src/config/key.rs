//! A key of `contexture.json`: what it takes, and what a project may do to it.

use contexture::ContextError;
use serde_json::{Value, json};

use Kind::{Choice, Integer, Object, Objects, Switch, Text, Texts};
use Precedence::{First, Off, Own, Project, Smaller, User};

use super::range::Range;

/// A key: its path, when a project's value counts, what it takes, its default, and what it is for.
pub(super) struct Key {
    pub path: &'static str,
    pub trust: Trust,
    pub precedence: Precedence,
    pub kind: Kind,
    pub default: Value,
    pub about: &'static str,
}

/// The trust that a project's value needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// None.
    Free,
    /// None to narrow the default; trust to raise it where the user set no limit.
    ToRaise,
    /// Trust in any case: it runs something, sends something, or allows more than the user did.
    Needed,
}

/// The value that counts where both the user and the project set one. A project may narrow the user's limits, and
/// never widen them, trusted or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precedence {
    /// The project's: a preference.
    Project,
    /// The user's: neither direction is the stricter one.
    User,
    /// The smaller number.
    Smaller,
    /// Off, where one of them says so.
    Off,
    /// The choice that stands first among the key's choices.
    First,
    /// Both, put together by the key's own reader: additions add up, permissions are only narrowed.
    Own,
}

/// What a key takes.
pub(super) enum Kind {
    Integer(Range),
    Switch,
    Text,
    /// One of these, and what to say of them.
    Choice(&'static [&'static str], &'static str),
    Texts,
    Object,
    Objects,
}

pub(super) fn key(
    path: &'static str,
    trust: Trust,
    precedence: Precedence,
    kind: Kind,
    default: Value,
    about: &'static str,
) -> Key {
    Key {
        path,
        trust,
        precedence,
        kind,
        default,
        about,
    }
}

impl Key {
    /// Whether a project's value needs trust, where the user set this one or none.
    pub(super) fn needs_trust(&self, project: &Value, user: Option<&Value>) -> bool {
        match self.trust {
            Trust::Free => false,
            Trust::Needed => says_something(project),
            Trust::ToRaise => user.is_none() && project.as_u64() > self.default.as_u64(),
        }
    }

    /// Whether the project's value counts, and not the user's.
    pub(super) fn is_projects(&self, project: &Value, user: &Value) -> bool {
        match (self.precedence, &self.kind) {
            (Project, _) => true,
            (User | Own, _) => false,
            (Smaller, _) => project.as_u64() < user.as_u64(),
            (Off, _) => project == &Value::Bool(false),
            (First, Choice(choices, _)) => {
                let place = |value: &Value| {
                    let is = |choice: &&str| value.as_str() == Some(*choice);
                    choices.iter().position(is)
                };
                place(project) < place(user)
            }
            (First, _) => false,
        }
    }

    pub(super) fn check(&self, value: &Value) -> Result<(), ContextError> {
        let of_type = match &self.kind {
            Integer(range) => return range.read(self.path, value).map(drop),
            Switch => value.is_boolean(),
            Text | Choice(..) => value.is_string(),
            Texts => value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string)),
            Object => value.is_object(),
            Objects => value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_object)),
        };
        if !of_type {
            return Err(mistyped(self.path, self.kind.name()));
        }
        match (&self.kind, value.as_str()) {
            (Choice(known, hint), Some(text)) if !known.contains(&text) => Err(
                ContextError::invalid(self.path, format!("`{text}` is unknown"), *hint),
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn schema(&self) -> Value {
        let schema = match &self.kind {
            Integer(range) => range.schema(),
            Switch => json!({ "type": "boolean" }),
            Text => json!({ "type": "string" }),
            Choice(known, _) => json!({ "type": "string", "enum": known }),
            Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Object => json!({ "type": "object" }),
            Objects => json!({ "type": "array", "items": { "type": "object" } }),
        };
        self.described(schema)
    }

    /// The schema with what the key is for, and its default.
    pub(super) fn described(&self, mut schema: Value) -> Value {
        schema["description"] = json!(self.about);
        if !self.default.is_null() {
            schema["default"] = self.default.clone();
        }
        schema
    }
}

/// An empty object or list asks for nothing.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Integer(_) => "integer",
            Switch => "boolean",
            Text | Choice(..) => "string",
            Texts => "array of strings",
            Object => "object",
            Objects => "array of objects",
        }
    }
}

/// The error for a value of another type.
pub(super) fn mistyped(path: impl Into<String>, kind: &str) -> ContextError {
    ContextError::invalid(
        path,
        format!("must be of type {kind}"),
        "see `ctx config schema`",
    )
}
