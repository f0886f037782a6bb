//! An agent that sends what nobody expects, and the daemon that listens to it.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::text::{mutations, sample};
use super::watch::{MOST_KIB, peak, resident};
use super::{many, peer};
use crate::fleet::scene::Daemon;

pub const KEY: &str = "sk-of-the-user-0123456789abcdef";

/// A daemon with an agent `bot` that does what a plan says.
pub struct Scene {
    pub daemon: Daemon,
    pub plans: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Self {
        let daemon = Daemon::with(crate::common::Project::new(), &[("OPENAI_API_KEY", KEY)]);
        Self {
            daemon,
            plans: tempfile::tempdir().unwrap(),
        }
    }

    /// Where the agent writes its token.
    pub fn token_file(&self) -> PathBuf {
        self.plans.path().join("token")
    }

    pub fn begin(&self, mut plan: Value) {
        plan["tokenFile"] = json!(self.token_file());
        let command = peer("acp", self.plans.path(), "bot", &plan);
        let mut args = vec![
            "agent",
            "create",
            "bot",
            "--backend",
            "scripted",
            "--archetype",
            "service",
            "--command",
        ];
        args.extend(command.iter().map(String::as_str));
        self.daemon.ctx(&args).success();
        let _ = self.daemon.ctx(&["agent", "start", "bot"]).run();
    }

    pub fn prompt(&self, text: &str) -> String {
        let output = self
            .daemon
            .ctx(&["agent", "prompt", "bot", text, "--json"])
            .run();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// The daemon's process.
    fn pid(&self) -> u32 {
        let folder = self.daemon.project.path().canonicalize().unwrap();
        let serves = |pid: &u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let here =
                std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder);
            here && words.split(|&byte| byte == 0).nth(1) == Some(b"serve")
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.into_iter().find(serves).expect("the daemon runs")
    }

    /// Follows the events from now on.
    pub fn events(&self) -> std::thread::JoinHandle<String> {
        let mut stream = self.daemon.connect();
        write!(
            stream,
            "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
            self.daemon.host(),
            self.daemon.secret()
        )
        .unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all);
            String::from_utf8_lossy(&all).into_owned()
        })
    }
}

pub fn update(update: &Value) -> Value {
    json!(json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "$SESSION", "update": update}}).to_string())
}

pub fn said(kind: &str, text: &str) -> Value {
    update(&json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}))
}

/// The same text, in every field of everything that an agent sends of its own accord.
pub fn everywhere(text: &str) -> Vec<Value> {
    let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": text, "title": text, "kind": text, "status": "pending",
                      "rawInput": {text: {"a": [text]}}, "content": content, "locations": [{"path": text}]});
    let done = json!({"sessionUpdate": "tool_call_update", "toolCallId": text, "status": "completed", "rawOutput": {text: text}, "content": content});
    let ask = json!({"jsonrpc": "2.0", "id": "q1", "method": "session/request_permission", "params": {"sessionId": "$SESSION",
        "toolCall": {"toolCallId": text, "title": text, "kind": text, "rawInput": {text: text}},
        "options": [{"optionId": text, "name": text, "kind": "allow_once"}, {"optionId": "no", "name": text, "kind": text}]}});
    let request = |id: &str, method: &str, params: Value| {
        json!(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
    };
    vec![
        said("agent_message_chunk", text),
        said("agent_thought_chunk", text),
        said("user_message_chunk", text),
        update(&call),
        update(&done),
        update(
            &json!({"sessionUpdate": "plan", "entries": [{"content": text, "priority": text, "status": text, text: 1}]}),
        ),
        update(
            &json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": text, "description": text, "input": {"hint": text}}]}),
        ),
        update(&json!({"sessionUpdate": "current_mode_update", "currentModeId": text})),
        update(&json!({"sessionUpdate": text, text: text})),
        json!(ask.to_string()),
        request(
            "q2",
            "fs/read_text_file",
            json!({"sessionId": "$SESSION", "path": text}),
        ),
        request(
            "q3",
            "terminal/create",
            json!({"sessionId": "$SESSION", "command": text, "args": [text], "cwd": text}),
        ),
        request("q4", text, json!({text: text})),
        json!(json!({"jsonrpc": "2.0", "method": text, "params": {text: text}}).to_string()),
        json!(text),
    ]
}

