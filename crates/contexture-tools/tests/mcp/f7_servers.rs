//! F7: a server that hangs at start delays nothing, one that dies is started again, and nothing stays
//! behind. What happens when we are killed is tested with `ctx`, in `tests/faults/f7_servers.rs`.

use std::time::{Duration, Instant};

use contexture_tools::mcp::State;
use serde_json::json;

use crate::mcp::common::*;

#[tokio::test]
async fn one_that_hangs_delays_nobody() {
    let root = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let servers = start(
        &json!({ "slow": hostile("hang"), "h": hostile("plain") }),
        options(root.path()),
    );
    assert!(begun.elapsed() < Duration::from_secs(5), "start waits");
    until("the other is ready", || {
        matches!(state(&servers, "h"), State::Ready { .. })
    })
    .await;
    assert_eq!(state(&servers, "slow"), State::Starting);
    assert!(!servers.settled(Duration::from_millis(50)).await);
    assert!(names(&servers).contains(&"h:do".to_owned()));
    assert!(!call(&servers, "h:do", json!({})).await.failed);
}

#[tokio::test]
async fn tools_register_when_their_server_comes() {
    let root = tempfile::tempdir().unwrap();
    let door = root.path().join("door");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; exec {} plain",
        door.display(),
        hostile_path().display()
    );
    let late = json!({ "command": "sh", "args": ["-c", script] });
    let servers = start(&json!({ "late": late }), options(root.path()));
    assert!(!servers.settled(Duration::from_millis(300)).await);
    assert!(names(&servers).is_empty());
    std::fs::write(&door, "").unwrap();
    assert!(servers.settled(LONG).await);
    assert!(names(&servers).contains(&"late:do".to_owned()));
}

#[tokio::test]
async fn a_crash_loop_is_bounded_and_each_pause_longer() {
    let root = tempfile::tempdir().unwrap();
    let starts = root.path().join("starts");
    let script = format!("date +%s%N >> {}; exit 1", starts.display());
    let mut options = options(root.path());
    options.pause = Duration::from_millis(100);
    options.restarts = 3;
    let servers = start(
        &json!({ "h": { "command": "sh", "args": ["-c", script] } }),
        options,
    );
    until("failed", || {
        matches!(state(&servers, "h"), State::Failed { .. })
    })
    .await;
    let times: Vec<u128> = std::fs::read_to_string(&starts)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(times.len(), 4, "one start and three more");
    let pauses: Vec<u128> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / 1_000_000)
        .collect();
    assert!(
        pauses[0] >= 100 && pauses[1] >= 200 && pauses[2] >= 400,
        "{pauses:?}"
    );
}

/// One that does not leave when its input ends, ignores requests to end, and has a child in a session of
/// its own.
fn stubborn(folder: &std::path::Path) -> serde_json::Value {
    let script = format!(
        "trap '' TERM HUP INT; cd {}; setsid sh -c 'echo $$ > daemon; exec sleep 600' & echo $$ > server; while :; do sleep 1; done",
        folder.display()
    );
    json!({ "command": "sh", "args": ["-c", script] })
}

fn pid(folder: &std::path::Path, name: &str) -> Option<i32> {
    std::fs::read_to_string(folder.join(name))
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[tokio::test]
async fn dropping_ends_also_those_that_do_not_want_to() {
    let root = tempfile::tempdir().unwrap();
    let servers = start(&json!({ "s": stubborn(root.path()) }), options(root.path()));
    let both = || Some((pid(root.path(), "server")?, pid(root.path(), "daemon")?));
    until("started", || both().is_some()).await;
    let (server, daemon) = both().unwrap();
    assert!(runs(server) && runs(daemon));
    drop(servers);
    until("the server ends", || !runs(server)).await;
    until("what it left behind ends", || !runs(daemon)).await;
}

#[tokio::test]
async fn stopping_is_bounded_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let servers = start(
        &json!({ "s": stubborn(root.path()), "h": hostile("plain") }),
        options(root.path()),
    );
    until("ready", || {
        matches!(state(&servers, "h"), State::Ready { .. })
    })
    .await;
    until("started", || pid(root.path(), "daemon").is_some()).await;
    let said = text(&call(&servers, "h:do", json!({})).await);
    let good: i32 = said.strip_prefix("pid ").unwrap().parse().unwrap();
    let begun = Instant::now();
    servers.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(30));
    for pid in [
        good,
        pid(root.path(), "server").unwrap(),
        pid(root.path(), "daemon").unwrap(),
    ] {
        until("it ends", || !runs(pid)).await;
    }
}

#[tokio::test]
async fn a_supervisor_that_is_killed_takes_its_server_along() {
    let (servers, _root) = ready("plain").await;
    let said = text(&call(&servers, "h:do", json!({})).await);
    let server: i32 = said.strip_prefix("pid ").unwrap().parse().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    let parent = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(1)
        .unwrap();
    let parent = rustix::process::Pid::from_raw(parent.parse().unwrap()).unwrap();
    rustix::process::kill_process(parent, rustix::process::Signal::KILL).unwrap();
    until("the server ends", || !runs(server)).await;
    until("it is started again", || {
        matches!(state(&servers, "h"), State::Restarting { .. })
    })
    .await;
    until("ready", || {
        matches!(state(&servers, "h"), State::Ready { .. })
    })
    .await;
}
