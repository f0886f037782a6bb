//! A project, a user and a scripted model in which the commands of a page run.
//!
//! The files that the manual names are there (`chat.json`, `agent.json`, …), and the model that answers is a server of the
//! tests', whichever provider a command names. What runs until it is told to end (`ctx serve`, `ctx worker`) is started
//! beside, and ended with the page.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::Project;
use crate::model_server::{Answer, ModelServer, Piece, Seen};
use crate::small_model;

/// Time limit of a block, in seconds.
const PATIENCE: &str = "120";

pub struct Scene {
    pub project: Project,
    server: ModelServer,
}

impl Scene {
    pub fn new(page: &str) -> Self {
        let server = ModelServer::answering(answer);
        let project = Project::new();
        let scene = Self { project, server };
        scene.user();
        scene.files();
        let prepared = scene.run(prelude(page));
        prepared.unwrap_or_else(|said| panic!("{page}: what tests/docs/scene.rs prepares: {said}"));
        scene
    }

    /// Returns true if a block's requirement is here after all.
    pub fn has(&self, needs: &str) -> bool {
        needs == "a model file" && small_model::weights().is_some()
    }

    /// The user: a model that answers, and a `ctx` that puts aside what does not end.
    fn user(&self) {
        let home = self.project.home();
        std::fs::create_dir_all(home.join(".config/contexture")).unwrap();
        let config = json!({ "model": "openai:scripted", "baseUrl": self.server.url });
        std::fs::write(
            home.join(".config/contexture/contexture.json"),
            config.to_string(),
        )
        .unwrap();
        let bin = home.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let wrapper = WRAPPER.replace("CTX", env!("CARGO_BIN_EXE_ctx"));
        std::fs::write(bin.join("ctx"), wrapper).unwrap();
        std::fs::set_permissions(bin.join("ctx"), PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// The files that the manual names.
    fn files(&self) {
        let project = &self.project;
        let messages = conversation();
        let lines = |values: &[Value]| {
            values
                .iter()
                .map(|value| format!("{value}\n"))
                .collect::<String>()
        };
        project.write("chat.json", json!(messages).to_string());
        project.write("chat.jsonl", lines(&messages));
        let sessions = [
            json!({ "messages": messages }),
            json!({ "messages": messages[..4] }),
        ];
        project.write("sessions.jsonl", lines(&sessions));
        let claude = lines(&claude_code(&messages));
        project.write("session.jsonl", &claude);
        let folder = project.home().join(".claude/projects/…");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("x.jsonl"), &claude).unwrap();
        project.write("task.txt", "Say what an append-only log is.");
        project.write(
            "task.json",
            json!({ "taskId": "t-1", "taskDescription": "Find papers" }).to_string(),
        );
        project.write(
            "resources.json",
            json!([{ "id": "writer", "capabilities": ["file_ops"] }]).to_string(),
        );
        // What `ctx compose` and `ctx inject` read; the manual calls both so.
        let compose = json!({ "mode": "agent", "messages": [], "agent": { "id": "a", "name": "Ada", "role": "Reviewer" } });
        project.write("compose.json", compose.to_string());
        let meta = json!({ "name": "ada", "archetype": "employee", "backendType": "claude-code" });
        project.write("agent.json", meta.to_string());
        if let Some(weights) = small_model::weights() {
            std::fs::create_dir_all(project.home().join("Downloads")).unwrap();
            for place in [project.path().to_owned(), project.home().join("Downloads")] {
                std::os::unix::fs::symlink(&weights, place.join("qwen3-4b-q4.gguf")).unwrap();
            }
        }
    }

    /// Runs a script in the project. On failure, the command and what was said.
    pub fn run(&self, commands: &str) -> Result<(), String> {
        let home = self.project.home();
        let path = std::env::var("PATH").unwrap();
        let script = format!(
            "trap 'echo \"failed: $BASH_COMMAND\" >&2' ERR\nset -eE -o pipefail\n{}",
            self.concrete(commands)
        );
        let output = Command::new("timeout")
            .args([PATIENCE, "bash", "-c", &script])
            .current_dir(self.project.path())
            .env_clear()
            .env("PATH", format!("{}:{path}", home.join("bin").display()))
            .env("HOME", home)
            .env("OPENAI_API_KEY", "sk-of-the-tests-1234567890")
            .env("ANTHROPIC_API_KEY", "sk-ant-of-the-tests-1234567890")
            // Nothing is fetched.
            .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
            .env("PIP_RETRIES", "0")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if output.status.success() {
            return Ok(());
        }
        let mut said = format!("{}\n", output.status);
        for stream in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(stream);
            let last: Vec<&str> = text.lines().rev().take(30).collect();
            last.iter()
                .rev()
                .for_each(|line| writeln!(said, "{line}").unwrap());
        }
        Err(said)
    }

