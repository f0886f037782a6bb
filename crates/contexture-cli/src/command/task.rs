use std::path::Path;
use std::sync::Arc;

use contexture_agent::Cancel;
use serde_json::{Value, json};

use super::pool::requirements;
use super::run;
use super::{print, print_json, runtime};
use crate::args::{Spending, Task, TaskDispatch};
use crate::error::CliError;
use crate::fleet::{Reach, reach};
use crate::output::note;
use crate::view::{self, Paint, safe};
use crate::work::Native;

/// How long one call waits for a task.
const LOOK: u64 = 300;

/// `ctx task …`.
pub fn task(what: &Task, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    // What is wrong with the words is said before anything is opened.
    let new = match what {
        Task::Dispatch(options) => Some(new(options)?),
        _ => None,
    };
    runtime()?.block_on(async {
        let fleet = reach(dir)?;
        match what {
            Task::Dispatch(options) => {
                dispatch(fleet, options, new.unwrap_or_default(), json, dir).await
            }
            Task::List { state } => {
                let mut all = fleet.call("task.list", json!({"state": state})).await?;
                let all = all["tasks"].take();
                list(&all, json)
            }
            Task::Show { id, wait } => {
                let task = match wait {
                    true => over(&fleet, id).await?,
                    false => fleet.call("task.show", json!({"id": id})).await?,
                };
                show(&task, json)
            }
            Task::Cancel { ids } => {
                for id in ids {
                    let task = fleet.call("task.cancel", json!({"id": id})).await?;
                    match json {
                        true => print_json(&task)?,
                        false => print(format!("cancelled: {}\n", safe(id)).as_bytes())?,
                    }
                }
                Ok(())
            }
        }
    })
}

async fn dispatch(
    fleet: Reach,
    options: &TaskDispatch,
    new: Value,
    json: bool,
    dir: Option<&Path>,
) -> Result<(), CliError> {
    let task = fleet.call("task.dispatch", new).await?;
    let id = task["id"].as_str().unwrap_or_default().to_owned();
    if !options.wait {
        if json {
            return print_json(&task);
        }
        print(format!("{}\n", view::task_line(&task, 0, Paint::stdout())).as_bytes())?;
        match &fleet {
            Reach::Daemon(_) => note!("     `ctx task show {id} --wait` waits for its result"),
            Reach::Here { .. } => {
                note!("     it waits until somebody hands it out: `ctx serve`");
            }
        }
        return Ok(());
    }
    let ending = Cancel::default();
    let working = match &fleet {
        Reach::Daemon(_) => None,
        // Nobody else hands it out.
        Reach::Here { fleet, .. } => {
            let native = Arc::new(Native::new(&options.agent, dir.map(Path::to_owned)));
            let (fleet, until) = (Arc::clone(fleet), ending.clone());
            Some(tokio::spawn(async move {
                fleet.work(Some(native), until).await;
            }))
        }
    };
    let task = tokio::select! {
        task = over(&fleet, &id) => task,
        () = super::serve::stop() => {
            let _ = fleet.call("task.cancel", json!({"id": id, "why": "Ctrl-C"})).await;
            fleet.call("task.show", json!({"id": id})).await
        }
    };
    ending.cancel();
    if let Some(working) = working {
        let _ = working.await;
    }
    show(&task?, json)
}

/// Waits until a task is over.
async fn over(fleet: &Reach, id: &str) -> Result<Value, CliError> {
    let mut told = false;
    loop {
        let seconds = if told { LOOK } else { 5 };
        let task = fleet
            .call("task.show", json!({"id": id, "waitSeconds": seconds}))
            .await?;
        match task["state"].as_str() {
            Some("done" | "failed" | "cancelled") => return Ok(task),
            // Whoever waits wants to know for what.
            Some("blocked") if !told => {
                let why = safe(task["why"].as_str().unwrap_or_default());
                note!("ctx: {id} waits for somebody who can: {why}");
            }
            _ => {}
        }
        told = true;
    }
}

fn list(all: &Value, json: bool) -> Result<(), CliError> {
    if json {
        return print_json(all);
    }
    let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
    match all.is_empty() {
        true => {
            note!("no tasks: `ctx task dispatch \"…\"` makes one");
            Ok(())
        }
        false => print(view::tasks(all, Paint::stdout()).as_bytes()),
    }
}

/// The exit code follows from what came of it.
fn show(task: &Value, json: bool) -> Result<(), CliError> {
    match json {
        true => print_json(task)?,
        false => print(view::task(task, Paint::stdout()).as_bytes())?,
    }
    let id = task["id"].as_str().unwrap_or_default();
    match task["state"].as_str() {
        Some("failed" | "cancelled") => Err(CliError::Unfinished {
            what: format!("{id} came to nothing"),
            hint: format!("`ctx task show {id}` says why; dispatch it anew to try again"),
        }),
        _ => Ok(()),
    }
}

fn new(options: &TaskDispatch) -> Result<Value, CliError> {
    let mut limits = spending(&options.spending);
    if let Some(seconds) = options.timeout {
        limits["seconds"] = json!(seconds);
    }
    if let Some(attempts) = options.attempts {
        limits["attempts"] = json!(attempts);
    }
    Ok(json!({
        "id": options.id,
        "description": run::task(&options.description)?,
        "requires": requirements(&options.requires, "--requires")?,
        "to": options.to,
        "note": options.note,
        "bdTaskId": options.bd_task,
        "parent": options.parent,
        "priority": options.priority,
        "limits": limits,
    }))
}

/// What may be spent, as a task has it.
pub(super) fn spending(spending: &Spending) -> Value {
    let mut limits = json!({});
    if let Some(most) = spending.max_tokens {
        limits["maxTokens"] = json!(most);
    }
    if let Some(most) = spending.max_cost {
        limits["maxCostMicros"] = json!(most);
    }
    limits
}
