//! Pools, events and questions out of JSON. Strict: an unknown key, a wrong value or an id that stands twice is an
//! error that names its place, as in `resources[3].capabilities[0].level`.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde_json::Value;

use super::{
    CapabilityTools, Change, ContextOptions, Level, Name, NewResource, Pool, PoolError, PoolEvent,
    Requirement, Resource, ResourceType, Status, Task,
};
use crate::ContextError;
use crate::json::object;
use crate::prompt::fields::{Fields, boolean, count, list, mismatch, string};

impl Pool {
    /// Reads a pool: `{"resources": […], "capabilityTools": {…}}`, or the list of resources alone.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        let (resources, table, revoked) = match value {
            Value::Array(_) => (Some(list(Ok)(value)?), None, None),
            Value::Object(_) => {
                let known = ["resources", "capabilityTools", "revokedKeys"];
                let mut fields = Fields::open(value, &known)?;
                let resources = fields.take("resources", list(Ok))?;
                let table = fields.take("capabilityTools", rows)?;
                (resources, table, fields.take("revokedKeys", counts)?)
            }
            other => return Err(mismatch("a pool or a list of resources", &other).within("pool")),
        };
        let mut pool = Self {
            revoked_keys: revoked.unwrap_or_default(),
            ..Self::default()
        };
        for (capability, tools) in table.into_iter().flatten() {
            pool.tools.set(capability, tools);
        }
        for (i, value) in resources.into_iter().flatten().enumerate() {
            let place = format!("resources[{i}]");
            let read = resource(value, &pool.tools).map_err(|error| error.within(&place))?;
            if pool.get(read.id().as_str()).is_some() {
                let what = format!("`{}` stands twice", read.id());
                let hint = "each resource has an id of its own";
                return Err(ContextError::invalid(format!("{place}.id"), what, hint));
            }
            pool.put(read);
        }
        Ok(pool)
    }
}

fn counts(value: Value) -> Result<BTreeMap<Name, u64>, ContextError> {
    let one = |(id, value): (String, Value)| Ok((Name::new(&id)?, count(value)? as u64));
    object(value)?.into_iter().map(one).collect()
}

fn rows(value: Value) -> Result<BTreeMap<Name, BTreeSet<Name>>, ContextError> {
    let row = |(capability, tools): (String, Value)| {
        let read = || {
            let name = Name::new(&capability)?;
            let tools = names(tools)?;
            if tools.is_empty() {
                let error = PoolError::NeedsNothing { capability: name };
                return Err(ContextError::invalid("", error.to_string(), error.hint()));
            }
            Ok((name, tools))
        };
        let shown: String = capability.chars().take(40).collect();
        read().map_err(|error| error.within(&shown.escape_debug().to_string()))
    };
    object(value)?.into_iter().map(row).collect()
}

const NEW: [&str; 7] = [
    "id",
    "name",
    "type",
    "capabilities",
    "tools",
    "deniedTools",
    "worker",
];

const STATE: [&str; 11] = [
    "status",
    "retired",
    "currentSessionId",
    "currentWorkflowId",
    "currentTaskId",
    "blockedBy",
    "totalTasks",
    "completedTasks",
    "errorCount",
    "lastError",
    "updatedAt",
];

impl NewResource {
    /// Reads a resource that is to be added.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        new_resource(&mut Fields::open(value, &NEW)?)
    }
}

fn new_resource(fields: &mut Fields) -> Result<NewResource, ContextError> {
    let id = fields.need("id", Name::from_value)?;
    let kind = fields.take("type", kind)?.unwrap_or_default();
    let name = fields.take("name", string)?;
    let capabilities = fields.take("capabilities", capabilities)?;
    let (tools, denied) = (
        fields.take("tools", names)?,
        fields.take("deniedTools", names)?,
    );
    let worker = fields.take("worker", boolean)?.unwrap_or_default();
    if !kind.is_agent() && worker {
        let what = format!("a resource of type `{}` runs nowhere", kind.as_str());
        let hint = "executors, orchestrators and reviewers join as workers";
        return Err(ContextError::invalid("worker", what, hint));
    }
    if !kind.is_agent() && (tools.is_some() || denied.is_some()) {
        let error = PoolError::NoAgent { id, kind };
        return Err(ContextError::invalid(
            "tools",
            error.to_string(),
            error.hint(),
        ));
    }
    Ok(NewResource {
        name: name.unwrap_or_else(|| id.as_str().to_owned()),
        id,
        kind,
        capabilities: capabilities.unwrap_or_default(),
        tools,
        denied_tools: denied.unwrap_or_default(),
        worker,
    })
}