    /// The commands with something in the place of what a reader puts in.
    fn concrete(&self, commands: &str) -> String {
        commands
            .replace("=…", "=a-key-of-the-tests")
            .replace("--base-url URL", &format!("--base-url {}", self.server.url))
            .replace("http://127.0.0.1:8080/v1", &self.server.url)
            .replace("--backend goose", "--backend native --permissions allow")
            .replace("--model SPEC", "--model openai:scripted")
    }

    /// The processes that were put aside.
    fn aside(&self) -> PathBuf {
        self.project.home().join("aside")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for pid in std::fs::read_to_string(self.aside())
            .unwrap_or_default()
            .lines()
        {
            // Each leads a group of its own.
            let _ = Command::new("kill")
                .args(["--", &format!("-{pid}")])
                .status();
        }
    }
}

/// Puts aside what does not end, and waits until a daemon is there.
const WRAPPER: &str = r#"#!/bin/bash
case "$1 $2" in
  "serve link") ;;
  "serve "*|"worker "*|"events --follow"*)
    listen=; [ "$1" = serve ] && listen="--listen 127.0.0.1:0"
    setsid "CTX" "$@" $listen >>"$HOME/aside.log" 2>&1 </dev/null &
    echo $! >>"$HOME/aside"
    [ "$1" = serve ] || exit 0
    for _ in $(seq 600); do
      "CTX" doctor --json 2>/dev/null | grep -q '(process' && exit 0
      sleep 0.1
    done
    cat "$HOME/aside.log" >&2
    exit 1 ;;
esac
exec "CTX" "$@"
"#;

/// The commands that prepare what a page takes for granted.
fn prelude(page: &str) -> &'static str {
    match page {
        "README.md" => "cp compose.json agent.json",
        "docs/demo.md" => {
            "ctx sessions import demo-20261115-211433 chat.jsonl\n\
             ctx sessions fork demo-20261115-211433 demo-20261115-211433-clock"
        }
        // So that there is a compaction.
        "docs/sessions.md" => r#"echo '{"context":{"maxInputTokens":1500}}' > contexture.json"#,
        "docs/skills.md" => {
            "mkdir -p .agents/skills/release\n\
             printf -- '---\\nname: release\\ndescription: Cuts a release.\\n---\\n1. Run the tests.\\n' > .agents/skills/release/SKILL.md\n\
             ctx trust --yes"
        }
        // Workers that bring what they can do.
        "docs/tasks.md" => {
            "ctx serve\n\
             ctx worker --id research --capability web_search:8 --command cat\n\
             ctx worker --id writer --capability file_ops --command cat"
        }
        _ => "true",
    }
}

/// The model: it shows a canvas where it can, and says that it is done.
fn answer(request: &Seen) -> Answer {
    let body = request.json();
    let offered = body["tools"].as_array().into_iter().flatten();
    let names = offered.filter_map(|tool| tool["function"]["name"].as_str());
    let canvas = names
        .map(str::to_owned)
        .find(|name| name.ends_with("canvas_update"));
    let last = body["messages"].as_array().and_then(|all| all.last());
    match canvas {
        Some(name) if last.is_some_and(|last| last["role"] == "user") => {
            let name: &'static str = name.leak();
            Answer::Says(vec![Piece::Call(
                "call-1",
                name,
                json!({ "html": "<h1>Orders</h1>" }),
            )])
        }
        _ => Answer::Says(vec![Piece::Text("Done.")]),
    }
}

/// A conversation of twenty requests. The seventh message has the id that the manual uses.
fn conversation() -> Vec<Value> {
    let text = |n: usize| {
        format!(
            "{n}: {}",
            "what was said of the log and its entries ".repeat(6)
        )
    };
    let message = |n: usize| {
        let role = ["user", "assistant"][n % 2];
        let id = if n == 6 {
            "3f2a91".to_owned()
        } else {
            format!("m{n:02}")
        };
        json!({ "id": id, "role": role, "content": text(n) })
    };
    (0..40).map(message).collect()
}

/// The same as a session file of Claude Code.
fn claude_code(messages: &[Value]) -> Vec<Value> {
    let line = |(n, message): (usize, &Value)| {
        let before = n
            .checked_sub(1)
            .map(|before| messages[before]["id"].clone());
        json!({
            "type": message["role"], "uuid": message["id"], "parentUuid": before, "sessionId": "x", "cwd": "/x",
            "version": "2.0.1", "isSidechain": false, "userType": "external",
            "timestamp": format!("2026-11-15T21:{n:02}:00.000Z"),
            "message": { "role": message["role"], "content": message["content"] },
        })
    };
    messages.iter().enumerate().map(line).collect()
}
