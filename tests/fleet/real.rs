//! The whole way with agents that others wrote, and with our own: `ctx serve` starts it from its package, it calls a tool
//! of `ctx mcp serve`, the canvas changes, it asks before it runs a command, and at the stop nothing of it is left. The
//! model says what it is told.
//!
//! `./test` installs those of `tests/counterparts`, `./test agents` the large ones of `tests/counterparts/agents`, too.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Project, ROOT};
use crate::fleet::any_model::{Asked, beside};
use crate::fleet::scene::{Daemon, children, processes};
use crate::model_server::{Answer, ModelServer, Piece};

const SHOW: &str = "Show a page on your canvas.";
const REMOVE: &str = "Remove the folder named important.";
const COMMAND: &str = "rm -rf important";

/// The backend and the tools of an agent under test.
struct Way {
    backend: &'static str,
    /// The canvas's tool as it calls that; none where it has no tools of ours.
    canvas: Option<&'static str>,
    /// Its own tool that runs a command, and what this takes.
    shell: (&'static str, Value),
}

/// A model that does what it is asked, if it has the tools.
fn model(way: &Way) -> ModelServer {
    let (canvas, (shell, arguments)) = (way.canvas, way.shell.clone());
    let count = std::sync::atomic::AtomicUsize::new(0);
    let ids: Vec<&'static str> = vec!["call_a", "call_b", "call_c", "call_d", "call_e", "call_f"];
    ModelServer::answering(move |seen| {
        let Some(asked) = Asked::read(seen) else {
            return beside(seen);
        };
        let has = |name: &str| asked.tools.iter().any(|tool| tool == name);
        let next = || ids[count.fetch_add(1, std::sync::atomic::Ordering::Relaxed)];
        let said = match canvas {
            _ if asked.brings_result => Piece::Text("It is done."),
            Some(canvas) if asked.words.contains(SHOW) && has(canvas) => {
                let page = json!({"html": "<h1>Shown</h1>", "title": "A page"});
                Piece::Call(next(), canvas, page)
            }
            _ if asked.words.contains(REMOVE) && has(shell) => {
                Piece::Call(next(), shell, arguments.clone())
            }
            // A title, or whatever else they ask beside the turn.
            _ => Piece::Text("A title"),
        };
        Answer::Says(vec![said])
    })
}

/// The folder of the installed packages, where its stamp is there.
fn packages(below: &str) -> Option<PathBuf> {
    let usual = Path::new(ROOT).join("target/counterparts");
    let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, PathBuf::from);
    let folder = folder.join(below);
    let is_there = folder.join("stamp").is_file();
    is_there.then(|| folder.join("node_modules"))
}

/// The programs in the way to this one, with a Node that is new enough; none where it is not installed.
fn path(program: &str, below: &str) -> Option<String> {
    let found = packages("").zip(packages(below));
    let found = found.filter(|(_, modules)| modules.join(program).is_file());
    let Some((base, modules)) = found else {
        eprintln!(
            "skipped: {program} is not installed; `./test agents` does that, on Linux for x64"
        );
        return None;
    };
    let folder = modules.join(program).parent()?.display().to_string();
    let node = base.join("node/bin").display().to_string();
    Some(format!(
        "{folder}:{node}:{}",
        std::env::var("PATH").unwrap()
    ))
}

