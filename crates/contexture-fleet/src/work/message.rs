//! What the dispatcher and workers say to each other.

use std::collections::BTreeSet;

use contexture::task::Spent;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a worker is told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Order {
    /// A task.
    Do(Offer),
    /// An attempt no longer counts.
    Stop { task_id: String, attempt: u32 },
    /// The worker's key no longer counts.
    Revoked,
}

/// A task that is offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Offer {
    pub task_id: String,
    pub attempt: u32,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bd_task_id: Option<String>,
    /// What the executor is told of the pool and its task, when this was sent.
    pub context: String,
    /// The tools that the executor holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeSet<String>>,
    /// Those of them that the task takes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
    /// How long the attempt may take.
    pub seconds: u64,
}

/// What a worker asks: whether it may begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Claim {
    pub task_id: String,
    pub attempt: u32,
    pub instance: String,
}

/// What a worker asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Question {
    /// May it begin?
    Claim(Claim),
    /// Does its key count?
    Hello {
        /// Which process asks.
        hello: String,
    },
}

/// What it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Begin; this is what holds now.
    Go {
        task_id: String,
        attempt: u32,
        context: String,
    },
    /// It is not yours, or not any more.
    No { why: String },
    /// The worker's key counts.
    Welcome,
    /// The worker's key no longer counts.
    Revoked,
}

/// What a worker reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub task_id: String,
    pub attempt: u32,
    pub instance: String,
    pub came: Outcome,
    pub tokens: u64,
    pub cost_micros: u64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// A result.
    Done(String),
    /// An error, and whether another try may help.
    Failed { error: String, retry: bool },
}

impl Report {
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            tokens: self.tokens,
            cost_micros: self.cost_micros,
        }
    }
}

/// What a worker says of itself with each beat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Card {
    /// What it would be added as.
    pub resource: Value,
    /// Which process it is.
    pub instance: String,
    /// When, by its own clock: a card that is shown again is older than the last.
    pub at: u64,
    /// Whose question who is here it has heard last. A card that answers an earlier dispatcher, or none, may be one that
    /// somebody kept.
    #[serde(default)]
    pub heard: String,
    /// Whether this is its last: it goes.
    pub leaving: bool,
    /// Whether it is known for as long as it is here: then it is removed when it goes.
    pub fleeting: bool,
}

/// What everybody is told: say that you are here. Behind it stands which process asks.
pub(crate) const WHO_IS_HERE: &str = "who is here?";
