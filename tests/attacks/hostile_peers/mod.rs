//! Whatever a model, an MCP server or an agent sends: bounded memory, nothing that commands a terminal, no secret in a
//! file, an event or a page, and no end but an ordinary one. As a class: each field of a message takes each kind of value.

mod agent;
mod agent_told;
mod leaks;
mod mcp;
mod model;
mod text;
mod watch;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// How many of the messages are tried: all of them in the long form.
fn many(usual: usize) -> usize {
    match std::env::var_os("CONTEXTURE_HOSTILE") {
        Some(_) => usize::MAX,
        None => usual,
    }
}

/// The command of a peer with a plan.
fn peer(kind: &str, folder: &Path, name: &str, plan: &Value) -> Vec<String> {
    let file = folder.join(format!("{name}.plan.json"));
    std::fs::write(&file, plan.to_string()).unwrap();
    let script = format!(
        "{}/tests/attacks/hostile_peers/peer.py",
        crate::common::ROOT
    );
    vec![
        "python3".to_owned(),
        script,
        kind.to_owned(),
        file.display().to_string(),
    ]
}

/// The pieces of an answer with this result.
fn result(result: &Value) -> Value {
    serde_json::json!([format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{result}}}"
    )])
}

/// Tries them all, several at a time: most of the time goes by in waiting.
fn each<T: Sync>(all: &[T], attempt: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    const AT_ONCE: usize = 6;
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let more = attempt(one);
                    found.lock().unwrap().extend(more);
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[track_caller]
fn none(mut found: Vec<String>) {
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