/// A daemon for agents that find the model by these variables and what is in their home.
fn daemon(path: &str, env: &[(&str, &str)], home: &[(&str, String)]) -> Daemon {
    let project = Project::new();
    let place = project.path().join(".home");
    std::fs::create_dir_all(&place).unwrap();
    for (name, text) in home {
        let file = place.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let place = place.display().to_string();
    let all = [("HOME", place.as_str()), ("PATH", path)];
    Daemon::with(project, &[&all[..], env].concat())
}

/// A prompt that goes on beside the test.
fn prompting(daemon: &Daemon, text: &str) -> Child {
    let mut command = daemon
        .ctx(&["agent", "prompt", "bot", text, "--json"])
        .command();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What each of them is put through.
fn goes_through_it(daemon: &Daemon, server: &ModelServer, way: &Way, more: &[&str]) {
    let mut args = vec!["agent", "create", "bot", "--archetype", "service"];
    args.extend(["--backend", way.backend]);
    args.extend(more);
    daemon.ctx(&args).success();
    let agent = daemon.ctx(&["agent", "start", "bot", "--json"]).json();
    let folder = daemon.project.path().join(".contexture/workspaces/bot");
    let important = folder.join("important");
    std::fs::create_dir_all(&important).unwrap();

    let said = daemon.prompt("bot", SHOW);
    if way.canvas.is_some() {
        assert!(
            said.contains("It is done."),
            "{said}; it has {:?}",
            offered(server)
        );
        let shown = daemon.ctx(&["canvas", "show", "bot"]).success();
        assert_eq!(shown, "<h1>Shown</h1>");
        let audit = daemon.logged("tool:called", 1);
        assert_eq!(
            (&audit[0]["agent"], &audit[0]["success"]),
            (&json!("bot"), &json!(true))
        );
        // Nobody is asked about what is ours.
        assert_eq!(daemon.events("permission:asked"), Vec::<Value>::new());
    }
    // It was told who it is, by whatever way it takes.
    let told = server.seen().into_iter().filter(|seen| {
        let text = String::from_utf8_lossy(&seen.body).into_owned();
        text.contains("You are **bot**")
    });
    assert!(told.count() > 0, "the model was not told");

    if way.backend == "pi" {
        daemon.prompt("bot", REMOVE);
        assert_eq!(daemon.events("permission:asked"), Vec::<Value>::new());
    } else {
        asks_before_it_acts(daemon, &important);
    }
    assert!(!important.exists(), "it was not done");
    // What it said and did is in our log, whole.
    let session = agent["sessionId"].as_str().unwrap();
    let entries = daemon.project.entries(session);
    let messages: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "message")
        .map(|entry| &entry["payload"]["message"])
        .collect();
    assert!(messages.iter().any(|message| message["content"] == SHOW));
    assert!(
        messages
            .iter()
            .any(|message| message["tool_calls"].is_array())
    );
    assert!(messages.iter().any(|message| message["role"] == "tool"));
    daemon.ctx(&["inspect", session]).success();

    daemon.ctx(&["agent", "stop", "bot"]).success();
    let revoked = daemon.logged("session:tokens-revoked", 1);
    assert_eq!(revoked[0]["agent"], "bot");
    let folder = folder.display().to_string();
    assert_eq!(processes(&folder), Vec::<i64>::new());
    assert_eq!(children(daemon.pid()), Vec::<i64>::new());
}

/// The question with this number, as long as the prompt goes on.
fn asked(daemon: &Daemon, prompting: &mut Child, number: usize) -> Value {
    loop {
        let ended = prompting.try_wait().unwrap().is_some();
        if let Some(asked) = daemon.events("permission:asked").get(number) {
            return asked.clone();
        }
        if ended {
            let mut said = String::new();
            let mut out = prompting.stdout.take().unwrap();
            std::io::Read::read_to_string(&mut out, &mut said).unwrap();
            panic!("it asked nothing: {said}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The tools that the model was offered in each turn.
fn offered(server: &ModelServer) -> Vec<Vec<String>> {
    let seen = server.seen();
    let asked = seen.iter().filter_map(Asked::read);
    asked.map(|asked| asked.tools).collect()
}

/// A no leaves the folder where it is, a yes removes it.
fn asks_before_it_acts(daemon: &Daemon, important: &Path) {
    for (n, answer) in ["reject", "allow"].into_iter().enumerate() {
        let mut prompting = prompting(daemon, REMOVE);
        let asked = asked(daemon, &mut prompting, n);
        assert_eq!(asked["title"], COMMAND, "{asked}");
        assert!(important.exists(), "it did not wait for the answer");
        let request = asked["requestId"].as_str().unwrap();
        let listed = daemon.ctx(&["agent", "permit", "bot", "--json"]).json();
        assert_eq!(listed[0]["requestId"], request, "{listed}");
        assert_eq!(listed[0]["title"], COMMAND, "{listed}");
        let permit = ["agent", "permit", "bot", request, answer, "--json"];
        assert_eq!(daemon.ctx(&permit).json()["allowed"], answer == "allow");
        let said = prompting.wait_with_output().unwrap().stdout;
        let done = important.exists() == (answer == "reject");
        assert!(done, "{answer}: {}", String::from_utf8_lossy(&said));
    }
}

const CHAT: (&str, &str) = ("OPENAI_API_KEY", "not-a-key");

// needs: acp-agents
#[test]
fn goose() {
    let Some(path) = path("@aaif/goose-binary-linux-x64/bin/goose", "") else {
        return;
    };
    let way = Way {
        backend: "goose",
        canvas: Some("contexture__canvas_update"),
        shell: ("shell", json!({"command": COMMAND})),
    };
    let server = model(&way);
    let env = [
        CHAT,
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "scripted-1"),
        ("GOOSE_DISABLE_KEYRING", "1"),
        // What the user's own sessions do is not what this one was made for.
        ("GOOSE_MODE", "auto"),
        ("OPENAI_HOST", server.url.trim_end_matches("/v1")),
    ];
    goes_through_it(&daemon(&path, &env, &[]), &server, &way, &[]);
}

// needs: acp-agents
#[test]
fn opencode() {
    let Some(path) = path("opencode-linux-x64/bin/opencode", "") else {
        return;
    };
    let way = Way {
        backend: "opencode",
        canvas: Some("contexture_canvas_update"),
        shell: (
            "bash",
            json!({"command": COMMAND, "description": "List files"}),
        ),
    };
    let server = model(&way);
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
        "permission": {"bash": "allow"},
    });
    let env = [
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_CONFIG_CONTENT", &config.to_string()),
    ];
    goes_through_it(&daemon(&path, &env, &[]), &server, &way, &[]);
}

// needs: acp-agents
#[test]
fn gemini() {
    let Some(path) = path(".bin/gemini", "") else {
        return;
    };
    let way = Way {
        backend: "gemini",
        canvas: Some("mcp_contexture_canvas_update"),
        shell: (
            "run_shell_command",
            json!({"command": COMMAND, "description": "List files"}),
        ),
    };
    let server = model(&way);
    let env = [
        ("GEMINI_API_KEY", "not-a-key"),
        ("GEMINI_MODEL", "gemini-2.5-flash"),
        ("GOOGLE_GEMINI_BASE_URL", server.url.trim_end_matches("/v1")),
    ];
    goes_through_it(&daemon(&path, &env, &[]), &server, &way, &[]);
}

/// It has none of our tools, and asks nobody.
// needs: acp-agents
#[test]
fn pi() {
    let Some(path) = path(".bin/pi-acp", "") else {
        return;
    };
    let way = Way {
        backend: "pi",
        canvas: None,
        shell: (
            "bash",
            json!({"command": COMMAND, "description": "List files"}),
        ),
    };
    let server = model(&way);
    let provider = json!({
        "baseUrl": server.url, "api": "openai-completions", "apiKey": "not-a-key",
        "models": [{"id": "scripted-1"}],
    });
    let home = [
        (
            ".pi/agent/models.json",
            json!({"providers": {"scripted": provider}}).to_string(),
        ),
        (
            ".pi/agent/settings.json",
            json!({"defaultProvider": "scripted", "defaultModel": "scripted-1"}).to_string(),
        ),
    ];
    let daemon = daemon(&path, &[], &home);
    let ask = ["agent", "create", "other", "--backend", "pi"];
    daemon.ctx(&ask).failure(3, "acts without asking");
    goes_through_it(&daemon, &server, &way, &["--permissions", "allow"]);
}

// needs: large-agents
#[test]
fn claude_code() {
    let Some(path) = path(".bin/claude-agent-acp", "agents") else {
        return;
    };
    let way = Way {
        backend: "claude-code",
        canvas: Some("mcp__contexture__canvas_update"),
        shell: (
            "Bash",
            json!({"command": COMMAND, "description": "List files"}),
        ),
    };
    let server = model(&way);
    let env = [
        ("ANTHROPIC_API_KEY", "not-a-key"),
        ("ANTHROPIC_BASE_URL", server.url.trim_end_matches("/v1")),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("IS_SANDBOX", "1"),
    ];
    goes_through_it(&daemon(&path, &env, &[]), &server, &way, &[]);
}

// needs: large-agents
#[test]
fn codex() {
    let Some(path) = path(".bin/codex-acp", "agents") else {
        return;
    };
    let way = Way {
        backend: "codex",
        canvas: Some("mcp__contexture::canvas_update"),
        shell: (
            "exec_command",
            // Outside of its sandbox, which does not work on every machine.
            json!({"cmd": COMMAND, "sandbox_permissions": "require_escalated", "justification": "Tidying up"}),
        ),
    };
    let server = model(&way);
    let config = format!(
        "model = \"scripted-1\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"Scripted\"\n\
         base_url = \"{}\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n",
        server.url
    );
    let home = [(".codex/config.toml", config)];
    goes_through_it(&daemon(&path, &[CHAT], &home), &server, &way, &[]);
}

/// Our own agent comes in by the same door.
#[test]
fn native() {
    let way = Way {
        backend: "native",
        canvas: Some("contexture__canvas_update"),
        shell: ("exec_shell", json!({"command": COMMAND})),
    };
    let server = model(&way);
    let path = std::env::var("PATH").unwrap();
    let us = env!("CARGO_BIN_EXE_ctx");
    let command = ["--command", us, "acp", "--model", "openai:gpt-4o"];
    let more = [&command[..], &["--base-url", &server.url]].concat();
    goes_through_it(&daemon(&path, &[CHAT], &[]), &server, &way, &more);
}
