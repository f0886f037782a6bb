//! Tasks, as a script and as a person sees them: `ctx task`, `ctx worker`, `ctx orchestrate`, in one process, in several,
//! and over a real NATS server with a real PostgreSQL.

mod chaos;
mod hosts;
mod orchestrate;
mod tasks;
mod workers;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Ctx, Project};
use crate::fleet::scene;
use crate::model_server::{Answer, ModelServer, Piece, Seen};
use serde_json::{Value, json};

/// A worker in a process of its own, gone with the test.
pub struct Worker {
    pub child: Child,
}

impl Worker {
    /// Starts one, and waits until it says that it joins.
    pub fn start(ctx: &Ctx) -> Self {
        Self::of(ctx.command())
    }

    /// The same by a command of its own.
    pub fn of(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said: Value = serde_json::from_str(&line).expect("what `ctx worker --json` says first");
        assert_eq!(said["type"], "joined");
        Self { child }
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it as a person does. How it ended.
    pub fn interrupt(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Looks again and again until there is something to see.
#[track_caller]
pub fn until<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + patience;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub const SOON: Duration = Duration::from_secs(30);

pub fn status(project: &Project, resource: &str) -> Option<String> {
    let pool = project.ctx(&["pool", "list", "--json"]).json();
    let all = pool["resources"].as_array().unwrap();
    let one = all.iter().find(|one| one["id"] == resource)?;
    Some(one["status"].as_str().unwrap().to_owned())
}

/// A text of a script's.
pub fn says(text: impl Into<String>) -> Piece {
    Piece::Text(text.into().leak())
}

/// A model that orchestrates, and does its parts as an executor too: what it says follows from what it is asked.
pub fn model() -> ModelServer {
    ModelServer::answering(|seen| {
        let body = seen.json();
        if is_orchestrator(&body) {
            orchestrator(&body)
        } else {
            executor(seen)
        }
    })
}

/// The same model, but executors answer only after the orchestrator has asked twice, so that its second request always
/// finds them busy.
pub fn model_with_busy_executors() -> ModelServer {
    let asked = AtomicUsize::new(0);
    ModelServer::answering(move |seen| {
        let body = seen.json();
        if is_orchestrator(&body) {
            asked.fetch_add(1, Ordering::SeqCst);
            return orchestrator(&body);
        }
        until("the orchestrator asks again", SOON, || {
            (asked.load(Ordering::SeqCst) >= 2).then_some(())
        });
        executor(seen)
    })
}

fn is_orchestrator(body: &Value) -> bool {
    let mut tools = body["tools"].as_array().into_iter().flatten();
    tools.any(|tool| tool["function"]["name"] == "dispatch_task")
}

fn orchestrator(body: &Value) -> Answer {
    let messages = body["messages"].as_array().unwrap();
    // Calls that ran together are answered as they ended.
    let mut results: Vec<(&str, Value)> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| {
            let said = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
            (message["tool_call_id"].as_str().unwrap(), said)
        })
        .collect();
    results.sort_by_key(|(call, _)| *call);
    let results: Vec<Value> = results.into_iter().map(|(_, said)| said).collect();
    let part = |id: &'static str, what: &str, requires: &str| {
        let task = json!({"description": what, "requires": [requires]});
        Piece::Call(id, "dispatch_task", task)
    };
    let look = |id: &'static str, task: &Value| {
        Piece::Call(
            id,
            "task_status",
            json!({"id": task["id"], "wait_seconds": 60}),
        )
    };
    Answer::Says(match &results[..] {
        [] => vec![
            Piece::Text("Plan: search, and write the report."),
            part("c1", "search for papers", "web_search"),
            part("c2", "write the report", "file_ops"),
        ],
        [one, two] => vec![look("c3", one), look("c4", two)],
        [.., one, two] => {
            let text = |task: &Value| task["result"].as_str().unwrap_or("nothing").to_owned();
            vec![says(format!("Both done: {} / {}", text(one), text(two)))]
        }
        _ => vec![Piece::Text("?")],
    })
}

/// What an executor says: what it was asked, and what it was told.
fn executor(seen: &Seen) -> Answer {
    let body = seen.json();
    let messages = body["messages"].as_array().unwrap();
    let user = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "user")
        .unwrap();
    let asked = user["content"].as_str().unwrap_or_default();
    Answer::Says(vec![says(format!("did: {asked}"))])
}

/// A project that has its answers from this model.
pub fn asks(project: Project, model: &ModelServer) -> Project {
    let settings = json!({
        "model": "openai:gpt-4o", "baseUrl": model.url, "hub": {"patienceSeconds": 4},
    });
    project.write("contexture.json", settings.to_string());
    project
}

/// A task that takes the capability `web_search`, and what comes of it.
pub const SEARCH: [&str; 7] = [
    "task",
    "dispatch",
    "search",
    "--requires",
    "web_search",
    "--wait",
    "--json",
];

/// What such a project needs of the environment.
pub const ENV: [(&str, &str); 2] = [("OPENAI_API_KEY", "sk-test"), ("CONTEXTURE_TRUST", "1")];

pub fn with(ctx: Ctx) -> Ctx {
    ENV.iter()
        .fold(ctx, |ctx, (name, value)| ctx.env(name, value))
}
