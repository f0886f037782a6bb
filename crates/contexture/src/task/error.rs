use super::State;
use crate::ContextError;
use crate::pool::PoolError;

/// Why a board refused a change. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// There is no such task.
    #[error("there is no task `{id}`")]
    Unknown {
        /// Which was meant.
        id: String,
        /// One that is called nearly so.
        nearest: Option<String>,
    },
    /// There is another one of this id.
    #[error("there is another task `{id}` already")]
    Exists {
        /// Its id.
        id: String,
    },
    /// The whole is over, so it gets no more parts.
    #[error("task `{id}` is {} already", .state.as_str())]
    Over {
        /// Which.
        id: String,
        /// How it ended.
        state: State,
    },
    /// What happened to it does not lead there.
    #[error("task `{id}` cannot go from {} to {}", .from.as_str(), .to.as_str())]
    Transition {
        /// Which.
        id: String,
        /// Where it is.
        from: State,
        /// Where it was to go.
        to: State,
    },
    /// The words of a task are wrong.
    #[error("{what}")]
    Invalid {
        /// What is wrong.
        what: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The pool refused.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl TaskError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown {
                nearest: Some(near),
                ..
            } => format!("did you mean `{near}`? `ctx task list` shows them all"),
            Self::Unknown { .. } => "`ctx task list` shows them all".to_owned(),
            Self::Exists { .. } => "take another id, or none: then it gets one".to_owned(),
            Self::Over { id, .. } => format!("`ctx task show {id}` says what came of it"),
            Self::Transition { id, .. } => format!("`ctx task show {id}` says where it is"),
            Self::Invalid { hint, .. } => (*hint).to_owned(),
            Self::Pool(error) => error.hint(),
        }
    }
}

impl From<TaskError> for ContextError {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Pool(error) => error.into(),
            error => Self::invalid("task", error.to_string(), error.hint()),
        }
    }
}

/// Why an executor's word does not count. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such task.
    #[error("there is no such task")]
    Unknown,
    /// It was handed to somebody else.
    #[error("it was not handed to `{by}`")]
    NotYours {
        /// Who said it.
        by: String,
    },
    /// It was tried again since, or never yet.
    #[error("it speaks of attempt {said}, and the task is at attempt {now}")]
    Attempt {
        /// The attempt that was said.
        said: u32,
        /// The one that counts.
        now: u32,
    },
    /// It is not out: it is over, or waits for the next attempt.
    #[error("the task is {}", .0.as_str())]
    NotOut(State),
    /// Another process of the executor's began it.
    #[error("another process of the executor has it")]
    OtherInstance,
    /// It was not begun.
    #[error("it was not begun")]
    NotBegun,
}
