use serde::{Deserialize, Serialize};

use serde_json::{Map, Value};

use crate::ContextError;
use crate::text::nearest;

/// The limits of a request, and when to compact: `AgentConfig.context`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContextConfig {
    /// The most tokens a request may have, with what is reserved for the output.
    pub max_input_tokens: usize,
    /// The most messages of the history that a request may have. The system side, hints and summaries do not count.
    pub max_history_messages: Option<usize>,
    /// The most bytes a request's body may have.
    pub max_bytes: Option<usize>,
    /// Tokens kept free for the output.
    pub reserved_output: usize,
    /// Whether history may be masked and summarised; without it, it is only dropped.
    pub enable_compaction: bool,
    /// At which share of a limit to compact, in per cent.
    pub trigger_percent: usize,
    /// Down to which share, in per cent.
    pub target_percent: usize,
}

const TRIGGER_PERCENT: usize = 85;
const TARGET_PERCENT: usize = 40;
// Without a gap between them, every turn would compact and no prefix would ever be shared.
const _: () = assert!(TARGET_PERCENT * 2 <= TRIGGER_PERCENT);

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            max_input_tokens: 128_000,
            max_history_messages: None,
            max_bytes: None,
            reserved_output: 0,
            enable_compaction: true,
            trigger_percent: TRIGGER_PERCENT,
            target_percent: TARGET_PERCENT,
        }
    }
}

impl ContextConfig {
    /// These limits with others on top, as a document gives them.
    pub fn overlaid(self, over: &Map<String, Value>) -> Result<Self, ContextError> {
        let base = serde_json::to_value(self)
            .ok()
            .and_then(|v| v.as_object().cloned());
        let base = base.unwrap_or_default();
        let mut all = base.clone();
        for (key, value) in over {
            if !all.contains_key(key) {
                let known: Vec<&str> = all.keys().map(String::as_str).collect();
                let hint = match nearest(key, &known) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("known: {}", known.join(", ")),
                };
                return Err(ContextError::invalid(
                    format!("config.{key}"),
                    "is unknown",
                    hint,
                ));
            }
            all.insert(key.clone(), value.clone());
        }
        let read = |all: Map<String, Value>| serde_json::from_value::<Self>(Value::Object(all));
        read(all).map_err(|error| {
            let wrong = over.iter().find(|(key, value)| {
                let mut one = base.clone();
                one.insert((*key).clone(), (*value).clone());
                read(one).is_err()
            });
            let place = wrong.map_or("config".to_owned(), |(key, _)| format!("config.{key}"));
            ContextError::invalid(place, error.to_string(), "limits are whole numbers above 0")
        })
    }

    /// Whether the numbers make sense together.
    pub fn validate(&self) -> Result<(), ContextError> {
        let wrong = |field: &str, what: String| {
            Err(ContextError::invalid(
                format!("config.{field}"),
                what,
                "change it, or leave it out",
            ))
        };
        if self.max_input_tokens == 0 {
            return wrong(
                "maxInputTokens",
                "a budget of 0 tokens holds no request".into(),
            );
        }
        if self.max_history_messages == Some(0) {
            return wrong(
                "maxHistoryMessages",
                "a request has at least one message".into(),
            );
        }
        if self.max_bytes == Some(0) {
            return wrong("maxBytes", "a budget of 0 bytes holds no request".into());
        }
        if self.reserved_output >= self.max_input_tokens {
            return wrong(
                "reservedOutput",
                format!(
                    "{} reserved of {} leaves nothing for the request",
                    self.reserved_output, self.max_input_tokens
                ),
            );
        }
        if !(1..=100).contains(&self.trigger_percent) {
            return wrong(
                "triggerPercent",
                format!("{} is not a share from 1 to 100 %", self.trigger_percent),
            );
        }
        if self.target_percent >= self.trigger_percent {
            return wrong(
                "targetPercent",
                format!(
                    "the target ({} %) must be below the trigger ({} %)",
                    self.target_percent, self.trigger_percent
                ),
            );
        }
        Ok(())
    }
}
