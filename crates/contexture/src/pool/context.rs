use std::collections::BTreeSet;

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

use super::{CatalogEntry, Name, Pool};
use crate::ContextError;

/// What is known when a context is made: the options of the spec's `buildAgentContext`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextOptions {
    /// The task that is handed out.
    pub task_id: Option<String>,
    /// What is to be done.
    pub task_description: Option<String>,
    /// What that takes.
    pub required_capabilities: Vec<Name>,
    /// The task's id in the tracker of work; for programs, and not rendered.
    pub bd_task_id: Option<String>,
    /// What the orchestrator has to say.
    pub orchestrator_note: Option<String>,
}

/// What an agent is told of the pool and of its task. A view: making one copies nothing of the pool.
#[derive(Debug, Clone)]
pub struct AgentContext<'p> {
    /// When it was made, in RFC 3339; for programs, and not rendered: an unchanged pool is unchanged bytes.
    pub timestamp: String,
    /// The pool.
    pub pool: &'p Pool,
    /// The task, where one is handed out.
    pub task: Option<TaskContext>,
    /// What the orchestrator has to say.
    pub orchestrator_note: Option<String>,
}

/// A task that is handed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskContext {
    /// Which.
    pub id: String,
    /// What is to be done.
    pub description: String,
    /// What that takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_capabilities: Vec<Name>,
    /// Its id in the tracker of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bd_task_id: Option<String>,
    /// The resources that it has.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub assigned_resources: BTreeSet<Name>,
}

impl Pool {
    /// What an agent is to be told now: the spec's `buildAgentContext`.
    pub fn agent_context(
        &self,
        options: ContextOptions,
        now: impl Into<String>,
    ) -> Result<AgentContext<'_>, ContextError> {
        let ContextOptions {
            task_id,
            task_description,
            required_capabilities,
            bd_task_id,
            orchestrator_note,
        } = options;
        let more = task_description.is_some() || !required_capabilities.is_empty();
        let task = match task_id {
            Some(id) => Some(TaskContext {
                assigned_resources: self.held_by(&id).map(|r| r.id().clone()).collect(),
                id,
                description: task_description.unwrap_or_default(),
                required_capabilities,
                bd_task_id,
            }),
            None if more || bd_task_id.is_some() => {
                let hint = "what is said of a task needs the task's id";
                return Err(ContextError::invalid("taskId", "is missing", hint));
            }
            None => None,
        };
        Ok(AgentContext {
            timestamp: now.into(),
            pool: self,
            task,
            orchestrator_note,
        })
    }
}

impl AgentContext<'_> {
    /// The capabilities that somebody available has, in the order of the catalog.
    pub fn available_capabilities(&self) -> Vec<&Name> {
        let catalog = self.pool.capability_catalog().into_iter();
        let free = catalog.filter(|entry| entry.available_count() > 0);
        free.map(|entry| entry.capability()).collect()
    }
}

impl Serialize for AgentContext<'_> {
    /// The spec's `AgentContext`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Map<'a>(&'a [CatalogEntry<'a>]);
        impl Serialize for Map<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                struct Ids<'a>(&'a CatalogEntry<'a>);
                impl Serialize for Ids<'_> {
                    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                        serializer.collect_seq(self.0.available())
                    }
                }
                let mut out = serializer.serialize_map(Some(self.0.len()))?;
                for entry in self.0 {
                    out.serialize_entry(entry.capability(), &Ids(entry))?;
                }
                out.end()
            }
        }
        let more = usize::from(self.task.is_some()) + usize::from(self.orchestrator_note.is_some());
        let mut out = serializer.serialize_struct("AgentContext", 4 + more)?;
        let summary = self.pool.summary();
        out.serialize_field("timestamp", &self.timestamp)?;
        out.serialize_field("resourcePool", &summary)?;
        out.serialize_field("availableCapabilities", &self.available_capabilities())?;
        out.serialize_field("capabilityToResources", &Map(&summary.capability_catalog))?;
        if let Some(task) = &self.task {
            out.serialize_field("task", task)?;
        }
        if let Some(note) = &self.orchestrator_note {
            out.serialize_field("orchestratorNote", note)?;
        }
        out.end()
    }
}
