//! `task.*`: what is to be done, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use contexture::task::{Limits, NewTask, Spent, State, Task, Tasks};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{Entry, any_object, list, method, object, params, streaming, text};
use crate::fleet::Fleet;
use crate::work::Dispatcher;
use crate::{Answering, Call, RpcError, Updates, Who, Why};

pub(super) fn table() -> Vec<Entry> {
    let id = || ("id", text("the task's id"));
    let task = || any_object("the task: what it is, its `state`, and what came of it");
    let limits = || any_object("`maxTokens`, `maxCostMicros`, `seconds`, `attempts`");
    vec![
        method(
            "task.dispatch",
            "Has a task done by whoever can",
            Who::Owner,
            object(&[
                ("id?", text("its id; the same twice is one task")),
                ("description", text("what is to be done")),
                ("requires?", list(&json!({}))),
                ("to?", text("who is to do it")),
                ("priority?", json!({"type": "integer"})),
                ("parent?", text("the task that it is a part of")),
                ("limits?", limits()),
                ("note?", text("what whoever does it is told")),
                ("bdTaskId?", text("its id in the tracker of work")),
            ]),
            task(),
            dispatch,
        ),
        method(
            "task.list",
            "All tasks, without what executors were told",
            Who::Owner,
            object(&[
                ("state?", text("only those in this state")),
                ("parent?", text("only the parts of this one")),
            ]),
            object(&[("tasks", list(&task()))]),
            all,
        ),
        method(
            "task.show",
            "A task, at once or when it is over",
            Who::Owner,
            object(&[
                id(),
                (
                    "waitSeconds?",
                    json!({"type": "integer", "description": "how long to wait for its end"}),
                ),
            ]),
            task(),
            show,
        ),
        method(
            "task.cancel",
            "Calls a task off, with all its parts",
            Who::Owner,
            object(&[id(), ("why?", text("why"))]),
            task(),
            cancel,
        ),
        streaming(method(
            "task.goal",
            "Begins a goal that the caller works on; what becomes of its parts comes until it ends",
            Who::Owner,
            object(&[
                ("description", text("what is to be achieved")),
                ("limits?", limits()),
            ]),
            task(),
            goal,
        )),
        method(
            "task.end",
            "Ends a goal, with its result or why there is none",
            Who::Owner,
            object(&[
                id(),
                ("result?", text("what came of it")),
                ("error?", text("why nothing did")),
                ("tokens?", json!({"type": "integer"})),
                ("costMicros?", json!({"type": "integer"})),
            ]),
            task(),
            end,
        ),
    ]
}

fn dispatch(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let new = NewTask::from_value(call.params.take())?;
        let made = fleet.dispatcher.change(move |board, now| {
            let id = board.create(new.clone(), now)?;
            Ok((brief(board.tasks(), board.tasks().known(&id)?), Vec::new()))
        });
        made.await
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    state: Option<String>,
    parent: Option<String>,
}

fn all(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let List { state, parent } = params(&mut call)?;
        let state = match state.as_deref() {
            None => None,
            Some(name) => Some(State::parse(name).ok_or_else(|| {
                let known: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
                RpcError::new(Why::Invalid, "`state` is unknown")
                    .hint(format!("known: {}", known.join(", ")))
            })?),
        };
        let listed = fleet.dispatcher.look(move |board| {
            let tasks = board.tasks();
            let wanted = tasks.iter().filter(|task| {
                state.is_none_or(|state| state == task.state())
                    && (parent.is_none() || task.is().parent == parent)
            });
            wanted
                .map(|task| brief(tasks, task))
                .collect::<Vec<Value>>()
        });
        Ok(json!({"tasks": listed.await?}))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Show {
    id: String,
    wait_seconds: Option<u64>,
}

/// The longest that somebody waits for a task with one call.
const LONGEST: u64 = 3_600;

fn show(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Show { id, wait_seconds } = params(&mut call)?;
        let wait = Duration::from_secs(wait_seconds.unwrap_or_default().min(LONGEST));
        let until = Instant::now() + wait;
        let mut changes = fleet.dispatcher.changes();
        loop {
            changes.mark_unchanged();
            let wanted = id.clone();
            let looked = fleet.dispatcher.look(move |board| {
                let tasks = board.tasks();
                let task = tasks.known(&wanted)?;
                Ok::<_, RpcError>((task.state().is_over(), whole(tasks, task)))
            });
            let (over, shown) = looked.await??;
            let waits = !over && Instant::now() < until;
            if !waits || timeout_at(until, changes.changed()).await.is_err() {
                return Ok(shown);
            }
        }
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallOff {
    id: String,
    why: Option<String>,
}

fn cancel(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let CallOff { id, why } = params(&mut call)?;
        let why = why.unwrap_or_else(|| "somebody called it off".to_owned());
        called_off(&fleet.dispatcher, id, why).await
    })
}

