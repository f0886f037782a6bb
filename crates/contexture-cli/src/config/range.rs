//! The numbers that settings take: one range for the file, its schema and the command line.

use std::fmt;

use contexture::ContextError;
use contexture::task;
use serde_json::{Value, json};

/// Whole numbers from `least` to `most`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub least: u64,
    pub most: u64,
}

/// Tokens of a request.
pub const TOKENS: Range = Range::new(1, 1_000_000_000);
/// Tokens of a request that are kept free for the reply.
pub const RESERVED_TOKENS: Range = Range::new(0, 1_000_000_000);
/// Messages of a request, or of a chat's history.
pub const MESSAGES: Range = Range::new(1, 1_000_000);
/// Messages that a compaction keeps, or that tools may inject.
pub const SOME_MESSAGES: Range = Range::new(0, 1_000_000);
/// Bytes of a request.
pub const BYTES: Range = Range::new(1, 1 << 30);
/// The share of a limit at which history is compacted.
pub const TRIGGER_PERCENT: Range = Range::new(1, 100);
/// The share of a limit down to which it is compacted.
pub const TARGET_PERCENT: Range = Range::new(0, 99);
/// Runs that the execution memory keeps.
pub const WINDOW_ENTRIES: Range = Range::new(2, 100_000);
/// Model replies of a run.
pub const STEPS: Range = Range::new(1, 10_000);
/// Threads of a model on this machine.
pub const THREADS: Range = Range::new(1, 64);
/// Tokens that a model on this machine reads.
pub const WINDOW_TOKENS: Range = Range::new(1, 16 << 20);
/// The life of a session token: up to a year.
pub const TOKEN_HOURS: Range = Range::new(1, 366 * 24);
/// The wait for a person's answer: up to a day.
pub const ASK_SECONDS: Range = Range::new(1, 24 * 60 * 60);
/// The silence after which a worker counts as gone.
pub const SILENT_SECONDS: Range = Range::new(1, 60 * 60);
/// The time that a hook may take.
pub const HOOK_MILLISECONDS: Range = Range::new(1, 10 * 60 * 1_000);
/// The time that a provider may take.
pub const PROVIDER_MILLISECONDS: Range = Range::new(1, 60_000);
/// Bytes of a provider's answer.
pub const PROVIDER_BYTES: Range = Range::new(1, 256 << 10);
/// A line of an input file.
pub const LINE: Range = Range::new(1, 1_000_000_000);
/// Tokens that a task may use.
pub const TASK_TOKENS: Range = Range::new(0, 1_000_000_000_000);
/// The time of an attempt at a task.
pub const TASK_SECONDS: Range = Range::new(1, task::Limits::MAX_SECONDS);
/// Attempts at a task.
pub const TASK_ATTEMPTS: Range = Range::new(1, task::Limits::MAX_ATTEMPTS as u64);

impl Range {
    const fn new(least: u64, most: u64) -> Self {
        assert!(least <= most);
        Self { least, most }
    }

    pub fn contains(self, number: u64) -> bool {
        (self.least..=self.most).contains(&number)
    }

    /// Reads the number at `place` of a document.
    pub fn read(self, place: &str, value: &Value) -> Result<u64, ContextError> {
        let number = value.as_u64().filter(|&number| self.contains(number));
        number.ok_or_else(|| {
            let what = format!("must be {self}, not {}", shown(value));
            ContextError::invalid(place, what, "see `ctx config schema`")
        })
    }

    /// The JSON Schema of such a number.
    pub fn schema(self) -> Value {
        json!({ "type": "integer", "minimum": self.least, "maximum": self.most })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.least, self.most)
    }
}

/// A number as it is, anything else by its type.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
