//! F7: nothing that an MCP server started is left after `kill -9` of `ctx`. The rest of F7 is in
//! `crates/contexture-tools/tests/mcp/f7_servers.rs`.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::faults::ctx::{command, run, stderr};

/// Never answers, ignores the end of its input and every polite signal, and has one child in its own
/// group and another in a session of its own.
const STUBBORN: &str = "trap '' TERM HUP INT PIPE
sleep 600 & echo $! > child
setsid sh -c 'echo $$ > daemon; exec sleep 600' &
echo $$ > server
while :; do sleep 1; done";

#[test]
fn nothing_is_left_behind_after_kill_9() {
    let root = tempfile::tempdir().unwrap();
    let servers = json!({ "mcpServers": { "s": { "command": "sh", "args": ["-c", STUBBORN] } } });
    std::fs::write(root.path().join("contexture.json"), servers.to_string()).unwrap();
    let mut ctx = command(root.path(), &["mcp", "tools"]);
    ctx.env("CONTEXTURE_TRUST", "1")
        .env("XDG_CONFIG_HOME", root.path());
    let mut ctx = ctx.stdin(Stdio::null()).spawn().unwrap();
    let names = ["server", "child", "daemon"];
    until("started", || {
        names.iter().all(|name| pid(root.path(), name).is_some())
    });
    let pids: Vec<i32> = names
        .iter()
        .filter_map(|name| pid(root.path(), name))
        .collect();
    assert!(pids.iter().all(|pid| runs(*pid)));
    ctx.kill().unwrap();
    ctx.wait().unwrap();
    for pid in pids {
        until("ended", || !runs(pid));
    }
}

#[test]
fn a_server_that_hangs_delays_the_list_for_a_bounded_time() {
    let root = tempfile::tempdir().unwrap();
    let servers = json!({ "mcpServers": { "s": { "command": "sleep", "args": ["600"] } } });
    std::fs::write(root.path().join("contexture.json"), servers.to_string()).unwrap();
    let begun = Instant::now();
    let mut ctx = command(root.path(), &["mcp", "tools", "--json"]);
    ctx.env("CONTEXTURE_TRUST", "1")
        .env("XDG_CONFIG_HOME", root.path());
    let output = ctx.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("not answered"),
        "{}",
        stderr(&output)
    );
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_folder_that_is_not_trusted_starts_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mark = root.path().join("started");
    let servers = json!({ "mcpServers": { "s": { "command": "touch", "args": [mark] } } });
    std::fs::write(root.path().join("contexture.json"), servers.to_string()).unwrap();
    let output = run(root.path(), &["mcp", "tools"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("ctx trust"), "{}", stderr(&output));
    let output = run(root.path(), &["mcp", "list", "--json"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("untrusted"));
    assert!(!mark.exists());
}

fn pid(folder: &Path, name: &str) -> Option<i32> {
    std::fs::read_to_string(folder.join(name))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// One that only waits to be collected does not run.
fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    !matches!(behind.split_whitespace().next(), None | Some("Z" | "X"))
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
