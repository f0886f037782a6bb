//! What each step found out: the same for `--json` and for people.

use std::time::Duration;

use contexture::Message;
use contexture::build::{Receipt, Rule};
use contexture::diff::Break;
use serde::Serialize;

/// A step, when it is done. `--json` prints one a line.
#[derive(Serialize)]
#[serde(tag = "step", rename_all = "camelCase")]
pub enum Fact {
    Build(Build),
    Ask(Asked),
    AskAgain(Asked),
    Break(Broken),
    Hold(Asked),
    Compact(Compacted),
    Undo(Undone),
    Verify(Verified),
    Done(Done),
}

/// A request that nobody sent yet.
#[derive(Serialize)]
pub struct Build {
    pub session: String,
    pub model: String,
    pub bytes: usize,
    pub receipt: Receipt,
    #[serde(skip)]
    pub messages: Vec<Message>,
}

/// A request and its answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    pub question: String,
    pub answer: String,
    /// `sha256:` of the request.
    pub digest: String,
    pub input_tokens: usize,
    /// What its receipt said, before it was sent, that the model would not have to read again.
    pub predicted_tokens: usize,
    /// What the model says that it did not.
    pub reused_tokens: usize,
    /// From the question to the first word of the answer.
    pub first_word_ms: u64,
    /// What differs from the request before, where that did not simply grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_change: Option<String>,
}

impl Asked {
    pub fn first_word(&self) -> Duration {
        Duration::from_millis(self.first_word_ms)
    }

    pub fn read_tokens(&self) -> usize {
        self.input_tokens.saturating_sub(self.reused_tokens)
    }
}

/// A request whose beginning changed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Broken {
    /// The session that it is in.
    pub fork: String,
    #[serde(flatten)]
    pub asked: Asked,
    /// Paid before, and paid again.
    pub rebilled_tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_by: Option<Break>,
    /// How much longer the first word took than the time before.
    pub cost_ms: u64,
}

impl Broken {
    /// Beside a request that simply grew, whose first word took so long.
    pub fn compared_with(self, before: Duration) -> Self {
        let cost = self.asked.first_word().saturating_sub(before);
        Self {
            cost_ms: u64::try_from(cost.as_millis()).unwrap_or(u64::MAX),
            ..self
        }
    }
}

/// A request that became shorter, and what of it did.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    pub tokens_before: usize,
    pub tokens_after: usize,
    /// What left.
    pub left_out: Vec<Piece>,
    /// What the model reads in its place.
    pub summary: Vec<Piece>,
    /// What stayed word for word, because somebody said so.
    pub pinned: Vec<Piece>,
}

/// A message, as a receipt has it.
#[derive(Serialize)]
pub struct Piece {
    pub origin: String,
    pub role: &'static str,
    pub rule: Rule,
    pub tokens: usize,
    pub text: String,
}

/// The request's digest at three points.
#[derive(Serialize)]
pub struct Undone {
    pub before: String,
    pub compacted: String,
    pub after: String,
}

/// How many requests were made again, and how many of them came out as they were.
#[derive(Serialize)]
pub struct Verified {
    pub requests: usize,
    pub verified: usize,
}

impl Verified {
    pub fn all(&self) -> bool {
        self.requests == self.verified
    }
}

#[derive(Serialize)]
pub struct Done {
    pub session: String,
    pub commands: Vec<Command>,
}

/// What to go on with.
#[derive(Serialize)]
pub struct Command {
    pub command: String,
    pub what: &'static str,
}
