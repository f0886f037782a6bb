//! The daemon's log, and the model of its native agents.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::common::Project;
use crate::model_server::{Answer, ModelServer, Piece};

struct Served {
    project: Project,
    server: ModelServer,
    child: Child,
}

impl Served {
    /// A daemon whose log is in a file, for a user whose models answer from a script.
    fn start() -> Self {
        let project = Project::new();
        let server = ModelServer::answering(|_| Answer::Says(vec![Piece::Text("Well.")]));
        let config = project.home().join(".config/contexture");
        std::fs::create_dir_all(&config).unwrap();
        let text = json!({"model": "openai:of-the-user", "baseUrl": server.url});
        std::fs::write(config.join("contexture.json"), text.to_string()).unwrap();
        let log = File::create(project.path().join("serve.log")).unwrap();
        let args = ["serve", "--listen", "127.0.0.1:0", "--json"];
        let args = [&args[..], &["--model", "openai:of-the-daemon"]].concat();
        let mut child = project
            .ctx(&args)
            .env("OPENAI_API_KEY", "sk-of-the-tests-1234567890")
            .command()
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        Self {
            project,
            server,
            child,
        }
    }

    /// The model of the last request.
    fn asked(&self) -> String {
        let seen = self.server.seen();
        let body: Value = serde_json::from_slice(&seen.last().unwrap().body).unwrap();
        body["model"].as_str().unwrap().to_owned()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.project.path().join("serve.log")).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A failed agent is a warning, what programs ask every two seconds is no line, and a native agent has the model that
/// it was made with, or the daemon's. After `kill -9` the list says how things are.
#[test]
fn the_log_says_what_matters_and_native_agents_have_their_model() {
    let mut served = Served::start();
    let ctx = |args: &[&str]| served.project.ctx(args);
    ctx(&["agent", "create", "own", "--model", "openai:its-own"]).success();
    ctx(&["agent", "create", "plain"]).success();
    ctx(&[
        "agent",
        "create",
        "broken",
        "--backend",
        "x",
        "--command",
        "false",
    ])
    .success();
    for (name, model) in [("own", "its-own"), ("plain", "of-the-daemon")] {
        ctx(&["agent", "start", name]).success();
        ctx(&["agent", "prompt", name, "hi"]).success();
        assert_eq!(served.asked(), model);
    }
    let shown = ctx(&["agent", "show", "own", "--json"]).json();
    assert_eq!(shown["model"], "openai:its-own");
    ctx(&["agent", "start", "broken"]).failure(1, "false");
    ctx(&[
        "agent",
        "create",
        "other",
        "--backend",
        "codex",
        "--model",
        "x",
    ])
    .failure(3, "chooses its own");

    let log = served.log();
    let failed = log
        .lines()
        .find(|line| line.contains("state=\"failed\""))
        .unwrap();
    assert!(
        failed.contains(" WARN ") && failed.contains("agent=\"broken\""),
        "{failed}"
    );
    assert!(log.contains("method=\"agent.start\""), "{log}");
    for noise in ["internal.tools", "tracing-subscriber", "tracing_subscriber"] {
        assert!(!log.contains(noise), "{noise} in {log}");
    }

    served.child.kill().unwrap();
    served.child.wait().unwrap();
    let all = served.project.ctx(&["agent", "list", "--json"]).json();
    let state = |name: &str| {
        let mut agents = all.as_array().unwrap().iter();
        agents.find(|agent| agent["name"] == name).unwrap()["state"].clone()
    };
    assert_eq!(
        [state("own"), state("plain"), state("broken")],
        ["stopped", "stopped", "failed"]
    );
}
