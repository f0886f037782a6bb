use std::collections::BTreeSet;

use serde::Serialize;

use super::{Name, NewResource, Status};

/// Something that happened to a pool, and when. Appended to a log, it is all that has to be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolEvent {
    /// When, in RFC 3339.
    pub at: String,
    /// What.
    #[serde(flatten)]
    pub change: Change,
}

/// A task, as a resource knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Which.
    pub task_id: String,
    /// The session that it runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The workflow that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
}

impl Task {
    /// A task by its id alone.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            task_id: id.into(),
            session_id: None,
            workflow_id: None,
        }
    }
}

/// What can happen to a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Change {
    /// A resource came, and is available.
    #[serde(rename = "resource:added")]
    Added {
        /// It.
        resource: NewResource,
    },
    /// A resource that was available went.
    #[serde(rename = "resource:removed")]
    Removed {
        /// Which.
        #[serde(rename = "resourceId")]
        id: Name,
    },
    /// A task took it.
    #[serde(rename = "resource:allocated")]
    Allocated {
        /// Which.
        #[serde(rename = "resourceId")]
        id: Name,
        /// For what.
        #[serde(flatten)]
        task: Task,
    },
    /// It works on its task, for the first time or again.
    #[serde(rename = "resource:started")]
    Started {
        /// Which.
        #[serde(rename = "resourceId")]
        id: Name,
        /// The task that has it.
        task_id: String,
    },
    /// Its task waits.
    #[serde(rename = "resource:blocked")]
    Blocked {
        /// Which.
        #[serde(rename = "resourceId")]
        id: Name,
        /// The task that has it.
        task_id: String,
        /// For what.
        reason: String,
    },
    /// Its task let it go.
    #[serde(rename = "resource:freed")]
    Freed {
        /// Which.
        #[serde(rename = "resourceId")]
        id: Name,
        /// The task that had it.
        task_id: String,
        /// Whether the task was done.
        completed: bool,
    },
    /// It failed. A task that had it has it no more.
    #[serde(rename = "resource:failed")]
    Failed {
        /// Which.
        #[serde(rename = "resourceId")]
        id: Name,
        /// Why.
        error: String,
    },
    /// It can work again.
    #[serde(rename = "resource:recovered")]
    Recovered {
        /// Which.
        #[serde(rename = "resourceId")]
        id: Name,
    },
    /// It was taken out of service.
    #[serde(rename = "resource:retired")]
    Retired {
        /// Which.
        #[serde(rename = "resourceId")]
        id: Name,
        /// True if its owner said so: then it does not come back by itself.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        by_owner: bool,
    },
    /// It is back in service.
    #[serde(rename = "resource:restored")]
    Restored {
        /// Which.
        #[serde(rename = "resourceId")]
        id: Name,
    },
    /// An agent was given a tool.
    #[serde(rename = "tool:granted")]
    Granted {
        /// Which agent.
        #[serde(rename = "resourceId")]
        id: Name,
        /// Which tool.
        tool: Name,
    },
    /// A tool was taken from an agent.
    #[serde(rename = "tool:revoked")]
    Revoked {
        /// Which agent.
        #[serde(rename = "resourceId")]
        id: Name,
        /// Which tool.
        tool: Name,
    },
    /// The worker's key that was given out for it no longer counts; the next one does.
    #[serde(rename = "key:revoked")]
    KeyRevoked {
        /// Which resource.
        #[serde(rename = "resourceId")]
        id: Name,
    },
    /// A capability needs these tools from now on.
    #[serde(rename = "capability:mapped")]
    Mapped {
        /// Which.
        capability: Name,
        /// All of these.
        tools: BTreeSet<Name>,
    },
}

impl Change {
    /// It, at a time.
    pub fn at(self, at: impl Into<String>) -> PoolEvent {
        PoolEvent {
            at: at.into(),
            change: self,
        }
    }

    /// From where it leads where, for those that change what a resource is doing: the one table of the
    /// transitions there are.
    pub fn leads(&self) -> Option<(&'static [Status], Status)> {
        use Status::{Available, Blocked, Busy, Deployed, Error, Released};
        Some(match self {
            Self::Allocated { .. } => (&[Available], Deployed),
            Self::Started { .. } => (&[Deployed, Blocked], Busy),
            Self::Blocked { .. } => (&[Deployed, Busy], Blocked),
            Self::Freed { .. } => (&[Deployed, Busy, Blocked], Available),
            Self::Failed { .. } => (&[Available, Deployed, Busy, Blocked], Error),
            Self::Recovered { .. } => (&[Error], Available),
            Self::Retired { by_owner: true, .. } => (&[Available, Error, Released], Released),
            Self::Retired { .. } => (&[Available, Error], Released),
            Self::Restored { .. } => (&[Released], Available),
            Self::Added { .. }
            | Self::Removed { .. }
            | Self::Granted { .. }
            | Self::Revoked { .. }
            | Self::KeyRevoked { .. }
            | Self::Mapped { .. } => return None,
        })
    }

    /// The resource that it is about.
    pub fn resource(&self) -> Option<&Name> {
        match self {
            Self::Added { resource } => Some(&resource.id),
            Self::Removed { id }
            | Self::Allocated { id, .. }
            | Self::Started { id, .. }
            | Self::Blocked { id, .. }
            | Self::Freed { id, .. }
            | Self::Failed { id, .. }
            | Self::Recovered { id }
            | Self::Retired { id, .. }
            | Self::Restored { id }
            | Self::Granted { id, .. }
            | Self::Revoked { id, .. }
            | Self::KeyRevoked { id } => Some(id),
            Self::Mapped { .. } => None,
        }
    }

    /// The task that says it, of those that only the task which has the resource can say.
    pub(super) fn said_by(&self) -> Option<&str> {
        match self {
            Self::Started { task_id, .. }
            | Self::Blocked { task_id, .. }
            | Self::Freed { task_id, .. } => Some(task_id),
            _ => None,
        }
    }
}
