//! The whole way with agents that others wrote, and with our own: `ctx serve` starts it, it calls a tool
//! of `ctx mcp serve`, the canvas changes, and at the stop its token ends. The model says what it is told.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Project, ROOT};
use crate::fleet::scene::{Daemon, processes};
use crate::model_server::{self, ModelServer, Piece};

/// An installed program of theirs, where there is one for this machine.
fn program(path: &str) -> Option<PathBuf> {
    let folder = Path::new(ROOT).join("target/counterparts");
    let program = folder.join("node_modules").join(path);
    if folder.join("stamp").is_file() && program.is_file() {
        return program.canonicalize().ok();
    }
    eprintln!("skipped: {path} is not installed; ./test does that, on Linux for x64");
    None
}

/// A model that shows a page, and then says so.
fn model(tool: &'static str) -> ModelServer {
    ModelServer::answering(move |seen| {
        let said = |pieces: &[Piece]| model_server::Answer::Says(pieces.to_vec());
        if !seen.path.ends_with("/chat/completions") {
            let list = json!({"object": "list", "data": [{"id": "scripted-1", "object": "model"}]});
            let kind = ("content-type", "application/json".to_owned());
            return model_server::Answer::Status(200, vec![kind], list.to_string());
        }
        let body = seen.json();
        let tools = body["tools"].as_array().into_iter().flatten();
        let offered = tools.into_iter().any(|one| one["function"]["name"] == tool);
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        if last["role"] == "tool" {
            said(&[Piece::Text("It is on the canvas.")])
        } else if offered {
            let page = json!({"html": "<h1>Shown</h1>", "title": "A page"});
            said(&[Piece::Call("call_1", tool, page)])
        } else {
            // A title, or whatever else they ask beside the turn.
            said(&[Piece::Text("A title")])
        }
    })
}

/// What each of them is put through.
fn goes_through_it(daemon: &Daemon, server: &ModelServer, create: &[&str]) {
    let mut args = vec!["agent", "create", "bot", "--archetype", "service"];
    args.extend(create);
    daemon.ctx(&args).success();
    let agent = daemon.ctx(&["agent", "start", "bot", "--json"]).json();
    let said = daemon.prompt("bot", "Show a page on your canvas.");
    assert!(said.contains("It is on the canvas."), "{said}");
    assert_eq!(
        daemon.ctx(&["canvas", "show", "bot"]).success(),
        "<h1>Shown</h1>"
    );
    let audit = daemon.logged("tool:called", 1);
    assert_eq!(
        (&audit[0]["agent"], &audit[0]["success"]),
        (&json!("bot"), &json!(true))
    );
    // It was told who it is, by whatever way it takes.
    let told = server.seen().into_iter().filter(|seen| {
        let text = String::from_utf8_lossy(&seen.body).into_owned();
        text.contains("You are **bot**")
    });
    assert!(told.count() > 0, "the model was not told");
    // What it said and did is in our log, whole.
    let session = agent["sessionId"].as_str().unwrap();
    let entries = daemon.project.entries(session);
    let messages: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "message")
        .map(|entry| &entry["payload"]["message"])
        .collect();
    assert_eq!(messages[0]["content"], "Show a page on your canvas.");
    assert!(
        messages
            .iter()
            .any(|message| message["tool_calls"].is_array())
    );
    assert!(messages.iter().any(|message| message["role"] == "tool"));
    daemon.ctx(&["inspect", session]).success();
    daemon.ctx(&["agent", "stop", "bot"]).success();
    assert_eq!(
        daemon.logged("session:tokens-revoked", 1)[0]["agent"],
        "bot"
    );
    let folder = daemon.project.path().join(".contexture/workspaces/bot");
    assert_eq!(processes(&folder.display().to_string()), Vec::<i64>::new());
}

fn daemon(server: &ModelServer, env: &[(&str, &str)]) -> Daemon {
    let project = Project::new();
    let home = project.path().join(".home");
    let home = home.display().to_string();
    let url = server.url.as_str();
    let mut all = vec![
        ("HOME", home.as_str()),
        ("OPENAI_API_KEY", "not-a-key"),
        ("OPENAI_HOST", url.trim_end_matches("/v1")),
        ("OPENAI_BASE_URL", url),
    ];
    all.extend(env);
    std::fs::create_dir_all(&home).unwrap();
    Daemon::with(project, &all)
}

// needs: acp-agents
#[test]
fn goose() {
    let Some(goose) = program("@aaif/goose-binary-linux-x64/bin/goose") else {
        return;
    };
    let server = model("contexture__canvas_update");
    let env = [
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "scripted-1"),
        ("GOOSE_DISABLE_KEYRING", "1"),
        ("GOOSE_MODE", "auto"),
    ];
    let daemon = daemon(&server, &env);
    let goose = goose.display().to_string();
    let create = ["--backend", "goose", "--command", &goose, "acp"];
    goes_through_it(&daemon, &server, &create);
}

// needs: acp-agents
#[test]
fn opencode() {
    let Some(opencode) = program("opencode-linux-x64/bin/opencode") else {
        return;
    };
    let server = model("contexture_canvas_update");
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": server.url, "apiKey": "not-a-key"},
        "models": {"scripted-1": {"name": "Scripted"}},
    });
    let config = json!({
        "provider": {"scripted": provider},
        "model": "scripted/scripted-1",
        "small_model": "scripted/scripted-1",
        "autoupdate": false,
        "share": "disabled",
    });
    let env = [
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_CONFIG_CONTENT", &config.to_string()),
    ];
    let daemon = daemon(&server, &env);
    let opencode = opencode.display().to_string();
    let create = ["--backend", "opencode", "--command", &opencode, "acp"];
    goes_through_it(&daemon, &server, &create);
}

/// Our own agent comes in by the same door.
#[test]
fn native() {
    let server = model("contexture__canvas_update");
    let daemon = daemon(&server, &[]);
    let us = env!("CARGO_BIN_EXE_ctx");
    let create = [
        "--backend",
        "native",
        "--permissions",
        "allow",
        "--command",
        us,
        "acp",
        "--model",
        "openai:gpt-4o",
        "--base-url",
        &server.url,
    ];
    goes_through_it(&daemon, &server, &create);
}
