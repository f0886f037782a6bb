//! The end of a turn, as the log has it: an agent's word for it is not always what it was.

use contexture::Payload;
use serde_json::{Map, Value, json};

use crate::acp::bounded;

/// The kind of the `custom` entry that holds the end of a turn.
pub const TURN: &str = "acp_turn";

/// Endings of the message by which an agent tells of an error instead of an answer, where it ends such a turn as any
/// other: goose.
const ERRORS: [&str; 4] = [
    "Please resend your message to try again.",
    "Please retry if you think this is a transient or recoverable error.",
    "then resend your message to continue.",
    "Please try again or create a new session",
];
/// The longest account of a failure, in characters.
const MAX_FAILURE_CHARS: usize = 600;

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnd {
    /// The agent's word for it; none where it gave an error.
    pub stop_reason: Option<String>,
    /// The reason that it failed, if it did.
    pub failure: Option<String>,
}

impl TurnEnd {
    /// The end of a turn that the agent ended with `stop_reason`, or with an error. `text` is what it said last;
    /// `did_something` is false of an agent that neither said nor did anything.
    pub fn new(ended: Result<&str, &str>, text: &str, did_something: bool) -> Self {
        let failure = match ended {
            Err(error) => Some(error.to_owned()),
            Ok("end_turn") => told_failure(text, did_something),
            Ok(_) => None,
        };
        Self {
            stop_reason: ended.ok().map(str::to_owned),
            failure,
        }
    }

    /// Returns true if the agent took in what it was told in the turn.
    pub fn counts(&self) -> bool {
        self.failure.is_none() && self.stop_reason.as_deref() != Some("cancelled")
    }

    /// The entry of the log.
    pub fn payload(&self) -> Payload {
        let mut all = Map::from_iter([("kind".to_owned(), json!(TURN))]);
        let fields = [
            ("stopReason", &self.stop_reason),
            ("failure", &self.failure),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                all.insert(name.to_owned(), json!(value));
            }
        }
        Payload::Custom(all)
    }

    /// Reads such an entry; none where it is another.
    pub fn read(custom: &Map<String, Value>) -> Option<Self> {
        if custom.get("kind").and_then(Value::as_str) != Some(TURN) {
            return None;
        }
        let text = |name: &str| Some(custom.get(name)?.as_str()?.to_owned());
        Some(Self {
            stop_reason: text("stopReason"),
            failure: text("failure"),
        })
    }
}

/// The failure behind a turn that ended as if it had gone well.
fn told_failure(text: &str, did_something: bool) -> Option<String> {
    if !did_something {
        return Some("the agent ended its turn without an answer".to_owned());
    }
    let text = text.trim();
    let told = ERRORS.iter().any(|error| text.ends_with(error));
    told.then(|| bounded(text, MAX_FAILURE_CHARS))
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_failed_is_one_whatever_it_is_called() {
        let failed = |ended, text, did| TurnEnd::new(ended, text, did).failure.is_some();
        assert!(!failed(Ok("end_turn"), "Done.", true));
        assert!(!failed(Ok("end_turn"), "", true), "it did something");
        assert!(failed(Ok("end_turn"), "", false));
        let goose = "Network error: no route\n\nPlease resend your message to try again.\n";
        assert!(failed(Ok("end_turn"), goose, true));
        let quoted = "goose says: Please resend your message to try again. That is all.";
        assert!(!failed(Ok("end_turn"), quoted, true));
        assert!(failed(Err("the program ended"), "", true));
        assert!(!failed(Ok("cancelled"), "", false));
    }

    #[test]
    fn an_end_is_read_as_it_was_written() {
        for (end, counts) in [
            (TurnEnd::new(Ok("end_turn"), "x", true), true),
            (TurnEnd::new(Ok("max_tokens"), "", false), true),
            (TurnEnd::new(Ok("cancelled"), "x", true), false),
            (TurnEnd::new(Ok("end_turn"), "", false), false),
            (TurnEnd::new(Err("it ended"), "", false), false),
        ] {
            assert_eq!(end.counts(), counts, "{end:?}");
            let Payload::Custom(written) = end.payload() else {
                panic!("{end:?}");
            };
            assert_eq!(TurnEnd::read(&written), Some(end));
        }
        let other = Map::from_iter([("kind".to_owned(), json!("note"))]);
        assert_eq!(TurnEnd::read(&other), None);
    }
}
