//! Tasks and events out of JSON. Strict: an unknown key or a wrong value is an error that names its place.

use serde_json::Value;

use super::{BoardEvent, Limits, NewTask, Spent, TaskChange, TaskEvent};
use crate::ContextError;
use crate::pool::{Name, PoolEvent, Requirement};
use crate::prompt::fields::{Fields, count, list, mismatch, string};

impl BoardEvent {
    /// Reads an event.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        let of_task = value.get("type").and_then(Value::as_str);
        match of_task.is_some_and(|kind| kind.starts_with("task:")) {
            true => Ok(Self::Task(TaskEvent::from_value(value)?)),
            false => Ok(Self::Pool(PoolEvent::from_value(value)?)),
        }
    }
}

impl NewTask {
    /// Reads a task that is to be done.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        let known = [
            "id",
            "description",
            "requires",
            "to",
            "priority",
            "parent",
            "limits",
            "note",
            "bdTaskId",
        ];
        let mut fields = Fields::open(value, &known)?;
        let requires = fields.take("requires", list(Requirement::from_value))?;
        Ok(Self {
            id: fields.take("id", id)?.unwrap_or_default(),
            description: fields.need("description", string)?,
            requires: requires.unwrap_or_default(),
            to: fields.take("to", Name::from_value)?,
            priority: fields.take("priority", whole)?.unwrap_or_default(),
            parent: fields.take("parent", string)?,
            limits: fields
                .take("limits", Limits::from_value)?
                .unwrap_or_default(),
            note: fields.take("note", string)?,
            bd_task_id: fields.take("bdTaskId", string)?,
        })
    }
}

/// An id is a name: it stands in prompts, in the names of sessions and in messages.
fn id(value: Value) -> Result<String, ContextError> {
    Ok(Name::from_value(value)?.as_str().to_owned())
}

fn whole(value: Value) -> Result<i64, ContextError> {
    match value {
        Value::Number(number) if number.is_i64() => Ok(number.as_i64().unwrap_or_default()),
        other => Err(mismatch("a whole number", &other)),
    }
}

fn number(value: Value) -> Result<u64, ContextError> {
    Ok(count(value)? as u64)
}

fn small(value: Value) -> Result<u32, ContextError> {
    let number = count(value)?;
    u32::try_from(number).map_err(|_| {
        ContextError::invalid("", format!("{number} is too many"), "leave it out for 3")
    })
}

impl Limits {
    /// Reads limits.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        let known = ["maxTokens", "maxCostMicros", "seconds", "attempts"];
        let mut fields = Fields::open(value, &known)?;
        Ok(Self {
            max_tokens: fields.take("maxTokens", number)?,
            max_cost_micros: fields.take("maxCostMicros", number)?,
            seconds: fields.take("seconds", number)?.unwrap_or(Self::SECONDS),
            attempts: fields.take("attempts", small)?.unwrap_or(Self::ATTEMPTS),
        })
    }
}

impl TaskEvent {
    /// Reads an event.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        let kind = value.get("type").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().to_owned();
        let open = move |keys: &[&str]| Fields::open(value, &[&["type", "at"][..], keys].concat());
        let task = |fields: &mut Fields| fields.need("taskId", string);
        let attempt = |fields: &mut Fields| fields.need("attempt", small);
        let spent = |fields: &mut Fields| {
            Ok::<_, ContextError>(Spent {
                tokens: fields.take("tokens", number)?.unwrap_or_default(),
                cost_micros: fields.take("costMicros", number)?.unwrap_or_default(),
            })
        };
        let (mut fields, change) = match kind.as_str() {
            "task:created" => {
                let mut fields = open(&["task"])?;
                let task = fields.need("task", NewTask::from_value)?;
                (fields, TaskChange::Created { task })
            }
            "task:blocked" => {
                let mut fields = open(&["taskId", "reason", "missing", "why"])?;
                let change = TaskChange::Blocked {
                    task_id: task(&mut fields)?,
                    reason: fields.need("reason", string)?,
                    missing: fields.need("missing", list(Name::from_value))?,
                    why: fields.need("why", string)?,
                };
                (fields, change)
            }
            "task:dispatched" => {
                let mut fields = open(&[
                    "taskId",
                    "attempt",
                    "executor",
                    "resources",
                    "deadline",
                    "context",
                ])?;
                let resources = fields.need("resources", list(Name::from_value))?;
                let change = TaskChange::Dispatched {
                    task_id: task(&mut fields)?,
                    attempt: attempt(&mut fields)?,
                    executor: fields.need("executor", Name::from_value)?,
                    resources: resources.into_iter().collect(),
                    deadline: fields.need("deadline", number)?,
                    context: fields.need("context", string)?,
                };
                (fields, change)
            }
            "task:started" => {
                let mut fields = open(&["taskId", "attempt", "instance", "context"])?;
                let change = TaskChange::Started {
                    task_id: task(&mut fields)?,
                    attempt: attempt(&mut fields)?,
                    instance: fields.need("instance", string)?,
                    context: fields.take("context", string)?,
                };
                (fields, change)
            }
            "task:finished" => {
                let mut fields = open(&["taskId", "attempt", "result", "tokens", "costMicros"])?;
                let change = TaskChange::Finished {
                    task_id: task(&mut fields)?,
                    attempt: attempt(&mut fields)?,
                    result: fields.need("result", string)?,
                    spent: spent(&mut fields)?,
                };
                (fields, change)
            }
            "task:failed" => {
                let keys = [
                    "taskId",
                    "attempt",
                    "error",
                    "tokens",
                    "costMicros",
                    "retryAt",
                ];
                let mut fields = open(&keys)?;
                let change = TaskChange::Failed {
                    task_id: task(&mut fields)?,
                    attempt: attempt(&mut fields)?,
                    error: fields.need("error", string)?,
                    spent: spent(&mut fields)?,
                    retry_at: fields.take("retryAt", number)?,
                };
                (fields, change)
            }
            "task:cancelled" => {
                let mut fields = open(&["taskId", "why"])?;
                let change = TaskChange::Cancelled {
                    task_id: task(&mut fields)?,
                    why: fields.need("why", string)?,
                };
                (fields, change)
            }
            other => {
                let shown: String = other
                    .chars()
                    .take(40)
                    .flat_map(char::escape_debug)
                    .collect();
                let what = format!("unknown event `{shown}`");
                let hint = "a newer program may have written it";
                return Err(ContextError::invalid("type", what, hint));
            }
        };
        Ok(change.at(fields.need("at", string)?))
    }
}
