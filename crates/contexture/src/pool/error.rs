use super::{Name, ResourceType, Status};
use crate::ContextError;

/// Why a pool refused a change. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// There is no such resource.
    #[error("there is no resource `{id}`")]
    Unknown {
        /// Who was meant.
        id: Name,
        /// One that is called nearly so.
        nearest: Option<Name>,
    },
    /// There is one of this id already.
    #[error("there is a resource `{id}` already")]
    Exists {
        /// Its id.
        id: Name,
    },
    /// What it is doing does not lead there.
    #[error("resource `{id}` {}", transition(*.from, *.to))]
    Transition {
        /// Which resource.
        id: Name,
        /// What it is doing.
        from: Status,
        /// What it was to do.
        to: Status,
        /// What would lead there.
        after: &'static [Status],
    },
    /// Only what is available can be removed.
    #[error("resource `{id}` is `{}`: only an `available` one can be removed", .status.as_str())]
    InUse {
        /// Which resource.
        id: Name,
        /// What it is doing.
        status: Status,
    },
    /// It works for another task.
    #[error("resource `{id}` works for {}, not for task `{said}`", match .has { Some(task) => format!("task `{task}`"), None => "no task".to_owned() })]
    OtherTask {
        /// Which resource.
        id: Name,
        /// The task that has it.
        has: Option<String>,
        /// The task that was said.
        said: String,
    },
    /// It is no agent: it holds no tools.
    #[error("resource `{id}` is of type `{}`, which holds no tools", .kind.as_str())]
    NoAgent {
        /// Which resource.
        id: Name,
        /// What it is.
        kind: ResourceType,
    },
    /// A tool that it is denied.
    #[error("resource `{id}` is denied the tool `{tool}`")]
    Denied {
        /// Which resource.
        id: Name,
        /// Which tool.
        tool: Name,
    },
    /// A capability that would need no tool.
    #[error("capability `{capability}` must need a tool")]
    NeedsNothing {
        /// Which.
        capability: Name,
    },
}

fn transition(from: Status, to: Status) -> String {
    match (from.as_str(), to.as_str()) {
        (from, to) if from == to => format!("is `{from}` already"),
        (from, to) => format!("cannot go from `{from}` to `{to}`"),
    }
}

impl PoolError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown {
                nearest: Some(near),
                ..
            } => format!("did you mean `{near}`? `ctx pool list` names them all"),
            Self::Unknown { .. } => "`ctx pool list` names them all".to_owned(),
            Self::Exists { .. } => "take another id, or remove that one first".to_owned(),
            Self::Transition { to, after, .. } => {
                let after: Vec<&str> = after.iter().map(|status| status.as_str()).collect();
                let after = after.join(", ");
                format!("this way to `{}` begins at: {after}", to.as_str())
            }
            Self::InUse { .. } => "wait until its task is done, or let it recover".to_owned(),
            Self::OtherTask { .. } => "only the task that has a resource can change it".to_owned(),
            Self::NoAgent { .. } => "executors, orchestrators and reviewers hold tools".to_owned(),
            Self::Denied { .. } => {
                "a denial beats a grant: add the resource anew without it".to_owned()
            }
            Self::NeedsNothing { .. } => "else every agent could do it".to_owned(),
        }
    }
}

impl From<PoolError> for ContextError {
    fn from(error: PoolError) -> Self {
        Self::invalid("pool", error.to_string(), error.hint())
    }
}