/// A resource as it stands in a pool.
fn resource(value: Value, table: &CapabilityTools) -> Result<Resource, ContextError> {
    let mut fields = Fields::open(value, &[&NEW[..], &STATE[..]].concat())?;
    let mut resource = Resource::new(new_resource(&mut fields)?, table);
    resource.status = fields.take("status", status)?.unwrap_or_default();
    resource.retired = fields.take("retired", boolean)?.unwrap_or_default();
    resource.current_session_id = fields.take("currentSessionId", string)?;
    resource.current_workflow_id = fields.take("currentWorkflowId", string)?;
    resource.current_task_id = fields.take("currentTaskId", string)?;
    resource.blocked_by = fields.take("blockedBy", string)?;
    resource.total_tasks = number(&mut fields, "totalTasks")?;
    resource.completed_tasks = number(&mut fields, "completedTasks")?;
    resource.error_count = number(&mut fields, "errorCount")?;
    resource.last_error = fields.take("lastError", string)?;
    resource.updated_at = fields.take("updatedAt", string)?;
    if resource.current_task_id.is_some() && !resource.status.is_held() {
        return Err(ContextError::invalid(
            "currentTaskId",
            format!("is set, and the resource is `{}`", resource.status.as_str()),
            "a resource that a task has is deployed, busy or blocked",
        ));
    }
    Ok(resource)
}

fn number(fields: &mut Fields, key: &str) -> Result<u64, ContextError> {
    Ok(fields.take(key, count)?.unwrap_or_default() as u64)
}

fn kind(value: Value) -> Result<ResourceType, ContextError> {
    let known = ResourceType::ALL.map(ResourceType::as_str);
    one_of(value, "type of resource", &known, ResourceType::parse)
}

fn status(value: Value) -> Result<Status, ContextError> {
    let known = Status::ALL.map(Status::as_str);
    one_of(value, "status", &known, Status::parse)
}

