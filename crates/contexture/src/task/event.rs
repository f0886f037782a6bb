use std::collections::BTreeSet;

use serde::Serialize;

use super::{NewTask, Spent, State};
use crate::pool::{Name, PoolEvent};

/// Something that happened to a board: to its pool, or to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum BoardEvent {
    /// To its pool.
    Pool(PoolEvent),
    /// To a task.
    Task(TaskEvent),
}

/// Something that happened to a task, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskEvent {
    /// When, in RFC 3339.
    pub at: String,
    /// What.
    #[serde(flatten)]
    pub change: TaskChange,
}

/// What can happen to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum TaskChange {
    /// It is to be done.
    #[serde(rename = "task:created")]
    Created {
        /// It.
        task: NewTask,
    },
    /// It waits for somebody who can do it.
    #[serde(rename = "task:blocked")]
    Blocked {
        /// Which.
        task_id: String,
        /// `resource_shortage`.
        reason: String,
        /// The capabilities that nobody has, or has free.
        missing: Vec<Name>,
        /// The same in words.
        why: String,
    },
    /// It was handed out.
    #[serde(rename = "task:dispatched")]
    Dispatched {
        /// Which.
        task_id: String,
        /// For which time, from 1.
        attempt: u32,
        /// To whom.
        executor: Name,
        /// All resources that it has.
        resources: BTreeSet<Name>,
        /// Until when it must be done, in milliseconds since 1970.
        deadline: u64,
        /// What its executor is told of the pool and the task.
        context: String,
    },
    /// Its executor is at it.
    #[serde(rename = "task:started")]
    Started {
        /// Which.
        task_id: String,
        /// Which attempt.
        attempt: u32,
        /// Which process of the executor's: another one is not at it.
        instance: String,
        /// What it is told, where that has changed since it was handed out.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<String>,
    },
    /// It is done.
    #[serde(rename = "task:finished")]
    Finished {
        /// Which.
        task_id: String,
        /// Which attempt.
        attempt: u32,
        /// What came of it.
        result: String,
        /// What it cost.
        #[serde(flatten)]
        spent: Spent,
    },
    /// An attempt failed.
    #[serde(rename = "task:failed")]
    Failed {
        /// Which.
        task_id: String,
        /// Which attempt; none before the first.
        attempt: u32,
        /// Why.
        error: String,
        /// What it cost.
        #[serde(flatten)]
        spent: Spent,
        /// When it is tried again, in milliseconds since 1970; never, where there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_at: Option<u64>,
    },
    /// Somebody called it off.
    #[serde(rename = "task:cancelled")]
    Cancelled {
        /// Which.
        task_id: String,
        /// Why.
        why: String,
    },
}

impl TaskChange {
    /// It, at a time.
    pub fn at(self, at: impl Into<String>) -> TaskEvent {
        TaskEvent {
            at: at.into(),
            change: self,
        }
    }

    /// Its name: the type of the event behind `task:`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Created { .. } => "created",
            Self::Blocked { .. } => "blocked",
            Self::Dispatched { .. } => "dispatched",
            Self::Started { .. } => "started",
            Self::Finished { .. } => "finished",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// Where it leads: the one table of the transitions there are.
    pub fn leads(&self) -> State {
        match self {
            Self::Created { .. } => State::Queued,
            Self::Blocked { .. } => State::Blocked,
            Self::Dispatched { .. } => State::Dispatched,
            Self::Started { .. } => State::Running,
            Self::Finished { .. } => State::Done,
            Self::Failed {
                retry_at: Some(_), ..
            } => State::Queued,
            Self::Failed { retry_at: None, .. } => State::Failed,
            Self::Cancelled { .. } => State::Cancelled,
        }
    }

    /// Why, of those that somebody would ask it of.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Blocked { why, .. } | Self::Cancelled { why, .. } => Some(why),
            Self::Failed { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The task that it is about.
    pub fn task(&self) -> &str {
        match self {
            Self::Created { task } => &task.id,
            Self::Blocked { task_id, .. }
            | Self::Dispatched { task_id, .. }
            | Self::Started { task_id, .. }
            | Self::Finished { task_id, .. }
            | Self::Failed { task_id, .. }
            | Self::Cancelled { task_id, .. } => task_id,
        }
    }
}
