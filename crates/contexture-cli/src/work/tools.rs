//! The tools of an orchestrator: the pool, and what it is given to do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_agent::Cancel;
use contexture_tools::{Calling, Effect, Outcome, Tool, ToolSpec};
use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::fleet::Reach;

/// Their names.
pub const TOOLS: [&str; 4] = ["list_resources", "dispatch_task", "task_status", "stop"];

/// What they work on.
pub struct PoolTools {
    pub fleet: Arc<Reach>,
    /// The goal that dispatched tasks are parts of.
    pub goal: String,
    /// Why the orchestrator gave up, once it did.
    pub stopped: Mutex<Option<String>>,
    /// Ends its run.
    pub cancel: Cancel,
}

/// How long one look at a task waits for it, at most.
const LONGEST: u64 = 120;
/// How many resources are listed.
const LISTED: usize = 50;

impl PoolTools {
    /// All four.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let specs = [list_resources(), dispatch_task(), task_status(), stop()];
        let tool = |spec| {
            let on = Arc::clone(self);
            Arc::new(PoolTool { spec, on }) as Arc<dyn Tool>
        };
        specs.into_iter().map(tool).collect()
    }

    async fn list(&self) -> Result<Value, CliError> {
        let catalog = self.fleet.call("pool.catalog", json!({})).await?;
        let pool = self.fleet.call("pool.list", json!({})).await?;
        let all = pool["resources"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let brief = |resource: &Value| {
            json!({
                "id": resource["id"],
                "type": resource["type"],
                "status": resource["status"],
                "capabilities": resource["capabilities"],
                "currentTaskId": resource["currentTaskId"],
            })
        };
        let listed: Vec<Value> = all.iter().take(LISTED).map(brief).collect();
        Ok(
            json!({"summary": catalog, "resources": listed, "more": all.len().saturating_sub(LISTED)}),
        )
    }

    async fn dispatch(&self, arguments: &Map<String, Value>) -> Result<Value, CliError> {
        let mut task = json!({"parent": self.goal});
        for key in ["description", "requires", "to", "note", "priority"] {
            if let Some(value) = arguments.get(key) {
                task[key] = value.clone();
            }
        }
        if let Some(most) = arguments.get("max_tokens") {
            task["limits"] = json!({"maxTokens": most});
        }
        let task = self.fleet.call("task.dispatch", task).await?;
        Ok(json!({"id": task["id"], "state": task["state"]}))
    }

    async fn status(&self, arguments: &Map<String, Value>) -> Result<Value, CliError> {
        let wait = arguments.get("wait_seconds").and_then(Value::as_u64);
        let wait = wait.unwrap_or_default().min(LONGEST);
        let Some(id) = arguments.get("id").and_then(Value::as_str) else {
            let all = self
                .fleet
                .call("task.list", json!({"parent": self.goal}))
                .await?;
            let all = all["tasks"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            return Ok(json!({"tasks": all.iter().map(shown).collect::<Vec<Value>>()}));
        };
        let asked = json!({"id": id, "waitSeconds": wait});
        Ok(shown(&self.fleet.call("task.show", asked).await?))
    }

    fn stop(&self, arguments: &Map<String, Value>) -> Value {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let mut why = text("reason").unwrap_or("no reason given").to_owned();
        let missing = arguments.get("missing").and_then(Value::as_array);
        let missing: BTreeSet<&str> = missing
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !missing.is_empty() {
            let missing: Vec<&str> = missing.into_iter().collect();
            why = format!("{why} (missing: {})", missing.join(", "));
        }
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.cancel.cancel();
        json!({"stopped": true})
    }
}

/// A task, as far as an orchestrator needs it.
fn shown(task: &Value) -> Value {
    let keys = [
        "id",
        "description",
        "state",
        "executor",
        "attempt",
        "missing",
        "why",
        "result",
        "left",
    ];
    let some = keys
        .iter()
        .filter_map(|key| Some((*key, task.get(*key)?.clone())));
    some.map(|(key, value)| (key.to_owned(), value))
        .collect::<Map<String, Value>>()
        .into()
}

/// One of them.
struct PoolTool {
    spec: ToolSpec,
    on: Arc<PoolTools>,
}

impl Tool for PoolTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: &'a Map<String, Value>) -> Calling<'a> {
        Box::pin(async move {
            let on = &self.on;
            let done = match self.spec.name.as_str() {
                "list_resources" => on.list().await,
                "dispatch_task" => on.dispatch(arguments).await,
                "task_status" => on.status(arguments).await,
                _ => Ok(on.stop(arguments)),
            };
            match done {
                Ok(value) => {
                    Outcome::done(value.to_string()).saying(words(&self.spec.name, &value))
                }
                Err(error) => Outcome::failed(error.to_string()),
            }
        })
    }
}

/// What people read of it.
fn words(tool: &str, value: &Value) -> String {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    match tool {
        "list_resources" => {
            let of = &value["summary"];
            format!(
                "{} resources, {} available",
                of["totalResources"], of["available"]
            )
        }
        "dispatch_task" => format!("{} is {}", text("id"), text("state")),
        "task_status" => match value["tasks"].as_array() {
            Some(all) => format!("{} tasks", all.len()),
            None => format!("{} is {}", text("id"), text("state")),
        },
        _ => "stopped".to_owned(),
    }
}

fn spec(
    name: &str,
    description: &str,
    effect: Effect,
    properties: &Value,
    required: &[&str],
) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
        category: "pool".to_owned(),
        effect,
    }
}

fn list_resources() -> ToolSpec {
    spec(
        "list_resources",
        "Who there is to work: the capabilities with how many are free, and each resource with what it is doing.",
        Effect::Reads,
        &json!({}),
        &[],
    )
}

fn dispatch_task() -> ToolSpec {
    spec(
        "dispatch_task",
        "Hand a task to whoever has the capabilities that it requires. It returns at once; task_status waits for the result. A task that nobody can take now is blocked, and starts by itself when somebody can.",
        Effect::Tells,
        &json!({
            "description": {"type": "string", "description": "what is to be done, whole: the executor sees nothing else"},
            "requires": {"type": "array", "items": {"type": "string"}, "description": "capabilities from the catalog"},
            "to": {"type": "string", "description": "the id of an executor, where it matters who"},
            "note": {"type": "string", "description": "what to tell the executor beside"},
            "priority": {"type": "integer"},
            "max_tokens": {"type": "integer", "minimum": 0, "description": "the most tokens; half of what is left unless given"},
        }),
        &["description"],
    )
}

fn task_status() -> ToolSpec {
    spec(
        "task_status",
        "Where a task is, and its result once it is done; without an id, all tasks of this goal.",
        Effect::Reads,
        &json!({
            "id": {"type": "string"},
            "wait_seconds": {"type": "integer", "minimum": 0, "maximum": LONGEST, "description": "how long to wait for its end"},
        }),
        &[],
    )
}

fn stop() -> ToolSpec {
    spec(
        "stop",
        "Give the goal up, for want of capabilities or because it cannot be achieved. Tasks that are not over are called off.",
        Effect::Tells,
        &json!({
            "reason": {"type": "string"},
            "missing": {"type": "array", "items": {"type": "string"}, "description": "capabilities that nobody has"},
        }),
        &["reason"],
    )
}