fn one_of<T>(
    value: Value,
    what: &str,
    known: &[&str],
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, ContextError> {
    let name = string(value)?;
    parse(&name).ok_or_else(|| {
        let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
        let hint = format!("known: {}", known.join(", "));
        ContextError::invalid("", format!("unknown {what} `{shown}`"), hint)
    })
}

fn level(value: Value) -> Result<Level, ContextError> {
    Level::new(count(value)? as u64)
}

fn names(value: Value) -> Result<BTreeSet<Name>, ContextError> {
    Ok(list(Name::from_value)(value)?.into_iter().collect())
}

/// Each `{"type", "level"}`, or the type alone.
fn capabilities(value: Value) -> Result<IndexMap<Name, Level>, ContextError> {
    let one = |value| match value {
        Value::String(_) => Ok((Name::from_value(value)?, Level::MIDDLE)),
        value => {
            let mut fields = Fields::open(value, &["type", "level"])?;
            let kind = fields.need("type", Name::from_value)?;
            Ok((kind, fields.take("level", level)?.unwrap_or(Level::MIDDLE)))
        }
    };
    let mut all = IndexMap::new();
    for (i, (kind, level)) in list(one)(value)?.into_iter().enumerate() {
        if all.contains_key(&kind) {
            let what = format!("`{kind}` stands twice");
            let hint = "a resource has one level of each capability";
            return Err(ContextError::invalid(format!("[{i}].type"), what, hint));
        }
        all.insert(kind, level);
    }
    Ok(all)
}

impl PoolEvent {
    /// Reads an event.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        let kind = match value.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            _ => {
                let hint = "see docs/pool.md for the events";
                return Err(ContextError::invalid("type", "is missing or no text", hint));
            }
        };
        let open = move |keys: &[&str]| Fields::open(value, &[&["type", "at"][..], keys].concat());
        let id = |fields: &mut Fields| fields.need("resourceId", Name::from_value);
        let task = |fields: &mut Fields| fields.need("taskId", string);
        let (mut fields, change) = match kind.as_str() {
            "resource:added" => {
                let mut fields = open(&["resource"])?;
                let resource = fields.need("resource", NewResource::from_value)?;
                (fields, Change::Added { resource })
            }
            "resource:retired" => {
                let mut fields = open(&["resourceId", "byOwner"])?;
                let id = id(&mut fields)?;
                let by_owner = fields.take("byOwner", boolean)?.unwrap_or_default();
                (fields, Change::Retired { id, by_owner })
            }
            "resource:removed" | "resource:recovered" | "resource:restored" | "key:revoked" => {
                let mut fields = open(&["resourceId"])?;
                let id = id(&mut fields)?;
                let change = match kind.as_str() {
                    "resource:removed" => Change::Removed { id },
                    "resource:recovered" => Change::Recovered { id },
                    "key:revoked" => Change::KeyRevoked { id },
                    _ => Change::Restored { id },
                };
                (fields, change)
            }
            "resource:allocated" => {
                let mut fields = open(&["resourceId", "taskId", "sessionId", "workflowId"])?;
                let change = Change::Allocated {
                    id: id(&mut fields)?,
                    task: Task {
                        task_id: task(&mut fields)?,
                        session_id: fields.take("sessionId", string)?,
                        workflow_id: fields.take("workflowId", string)?,
                    },
                };
                (fields, change)
            }
            "resource:started" => {
                let mut fields = open(&["resourceId", "taskId"])?;
                let (id, task_id) = (id(&mut fields)?, task(&mut fields)?);
                (fields, Change::Started { id, task_id })
            }
            "resource:blocked" => {
                let mut fields = open(&["resourceId", "taskId", "reason"])?;
                let change = Change::Blocked {
                    id: id(&mut fields)?,
                    task_id: task(&mut fields)?,
                    reason: fields.need("reason", string)?,
                };
                (fields, change)
            }
            "resource:freed" => {
                let mut fields = open(&["resourceId", "taskId", "completed"])?;
                let change = Change::Freed {
                    id: id(&mut fields)?,
                    task_id: task(&mut fields)?,
                    completed: fields.need("completed", boolean)?,
                };
                (fields, change)
            }
            "resource:failed" => {
                let mut fields = open(&["resourceId", "error"])?;
                let change = Change::Failed {
                    id: id(&mut fields)?,
                    error: fields.need("error", string)?,
                };
                (fields, change)
            }
            "tool:granted" | "tool:revoked" => {
                let mut fields = open(&["resourceId", "tool"])?;
                let (id, tool) = (id(&mut fields)?, fields.need("tool", Name::from_value)?);
                let change = match kind.as_str() {
                    "tool:granted" => Change::Granted { id, tool },
                    _ => Change::Revoked { id, tool },
                };
                (fields, change)
            }
            "capability:mapped" => {
                let mut fields = open(&["capability", "tools"])?;
                let change = Change::Mapped {
                    capability: fields.need("capability", Name::from_value)?,
                    tools: fields.need("tools", names)?,
                };
                (fields, change)
            }
            other => {
                let shown: String = other
                    .chars()
                    .take(40)
                    .flat_map(char::escape_debug)
                    .collect();
                let hint = "a newer program may have written it";
                return Err(ContextError::invalid(
                    "type",
                    format!("unknown event `{shown}`"),
                    hint,
                ));
            }
        };
        Ok(change.at(fields.need("at", string)?))
    }
}

impl Requirement {
    /// Reads a requirement: a capability's name, or `{"capability", "minLevel", "type", "optional"}`.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        if value.is_string() {
            return Ok(Self::of(Name::from_value(value)?));
        }
        let known = ["capability", "minLevel", "type", "optional"];
        let mut fields = Fields::open(value, &known)?;
        Ok(Self {
            capability: fields.need("capability", Name::from_value)?,
            min_level: fields.take("minLevel", level)?.unwrap_or(Level::LEAST),
            kind: fields.take("type", kind)?,
            optional: fields.take("optional", boolean)?.unwrap_or_default(),
        })
    }
}

impl ContextOptions {
    /// Reads what is known of a task: the options of the spec's `buildAgentContext`.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        let known = [
            "taskId",
            "taskDescription",
            "requiredCapabilities",
            "bdTaskId",
            "orchestratorNote",
        ];
        let mut fields = match value {
            Value::Object(_) => Fields::open(value, &known)?,
            other => return Err(mismatch("an object", &other).within("task")),
        };
        let required = fields.take("requiredCapabilities", list(Name::from_value))?;
        Ok(Self {
            task_id: fields.take("taskId", string)?,
            task_description: fields.take("taskDescription", string)?,
            required_capabilities: required.unwrap_or_default(),
            bd_task_id: fields.take("bdTaskId", string)?,
            orchestrator_note: fields.take("orchestratorNote", string)?,
        })
    }
}
