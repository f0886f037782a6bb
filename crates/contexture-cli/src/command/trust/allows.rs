//! The permissions that a folder's files would get with trust, a line each.

use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::view::{plural, safe};

/// The permissions that trust in a folder would give.
pub struct Allows {
    /// Keys of its configuration that count only with trust.
    settings: Map<String, Value>,
    skills: Vec<String>,
    instructions: Vec<String>,
}

impl Allows {
    pub fn new(config: &Config) -> Self {
        let seen = config.folder.seen();
        let skills = seen.skills.used().iter();
        let files = seen.instructions.files().iter();
        Self {
            settings: config.needs_trust.clone(),
            skills: skills.map(|skill| skill.name.clone()).collect(),
            instructions: files.map(|file| file.shown().to_owned()).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.skills.is_empty() && self.instructions.is_empty()
    }

    pub fn to_value(&self) -> Value {
        json!({
            "settings": self.settings, "skills": self.skills, "instructions": self.instructions,
        })
    }

    pub fn in_words(&self) -> String {
        let mut out = String::new();
        for (key, value) in &self.settings {
            match (key.as_str(), value) {
                ("mcpServers", Value::Object(servers)) => {
                    for (name, server) in servers {
                        out.push_str(&format!(
                            "  starts the MCP server {}\n",
                            safe(&started(name, server))
                        ));
                    }
                }
                ("baseUrl", url) => {
                    out.push_str(&format!("  sends everything to {}\n", shown(url)));
                }
                (key, value) => out.push_str(&format!("  runs with {key} = {}\n", shown(value))),
            }
        }
        if !self.skills.is_empty() {
            let names = safe(&self.skills.join(", "));
            out.push_str(&format!(
                "  may load {}: {names}\n",
                plural(self.skills.len(), "skill")
            ));
        }
        for file in &self.instructions {
            out.push_str(&format!("  follows {}\n", safe(file)));
        }
        out
    }
}

/// A server: what it runs, and everything else that is said of it, since a variable can change what
/// a program does as much as its name.
fn started(name: &str, server: &Value) -> String {
    let mut rest = server.as_object().cloned().unwrap_or_default();
    let mut words: Vec<String> = vec![format!("{name}:")];
    for key in ["command", "args", "url"] {
        match rest.get(key) {
            Some(Value::String(word)) => words.push(quoted(word)),
            Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
                words.extend(list.iter().filter_map(Value::as_str).map(quoted));
            }
            _ => continue,
        }
        rest.shift_remove(key);
    }
    if !rest.is_empty() {
        words.push(format!("with {}", Value::Object(rest)));
    }
    words.join(" ")
}

/// A word of a command, in quotes where it would not be taken for one.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@,+%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("{word:?}"),
    }
}

/// A value on a line, whole: what is not shown is not agreed to.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => safe(text),
        other => safe(&other.to_string()),
    }
}
