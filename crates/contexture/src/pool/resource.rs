use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{CapabilityTools, Name, Status};
use crate::ContextError;

/// What a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceType {
    /// An agent that does tasks.
    #[default]
    Executor,
    /// An agent that hands them out.
    Orchestrator,
    /// An agent that looks at what was done.
    Reviewer,
    /// Something that agents call.
    Tool,
    /// A service on the network.
    Api,
    /// A database.
    Database,
}

impl ResourceType {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Executor,
        Self::Orchestrator,
        Self::Reviewer,
        Self::Tool,
        Self::Api,
        Self::Database,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executor => "executor",
            Self::Orchestrator => "orchestrator",
            Self::Reviewer => "reviewer",
            Self::Tool => "tool",
            Self::Api => "api",
            Self::Database => "database",
        }
    }

    /// The type of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether it does tasks: orchestrators hand them out, and what agents use is used.
    pub fn does_tasks(self) -> bool {
        matches!(self, Self::Executor | Self::Reviewer)
    }

    /// Whether it is an agent, whose tools decide what it can do. All else is what it declares.
    pub fn is_agent(self) -> bool {
        matches!(self, Self::Executor | Self::Orchestrator | Self::Reviewer)
    }
}

/// How well something is done: 1 to 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Level(u8);

impl Level {
    /// The least. Of a capability that an agent has by its tools alone: nobody vouched for more.
    pub const LEAST: Self = Self(1);
    /// That of a capability which is declared without one.
    pub const MIDDLE: Self = Self(5);
    /// The most.
    pub const MOST: Self = Self(10);

    /// Checks a level.
    pub fn new(level: u64) -> Result<Self, ContextError> {
        match u8::try_from(level) {
            Ok(level @ 1..=10) => Ok(Self(level)),
            _ => Err(ContextError::invalid(
                "",
                format!("must be a level from 1 to 10, is {level}"),
                "10 is the best",
            )),
        }
    }

    /// It as a number.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// Something that a resource declares it can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// What.
    #[serde(rename = "type")]
    pub kind: Name,
    /// How well.
    pub level: Level,
}

/// A resource before it has done anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewResource {
    /// Its id.
    pub id: Name,
    /// What people call it.
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ResourceType,
    /// The capabilities that it declares, in its own order.
    #[serde(serialize_with = "declared")]
    pub capabilities: IndexMap<Name, Level>,
    /// The tools that an agent holds. One that does not say gets those that its capabilities need; one that
    /// says none has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeSet<Name>>,
    /// Tools that an agent may never hold. A denial beats every grant.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub denied_tools: BTreeSet<Name>,
    /// Whether an agent runs in a process of its own, which joins (`ctx worker`), and not with the desk.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub worker: bool,
}

fn declared<S: Serializer>(
    capabilities: &IndexMap<Name, Level>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(capabilities.iter().map(|(kind, level)| Capability {
        kind: kind.clone(),
        level: *level,
    }))
}

impl NewResource {
    /// A resource of this type that declares nothing yet.
    pub fn new(id: Name, kind: ResourceType) -> Self {
        Self {
            name: id.as_str().to_owned(),
            id,
            kind,
            capabilities: IndexMap::new(),
            tools: None,
            denied_tools: BTreeSet::new(),
            worker: false,
        }
    }

    /// The same, which also declares this.
    #[must_use]
    pub fn with(mut self, capability: Name, level: Level) -> Self {
        self.capabilities.insert(capability, level);
        self
    }
}

/// A resource of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// What it was added as; its tools are those that it holds now.
    #[serde(flatten)]
    pub(super) is: NewResource,
    pub(super) status: Status,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) retired: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) current_session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) current_workflow_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) current_task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) blocked_by: Option<String>,
    pub(super) total_tasks: u64,
    pub(super) completed_tasks: u64,
    pub(super) error_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) updated_at: Option<String>,
    /// What it can do: declared or given by its tools, and with all the tools that it takes.
    #[serde(skip)]
    pub(super) can: BTreeMap<Name, Level>,
}

impl Resource {
    pub(super) fn new(mut is: NewResource, table: &CapabilityTools) -> Self {
        match is.kind.is_agent() {
            true if is.tools.is_none() => {
                let needed = is.capabilities.keys().flat_map(|kind| table.needed(kind));
                is.tools = Some(needed.cloned().collect());
            }
            true => {}
            false => is.tools = None,
        }
        let mut resource = Self {
            is,
            status: Status::Available,
            retired: false,
            current_session_id: None,
            current_workflow_id: None,
            current_task_id: None,
            blocked_by: None,
            total_tasks: 0,
            completed_tasks: 0,
            error_count: 0,
            last_error: None,
            updated_at: None,
            can: BTreeMap::new(),
        };
        resource.learn(table);
        resource
    }

    /// Finds out again what it can do.
    pub(super) fn learn(&mut self, table: &CapabilityTools) {
        self.can = match &self.is.tools {
            Some(tools) => {
                let held = tools.difference(&self.is.denied_tools).cloned().collect();
                let declared = self.is.capabilities.iter();
                let declared = declared.filter(|(kind, _)| table.are_enough(kind, &held));
                let declared = declared.map(|(kind, level)| (kind.clone(), *level));
                let given = table.given(&held).map(|kind| (kind.clone(), Level::LEAST));
                // What is declared stands over what follows from the tools alone.
                given.chain(declared).collect()
            }
            None => {
                let declared = self.is.capabilities.iter();
                declared
                    .map(|(kind, level)| (kind.clone(), *level))
                    .collect()
            }
        };
    }

    /// Its id.
    pub fn id(&self) -> &Name {
        &self.is.id
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.is.name
    }

    /// What it is.
    pub fn kind(&self) -> ResourceType {
        self.is.kind
    }

    /// What it is doing.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns true if its owner took it out of service: it does not come back by itself.
    pub fn is_retired(&self) -> bool {
        self.retired
    }

    /// The capabilities that it declares, in its own order.
    pub fn declared(&self) -> &IndexMap<Name, Level> {
        &self.is.capabilities
    }

    /// What it can do: what it declares or its tools give, where it holds all the tools that that takes.
    pub fn can(&self) -> &BTreeMap<Name, Level> {
        &self.can
    }

    /// The tools that it holds and may use, where it is an agent.
    pub fn tools(&self) -> impl Iterator<Item = &Name> {
        let held = self.is.tools.iter().flatten();
        held.filter(|tool| !self.is.denied_tools.contains(*tool))
    }

    /// Tools that it may never hold.
    pub fn denied_tools(&self) -> &BTreeSet<Name> {
        &self.is.denied_tools
    }

    /// What it was added as; its tools are those that it holds now.
    pub fn is(&self) -> &NewResource {
        &self.is
    }

    /// Whether it runs in a process of its own, which joins.
    pub fn is_worker(&self) -> bool {
        self.is.worker
    }

    /// The task that has it.
    pub fn task(&self) -> Option<&str> {
        self.current_task_id.as_deref()
    }

    /// What its task waits for.
    pub fn blocked_by(&self) -> Option<&str> {
        self.blocked_by.as_deref()
    }

    /// How often a task took it.
    pub fn total_tasks(&self) -> u64 {
        self.total_tasks
    }

    /// How many of these were completed.
    pub fn completed_tasks(&self) -> u64 {
        self.completed_tasks
    }

    /// How often it failed.
    pub fn error_count(&self) -> u64 {
        self.error_count
    }

    /// What it failed with last.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Its JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