pub fn answered(stop: &str) -> Value {
    json!([format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}}",
        json!({"stopReason": stop})
    )])
}

pub fn refused(text: &str) -> Value {
    json!([format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{}}}",
        json!({"code": -32000, "message": text, "data": {text: text}})
    )])
}

/// 50.
#[test]
fn what_an_agent_sends_is_held_in_bounded_memory_and_let_go() {
    let scene = Scene::new();
    let long = json!([
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"$SESSION\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"",
        ["x", 4 << 20],
        "\"}}}}"
    ]);
    let tiny = json!([
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"$SESSION\",\"update\":{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c\",\"title\":\"t\",\"rawInput\":[",
        ["{},", 2 << 20],
        "{}]}}}"
    ]);
    let few = json!([
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"$SESSION\",\"update\":{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c\",\"title\":\"t\",\"rawInput\":[",
        ["{},", 100_000],
        "{}]}}}"
    ]);
    let ask = json!([
        "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"$SESSION\",\"toolCall\":{\"toolCallId\":\"c\"},\"options\":[",
        [
            "{\"optionId\":\"a\",\"name\":\"a\",\"kind\":\"allow_once\"},",
            50_000
        ],
        "{}]}}"
    ]);
    scene.begin(json!({"prompts": {
        "say": {"lines": [said("agent_message_chunk", "hi")]},
        "long": {"lines": vec![long; 120]},
        "few": {"lines": vec![few; 60]},
        "ask": {"lines": vec![ask; 20]},
        "tiny": {"lines": vec![tiny; 3]},
    }}));
    scene.prompt("say");
    let pid = scene.pid();
    let (usual, rested) = (peak(pid), resident(pid));
    let mut found = Vec::new();
    for text in ["long", "few", "ask", "tiny"] {
        scene.prompt(text);
        let over = peak(pid).saturating_sub(usual);
        println!("hostile peers: agent, {text}: {} MiB", over >> 10);
        found.extend((over >= MOST_KIB).then(|| format!("{text} took {} MiB", over >> 10)));
    }
    let _ = scene.daemon.ctx(&["agent", "stop", "bot"]).run();
    let kept = resident(pid).saturating_sub(rested);
    println!(
        "hostile peers: agent, kept after it stopped: {} MiB",
        kept >> 10
    );
    found.extend((kept >= MOST_KIB / 2).then(|| format!("{} MiB are kept", kept >> 10)));
    super::none(found);
    assert!(!scene.daemon.ctx(&["agent", "list"]).success().is_empty());
}

#[test]
fn a_value_of_another_type_ends_nothing_badly() {
    let scene = Scene::new();
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": "read", "status": "completed", "rawInput": {"a": 1},
                      "content": [{"type": "content", "content": {"type": "text", "text": "x"}}], "locations": [{"path": "/x", "line": 1}]});
    let whole = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "own", "update": call}});
    let plan = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "own", "update":
        {"sessionUpdate": "plan", "entries": [{"content": "c", "priority": "high", "status": "pending"}]}}});
    let ask = json!({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": {"sessionId": "own",
        "toolCall": {"toolCallId": "c"}, "options": [{"optionId": "a", "name": "a", "kind": "allow_once"}]}});
    let lines: Vec<Value> = [whole, plan, ask]
        .iter()
        .flat_map(mutations)
        .map(|line| json!(line.to_string().replace("\"own\"", "\"$SESSION\"")))
        .collect();
    let lines = sample(lines, many(150));
    let (many, say) = (
        lines.len(),
        json!({"lines": [said("agent_message_chunk", "hi")]}),
    );
    scene.begin(json!({"prompts": {"all": {"lines": lines}, "say": say}}));
    scene.prompt("all");
    println!("hostile peers: agent, {many} messages with a value of another type");
    // It listens on, or has ended the agent; it has not ended itself.
    let state = scene.daemon.show("bot")["state"].clone();
    assert!(state.is_string(), "{state}");
    let _ = scene.daemon.ctx(&["agent", "restart", "bot"]).run();
    assert!(scene.prompt("say").contains("hi"));
}