async fn called_off(
    dispatcher: &Arc<Dispatcher>,
    id: String,
    why: String,
) -> Result<Value, RpcError> {
    let ended = dispatcher.change(move |board, now| {
        let recalls = board.cancel(&id, &why, now)?;
        Ok((brief(board.tasks(), board.tasks().known(&id)?), recalls))
    });
    ended.await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Goal {
    description: String,
    #[serde(default)]
    limits: Value,
}

fn goal(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Goal {
            description,
            limits,
        } = params(&mut call)?;
        let limits = match limits {
            Value::Null => Limits::default(),
            limits => Limits::from_value(limits)?,
        };
        let dispatcher = &fleet.dispatcher;
        let mut changes = dispatcher.changes();
        let process = dispatcher.process().to_owned();
        let begun = dispatcher.change(move |board, now| {
            let id = board.begin(description.clone(), limits.clone(), &process, now)?;
            Ok((id, Vec::new()))
        });
        let id = begun.await?;
        let gone = Gone {
            dispatcher: Arc::clone(dispatcher),
            id: Some(id.clone()),
        };
        let shown = follow(dispatcher, &id, &mut changes, call.updates.as_ref()).await?;
        gone.not();
        Ok(shown)
    })
}

/// Calls a goal off whose maker has gone.
struct Gone {
    dispatcher: Arc<Dispatcher>,
    id: Option<String>,
}

impl Gone {
    fn not(mut self) {
        self.id = None;
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        if let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) {
            let dispatcher = Arc::clone(&self.dispatcher);
            runtime.spawn(async move {
                // One that has ended meanwhile needs no end.
                let _ = called_off(&dispatcher, id, "whoever wanted it has gone".to_owned()).await;
            });
        }
    }
}

/// Tells what becomes of a goal and its parts, until it is over.
async fn follow(
    dispatcher: &Arc<Dispatcher>,
    id: &str,
    changes: &mut tokio::sync::watch::Receiver<u64>,
    updates: Option<&Updates>,
) -> Result<Value, RpcError> {
    let mut told: BTreeMap<String, Value> = BTreeMap::new();
    loop {
        changes.mark_unchanged();
        let goal = id.to_owned();
        let looked = dispatcher.look(move |board| {
            let tasks = board.tasks();
            let below = below(tasks, &goal);
            let shown = below.iter().filter_map(|id| tasks.get(id));
            let news: Vec<Value> = shown.map(|task| brief(tasks, task)).collect();
            let task = tasks.known(&goal)?;
            Ok::<_, RpcError>((task.state().is_over(), news, whole(tasks, task)))
        });
        let (over, news, shown) = looked.await??;
        for task in news {
            let id = task["id"].as_str().unwrap_or_default().to_owned();
            if told.get(&id) == Some(&task) {
                continue;
            }
            told.insert(id, task.clone());
            if let Some(updates) = updates
                && updates
                    .send(json!({"type": "task", "task": task}))
                    .await
                    .is_err()
            {
                return Err(RpcError::new(Why::Conflict, "nobody listens any more"));
            }
        }
        if over {
            return Ok(shown);
        }
        // The dispatcher lives as long as the fleet that we hold.
        let _ = changes.changed().await;
    }
}

/// A task and all its parts.
fn below(tasks: &Tasks, id: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([id.to_owned()]);
    for part in tasks.parts(id) {
        all.extend(below(tasks, part.id()));
    }
    all
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct End {
    id: String,
    result: Option<String>,
    error: Option<String>,
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    cost_micros: u64,
}

fn end(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let End {
            id,
            result,
            error,
            tokens,
            cost_micros,
        } = params(&mut call)?;
        let came = match (result, error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            _ => {
                let what = "a goal ends with a `result` or an `error`";
                return Err(RpcError::new(Why::Invalid, what).hint("give one of them"));
            }
        };
        let spent = Spent {
            tokens,
            cost_micros,
        };
        let ended = fleet.dispatcher.change(move |board, now| {
            let recalls = board.end(&id, came.clone(), spent, now)?;
            Ok((brief(board.tasks(), board.tasks().known(&id)?), recalls))
        });
        ended.await
    })
}

/// A task without what its executor was told.
fn brief(tasks: &Tasks, task: &Task) -> Value {
    let mut shown = whole(tasks, task);
    if let Some(shown) = shown.as_object_mut() {
        shown.shift_remove("context");
    }
    shown
}

/// A task, with its parts by their ids, and what is left of its limits.
fn whole(tasks: &Tasks, task: &Task) -> Value {
    let mut shown = json!(task);
    let parts: Vec<&str> = tasks.parts(task.id()).map(Task::id).collect();
    if !parts.is_empty() {
        shown["parts"] = json!(parts);
    }
    if !task.state().is_over() {
        let left = tasks.left(task.id());
        if left.max_tokens.is_some() || left.max_cost_micros.is_some() {
            shown["left"] = json!({"tokens": left.max_tokens, "costMicros": left.max_cost_micros});
        }
    }
    shown
}
