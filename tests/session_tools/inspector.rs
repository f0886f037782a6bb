//! The inspector of those who made the protocol: `./test` installs it from `tests/counterparts`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::session_tools::daemon::Daemon;

/// Where it is installed, if it is.
fn inspector() -> Option<PathBuf> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts");
    let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, PathBuf::from);
    let script = folder.join("node_modules/@modelcontextprotocol/inspector-cli/build/cli.js");
    if !script.is_file() {
        eprintln!("skipped: the MCP inspector is not installed; ./test does that");
        return None;
    }
    Some(script)
}

// needs: mcp-servers
#[test]
fn the_inspector_lists_and_calls() {
    let Some(script) = inspector() else { return };
    let daemon = Daemon::start();
    let token = daemon.fake.token("bot", "s");
    let ask = |args: &[&str]| -> Value {
        let done = Command::new("node")
            .arg(&script)
            .args(["--cli", "-e"])
            .arg(format!("CONTEXTURE_SESSION_TOKEN={token}"))
            .arg("-e")
            .arg(format!("CONTEXTURE_URL={}", daemon.url))
            .arg(env!("CARGO_BIN_EXE_ctx"))
            .args(["mcp", "serve"])
            .args(args)
            .current_dir(daemon.project.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{done:?}");
        eprintln!("inspector {args:?}: {text}");
        serde_json::from_str(&text).unwrap()
    };
    let listed = ask(&["--method", "tools/list"]);
    let names: Vec<&Value> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, [&json!("canvas_update"), &json!("canvas_clear")]);
    let page = [
        "--method",
        "tools/call",
        "--tool-name",
        "canvas_update",
        "--tool-arg",
        "html=<p>hello</p>",
    ];
    let called = ask(&page);
    assert_eq!(called["structuredContent"], json!({"bytes": 12}));
    let called = daemon.fake.called.lock().unwrap();
    assert_eq!(called[0]["arguments"], json!({"html": "<p>hello</p>"}));
}
