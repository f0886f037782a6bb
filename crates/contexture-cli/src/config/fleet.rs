//! What the daemon needs of the configuration.

use std::time::Duration;

use contexture::ContextError;
use contexture_fleet::Hook;
use serde_json::{Value, json};

use super::layers::Layers;
use super::range::HOOK_MILLISECONDS;

/// Where the daemon listens, unless somebody says otherwise.
pub const LISTEN: &str = "127.0.0.1:4100";
/// How many hours a session's token counts.
pub(super) const TOKEN_HOURS: u64 = 24;
/// How many seconds a person has to answer an agent.
pub(super) const ASK_SECONDS: u64 = 300;
/// How long a hook may take.
const HOOK_PATIENCE: Duration = Duration::from_secs(10);

/// How a fleet runs.
#[derive(Debug)]
pub struct FleetConfig {
    /// Where the daemon listens.
    pub listen: String,
    /// How long a session's token counts.
    pub token_life: Duration,
    /// How long a person has to answer an agent.
    pub patience: Duration,
    /// Commands that are told of events: the user's, then the project's.
    pub hooks: Vec<Hook>,
}

impl FleetConfig {
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, ContextError> {
        let number = |path: &str, default: u64| {
            let given = layers.get(path).and_then(|chosen| chosen.value.as_u64());
            given.unwrap_or(default)
        };
        let own = hooks(layers.of_user("hooks"))?;
        let projects = hooks(layers.of_project("hooks"))?;
        Ok(Self {
            listen: layers
                .text("serve.listen")
                .map_or_else(|| LISTEN.to_owned(), |chosen| chosen.value),
            // The ranges of both keep the product small.
            token_life: Duration::from_secs(3_600 * number("serve.tokenHours", TOKEN_HOURS)),
            patience: Duration::from_secs(number("serve.askSeconds", ASK_SECONDS)),
            hooks: own.into_iter().chain(projects).collect(),
        })
    }
}

/// Reads a list of hooks, and says which one is wrong.
pub(super) fn hooks(given: Option<&Value>) -> Result<Vec<Hook>, ContextError> {
    const HINT: &str =
        "a hook is {\"event\": \"agent:*\", \"command\": [\"program\", …], \"timeoutMs\": 10000}";
    let all = given.and_then(Value::as_array).into_iter().flatten();
    all.enumerate()
        .map(|(n, hook)| {
            let wrong = |field: &str, what: &str| {
                ContextError::invalid(format!("hooks[{n}]{field}"), what, HINT)
            };
            let object = hook
                .as_object()
                .ok_or_else(|| wrong("", "must be an object"))?;
            let known = ["event", "command", "timeoutMs"];
            if let Some(other) = object.keys().find(|key| !known.contains(&key.as_str())) {
                return Err(wrong(&format!(".{other}"), "is an unknown key"));
            }
            let event = hook["event"]
                .as_str()
                .ok_or_else(|| wrong(".event", "must be a text"))?;
            let words = hook["command"].as_array().into_iter().flatten();
            let command: Option<Vec<String>> =
                words.map(|word| word.as_str().map(str::to_owned)).collect();
            let command = command
                .filter(|command| !command.is_empty())
                .ok_or_else(|| wrong(".command", "must be a list of texts"))?;
            let patience = match hook.get("timeoutMs") {
                None => HOOK_PATIENCE,
                Some(given) => {
                    let place = format!("hooks[{n}].timeoutMs");
                    Duration::from_millis(HOOK_MILLISECONDS.read(&place, given)?)
                }
            };
            Ok(Hook {
                event: event.to_owned(),
                command,
                patience,
            })
        })
        .collect()
}

/// The JSON Schema of `hooks`.
pub(super) fn hooks_schema() -> Value {
    let mut timeout = HOOK_MILLISECONDS.schema();
    timeout["description"] = json!("How long it may take; 10000 unless given.");
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["event", "command"],
            "properties": {
                "event": { "type": "string", "description": "The events it is told of, such as agent:*." },
                "command": {
                    "type": "array",
                    "minItems": 1,
                    "items": { "type": "string" },
                    "description": "A program and its arguments.",
                },
                "timeoutMs": timeout,
            },
        },
    })
}
