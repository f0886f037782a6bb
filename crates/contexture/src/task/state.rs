use serde::Serialize;

use super::Limits;
use crate::pool::{Name, Requirement};

/// A time, as whoever has a clock says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now {
    /// In RFC 3339.
    pub at: String,
    /// In milliseconds since 1970.
    pub millis: u64,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for its turn.
    #[default]
    Queued,
    /// It waits for a resource that is not there, or not free.
    Blocked,
    /// It has its resources, and its executor has not begun.
    Dispatched,
    /// Its executor is at it.
    Running,
    /// It has its result.
    Done,
    /// It has none, and is not tried again.
    Failed,
    /// Somebody called it off.
    Cancelled,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Blocked,
        Self::Dispatched,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Blocked => "blocked",
            Self::Dispatched => "dispatched",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether nothing more happens to it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }

    /// Whether it waits to be handed out.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::Queued | Self::Blocked)
    }

    /// Whether an executor has it.
    pub fn is_out(self) -> bool {
        matches!(self, Self::Dispatched | Self::Running)
    }
}

/// A task before anything was done about it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTask {
    /// Its id. Empty: the board gives one.
    pub id: String,
    /// What is to be done.
    pub description: String,
    /// What that takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Requirement>,
    /// Who is to do it, where somebody chose: the spec's `targetExecutorId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Name>,
    /// What is higher goes first.
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: i64,
    /// The task that it is a part of. A part can spend no more than is left of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How far it may go.
    pub limits: Limits,
    /// What the orchestrator has to say to whoever does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its id in the tracker of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bd_task_id: Option<String>,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}
