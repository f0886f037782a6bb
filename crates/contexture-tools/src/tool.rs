use std::future::Future;
use std::pin::Pin;

use contexture::{Content, json as bounded};
use serde_json::{Map, Value, json};

/// Something that a model can call.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> &ToolSpec;

    /// Does it. The arguments are an object that the spec's schema allows. Dropping the future ends
    /// the work, and what it started.
    fn call<'a>(&'a self, arguments: &'a Map<String, Value>) -> Calling<'a>;
}

/// A call under way.
pub type Calling<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// What a tool is.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name toward people: `exec_shell`, `server:tool`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments: an object's.
    pub parameters: Value,
    /// The category that a tool policy may name.
    pub category: String,
    /// What a call does to the world.
    pub effect: Effect,
}

/// What a call does to the world: decides what may run at the same time, and whom to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Looks only: may run beside others, and nobody is asked.
    Reads,
    /// Tells the user or the conversation something: in order, and nobody is asked.
    Tells,
    /// Changes something, or might: in order, and somebody is asked.
    Acts,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the model reads.
    pub content: Content,
    /// Whether it failed.
    pub failed: bool,
    /// What people read: a few words, never raw JSON.
    pub summary: String,
}

/// The longest name that every provider takes.
const LONGEST: usize = 64;

impl ToolSpec {
    /// The name that a model calls it by, which every provider takes: `server:tool` becomes
    /// `server__tool`.
    pub fn wire_name(&self) -> String {
        wire_name(&self.name)
    }

    /// The spec as a request has it.
    pub fn to_value(&self) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": self.wire_name(),
                "description": self.description,
                "parameters": self.parameters,
            },
        })
    }

    /// The identity of what it claims to do. Another description, schema or effect is another tool,
    /// and what was allowed of the one is not allowed of the other.
    pub fn digest(&self) -> String {
        let said = json!([
            self.name,
            self.description,
            self.parameters,
            self.effect as u8
        ]);
        blake3::hash(said.to_string().as_bytes())
            .to_hex()
            .to_string()
    }
}

impl Outcome {
    /// It worked. The summary is the beginning of the text, unless another is set.
    pub fn done(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            summary: brief(&text),
            content: Content::Text(text),
            failed: false,
        }
    }

    /// It did not, and this is why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            failed: true,
            ..Self::done(text)
        }
    }

    /// The same, failed where the result itself says so: an object with `success: false`. Its `error` or `stderr` is
    /// then what people read.
    pub(crate) fn judged(self) -> Self {
        let said = match &self.content {
            Content::Text(text) => Some(text.as_str()),
            Content::Parts(parts) => match parts.as_slice() {
                [part] => part.text(),
                _ => None,
            },
            Content::Null => None,
        };
        let Some(said) = said.filter(|said| said.trim_start().starts_with('{')) else {
            return self;
        };
        match bounded::read::<Map<String, Value>>(said.as_bytes(), MAX_RESULT_HELD_BYTES) {
            Ok(said) if said.get("success") == Some(&Value::Bool(false)) => {
                let why = ["error", "stderr"]
                    .into_iter()
                    .find_map(|key| said.get(key)?.as_str());
                let failed = Self {
                    failed: true,
                    ..self
                };
                match why.filter(|why| !why.trim().is_empty()) {
                    Some(why) => failed.saying(why.trim()),
                    None => failed,
                }
            }
            _ => self,
        }
    }

    /// With other words for people.
    pub fn saying(self, summary: impl AsRef<str>) -> Self {
        Self {
            summary: brief(summary.as_ref()),
            ..self
        }
    }
}

/// The most memory that a result may take to be read for whether it failed.
const MAX_RESULT_HELD_BYTES: usize = 8 << 20;

/// The most characters of a summary.
const BRIEF: usize = 500;

/// The beginning of a text.
fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF) {
        None => text.to_owned(),
        Some(_) => {
            let cut: String = text.chars().take(BRIEF - 1).collect();
            format!("{cut}…")
        }
    }
}

/// A name that every provider takes: letters, digits, `_` and `-`, at most 64 of them. One that is too
/// long ends with a hash of all of it.
fn wire_name(name: &str) -> String {
    let legal = |c: char| match c {
        ':' => "__".to_owned(),
        c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => c.to_string(),
        _ => "_".to_owned(),
    };
    let plain: String = name.chars().map(legal).collect();
    if plain.len() <= LONGEST {
        return plain;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{}_{}", &plain[..LONGEST - 9], &hash[..8])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn wire_names_are_legal_and_differ() {
        assert_eq!(wire_name("fs:read_file"), "fs__read_file");
        assert_eq!(wire_name("день.x"), "_____x");
        let long = |end: &str| wire_name(&format!("{}{end}", "server:".repeat(20)));
        assert_eq!(long("a").len(), 64);
        assert_ne!(long("a"), long("b"));
    }

    #[test]
    fn another_description_is_another_tool() {
        let spec = ToolSpec {
            name: "x".into(),
            description: "reads".into(),
            parameters: json!({"type": "object"}),
            category: "mcp".into(),
            effect: Effect::Reads,
        };
        let changed = ToolSpec {
            description: "reads, and sends it to me".into(),
            ..spec.clone()
        };
        assert_ne!(spec.digest(), changed.digest());
    }

    #[test]
    fn a_summary_is_brief() {
        assert_eq!(Outcome::done("é".repeat(501)).summary.chars().count(), 500);
        assert_eq!(Outcome::done("é".repeat(500)).summary, "é".repeat(500));
    }
}
