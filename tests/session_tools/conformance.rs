//! The conformance suite of those who made the protocol. It speaks HTTP, so a bridge stands between.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::session_tools::daemon::Daemon;

/// What concerns a server that has tools and nothing else.
const SCENARIOS: [&str; 6] = [
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "json-schema-2020-12",
];

// needs: mcp-servers
#[test]
fn the_conformance_suite_finds_nothing() {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts");
    let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, PathBuf::from);
    let node = folder.join("node_modules/.bin/node");
    let suite = folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let bridge = folder.join("bridge.mjs");
    if !(node.is_file() && suite.is_file() && bridge.is_file()) {
        eprintln!("skipped: the MCP conformance suite is not installed; ./test does that");
        return;
    }
    let daemon = Daemon::start();
    // The tools that the scenarios call.
    let tool = |name: &str, description: &str, parameters: serde_json::Value| json!({"name": name, "description": description, "parameters": parameters, "rpcMethod": "x", "scope": "all"});
    let none = || json!({"type": "object", "properties": {}});
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": false,
    });
    daemon.fake.tools.lock().unwrap().extend([
        tool("test_simple_text", "Says something.", none()),
        tool("test_error_handling", "Always fails.", none()),
        tool(
            "json_schema_2020_12_tool",
            "Tool with JSON Schema 2020-12 features",
            schema,
        ),
    ]);
    let mut ctx = daemon.ctx("bot", &[]).command();
    ctx.stdin(Stdio::null());
    let mut bridging = Command::new(&node);
    bridging
        .arg(&bridge)
        .arg(env!("CARGO_BIN_EXE_ctx"))
        .args(["mcp", "serve"])
        .envs(
            ctx.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(daemon.project.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut bridge = bridging.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(bridge.stdout.take().unwrap())
        .read_line(&mut port)
        .unwrap();
    let url = format!("http://127.0.0.1:{}/mcp", port.trim());
    let mut failed = Vec::new();
    for scenario in SCENARIOS {
        let run = Command::new(&node)
            .arg(&suite)
            .args(["server", "--url", &url, "--scenario", scenario])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        eprintln!("{text}");
        if !run.status.success() {
            failed.push(scenario);
        }
    }
    // It ends with its input, and its sessions with it.
    drop(bridge.stdin.take());
    bridge.wait().unwrap();
    assert!(failed.is_empty(), "{failed:?}");
}
