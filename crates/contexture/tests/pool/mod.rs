//! Spec 003: the pool, what an agent is told of it, and who gets a task.

mod allocate;
mod context;
mod grants;
mod hostile;
mod matching;
mod properties;
mod states;
mod strict;

use contexture::pool::{Change, Level, Name, Pool, PoolError, Task};
use serde_json::{Value, json};

pub const AT: &str = "2026-11-15T12:00:00.000Z";

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn level(level: u64) -> Level {
    Level::new(level).unwrap()
}

pub fn pool(value: Value) -> Pool {
    Pool::from_value(value).unwrap()
}

/// Applies a change.
pub fn does(pool: &mut Pool, change: Change) -> Result<(), PoolError> {
    pool.apply(&change.at(AT))
}

/// The state behind the spec's example.
pub fn example() -> Pool {
    pool(json!([
        {"id": "executor-research", "type": "executor", "capabilities": [
            {"type": "web_search", "level": 8}, {"type": "report_generation", "level": 7}]},
        {"id": "executor-general", "type": "executor", "capabilities": [{"type": "file_ops", "level": 6}]},
        {"id": "executor-coding", "type": "executor", "capabilities": [
            {"type": "file_ops", "level": 5}, {"type": "code_generation", "level": 9}]},
        {"id": "executor-desk", "type": "executor", "status": "busy", "currentTaskId": "task-0",
            "capabilities": [{"type": "web_search", "level": 4}, {"type": "report_generation", "level": 4}]},
        {"id": "executor-files", "type": "executor", "status": "deployed", "currentTaskId": "task-9",
            "capabilities": [{"type": "file_ops", "level": 3}]},
    ]))
}

pub fn allocated(id: &str, task: &str) -> Change {
    Change::Allocated {
        id: name(id),
        task: Task::new(task),
    }
}

pub fn started(id: &str, task: &str) -> Change {
    Change::Started {
        id: name(id),
        task_id: task.to_owned(),
    }
}

pub fn freed(id: &str, task: &str) -> Change {
    Change::Freed {
        id: name(id),
        task_id: task.to_owned(),
        completed: true,
    }
}
