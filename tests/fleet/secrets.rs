//! What an agent says, and what it and other children are given: no token and no key is where it does not belong.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use contexture::inject::TOKEN_FILE_VARIABLE;
use serde_json::{Value, json};

use crate::common::{Project, ROOT};
use crate::fleet::scene::Daemon;
use crate::work::Worker;

/// All files below a folder, with what is in them.
pub fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut folders = vec![folder.to_owned()];
    let mut all = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let bytes = std::fs::read(entry.path()).unwrap_or_default();
                    all.push((entry.path(), String::from_utf8_lossy(&bytes).into_owned()));
                }
            }
        }
    }
    all
}

/// A text as a reader sees it: no escapes, one case, letters and digits alone.
fn read(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..3 {
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            let number = |from: usize, to: usize| {
                let digits = rest.get(from..to)?;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)
            };
            let spelled = match c {
                '%' => number(1, 3).map(|c| (c, 3)),
                '\\' if rest.starts_with("\\u") => number(2, 6).map(|c| (c, 6)),
                '&' if rest.starts_with("&#x") => number(3, 5).map(|c| (c, 6)),
                _ => None,
            };
            let (c, length) = spelled.unwrap_or((c, c.len_utf8()));
            out.push(c);
            rest = rest.get(length..).unwrap_or_default();
        }
        text = out;
    }
    let letters = text.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

#[track_caller]
fn holds_none(what: &str, text: &str, tokens: &[String]) {
    let read = read(text);
    for token in tokens {
        // Half of one is as good as all of it is bad.
        assert!(!read.contains(&token[..32]), "{what} holds a token: {text}");
    }
}

/// Attacks 8, 53 and 54: titles, options, stop reasons, keys, other spellings and pieces; in the log, in events, with
/// hooks, on the canvas, in answers and on the screen.
#[test]
fn a_token_is_masked_wherever_an_agent_says_it() {
    let secrets = tempfile::tempdir().unwrap();
    let known = secrets.path().join("tokens");
    let project = Project::new();
    let hook = json!({"event": "*", "command": ["sh", "-c", "cat >> seen; echo >> seen"]});
    let config = json!({"hooks": [hook], "serve": {"askSeconds": 1}});
    project.write("contexture.json", config.to_string());
    project.ctx(&["trust", "--yes"]).success();
    let daemon = Daemon::over(project);
    let script = ["--tokens", known.to_str().unwrap()];
    daemon.create("bot", "service", &[], &script);
    daemon.ctx(&["agent", "start", "bot"]).success();
    let tokens = || -> Vec<String> {
        let text = std::fs::read_to_string(&known).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    assert_eq!(tokens()[0].len(), 64);
    let said = daemon
        .ctx(&["agent", "prompt", "bot", "leak", "--json"])
        .run();
    let said = String::from_utf8(said.stdout).unwrap();
    holds_none("the answer", &said, &tokens());
    let mut message = String::new();
    for line in said.lines() {
        let update: Value = serde_json::from_str(line).unwrap();
        if update["type"] == "agent_message_chunk" {
            message += update["content"]["text"].as_str().unwrap();
        }
    }
    holds_none("the message", &message, &tokens());
    // It is masked, and not left out.
    let shown = &tokens()[0][..8];
    assert!(message.contains(&format!("{shown}…")), "{message}");
    assert!(message.ends_with("the end"), "{message}");
    let done: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(done["stopReason"], format!("{shown}…"), "{done}");
    let asked = daemon.logged("permission:asked", 1);
    assert_eq!(asked[0]["title"], format!("{shown}…"));
    assert!(daemon.logged("tool:called", 2).len() >= 2);
    daemon.logged("agent:answered", 1);
    for args in [
        &["agent", "show", "bot", "--json"][..],
        &["agent", "list", "--json"],
        &["canvas", "show", "bot"],
        &["canvas", "list", "--json"],
        &["agent", "prompt", "bot", "leak"],
    ] {
        let output = daemon.ctx(args).run();
        let all = [output.stdout, output.stderr].concat();
        holds_none(&args.join(" "), &String::from_utf8_lossy(&all), &tokens());
    }
    let session = daemon.show("bot")["sessionId"].as_str().unwrap().to_owned();
    let entries = daemon.project.entries(&session);
    holds_none("the log", &json!(entries).to_string(), &tokens());
    assert!(json!(entries).to_string().contains(&format!("{shown}…")));
    // Its last words are why it crashed.
    let _ = daemon
        .ctx(&["agent", "prompt", "bot", "leak-and-crash"])
        .run();
    let until = Instant::now() + Duration::from_secs(20);
    while tokens().len() < 2 {
        assert!(Instant::now() < until, "it was not started again");
        std::thread::sleep(Duration::from_millis(50));
    }
    daemon.until("bot", "running");
    let crashed = daemon.events("agent:state");
    assert!(
        json!(crashed).to_string().contains("last words"),
        "{crashed:?}"
    );
    std::thread::sleep(Duration::from_millis(500));
    for (path, text) in files(daemon.project.path()) {
        if path.starts_with(daemon.tokens()) {
            continue;
        }
        holds_none(&path.display().to_string(), &text, &tokens());
    }
    let seen = std::fs::read_to_string(daemon.project.path().join("seen")).unwrap();
    for kind in [
        "agent:update",
        "permission:asked",
        "agent:answered",
        "tool:called",
    ] {
        assert!(seen.contains(kind), "the hook saw no {kind}");
    }
}

/// Attack 6: agents, hooks, providers, MCP servers, workers' programs and terminals find no secret of ours that is not
/// theirs.
#[test]
fn no_child_inherits_a_secret_that_is_not_its_own() {
    const SECRETS: [(&str, &str); 5] = [
        (
            "CONTEXTURE_HUB_KEY",
            "5ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4",
        ),
        ("CONTEXTURE_OWNER_SECRET", "sentinel-owner"),
        ("CONTEXTURE_SESSION_TOKEN", "sentinel-session"),
        ("CONTEXTURE_ANYTHING_NEW", "sentinel-new"),
        ("SOME_API_KEY", "sentinel-api"),
    ];
    const WORKER: (&str, &str) = ("CONTEXTURE_WORKER_KEY", "sentinel-worker");
    let clean = |what: &str, env: &str| {
        assert!(env.contains("PATH"), "{what} has no environment: {env}");
        // Where its own token is, an agent may know.
        let env = env.replace(TOKEN_FILE_VARIABLE, "FILE");
        for (name, value) in SECRETS.iter().chain([&WORKER]) {
            assert!(
                !env.contains(name) && !env.contains(value),
                "{what} has {name}: {env}"
            );
        }
    };
    let project = Project::new();
    let config = json!({
        "hooks": [{"event": "agent:prompted", "command": ["sh", "-c", "env > hook.env"]}],
        "providers": [{"name": "p", "command": ["sh", "-c", "env > provider.env; echo hi"]}],
        "mcpServers": {
            "plain": {"command": "sh", "args": ["-c", "env > mcp.env"]},
            "named": {"command": "sh", "args": ["-c", "env > named.env"], "env": {"GIVEN": "${CONTEXTURE_HUB_KEY}"}},
        },
    });
    project.write("contexture.json", config.to_string());
    project.ctx(&["trust", "--yes"]).success();
    let daemon = Daemon::with(project, &[&SECRETS[..], &[WORKER]].concat());
    // Nor does asking for them help.
    let wanted = [
        "--env",
        "CONTEXTURE_HUB_KEY",
        "--env",
        "CONTEXTURE_WORKER_KEY",
    ];
    daemon.create("bot", "service", &wanted, &[]);
    daemon.ctx(&["agent", "start", "bot"]).success();
    clean("an agent", &daemon.prompt("bot", "env"));
    clean("a terminal", &daemon.prompt("bot", "terminal env"));
    let backends = daemon.ctx(&["agent", "backends", "--json"]).json();
    let backends = backends.as_array().unwrap();
    assert!(backends.len() >= 7, "{backends:?}");
    for backend in backends {
        let name = backend["name"].as_str().unwrap();
        let script = format!("{ROOT}/tests/fleet/agent.py");
        let create = [
            "agent",
            "create",
            name,
            "--backend",
            name,
            "--permissions",
            "allow",
        ];
        let command = ["--command", "python3", &script];
        daemon
            .ctx(&[&create[..], &wanted, &command].concat())
            .success();
        daemon.ctx(&["agent", "start", name]).success();
        clean(name, &daemon.prompt(name, "env"));
        daemon.ctx(&["agent", "stop", name]).success();
    }
    let folder = daemon.project.path().to_owned();
    let written = |name: &str| -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            if text.contains("PATH=") && text.ends_with('\n') {
                return text;
            }
            assert!(Instant::now() < until, "{name} was not written");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    clean("a hook", &written("hook.env"));
    clean("a provider", &written("provider.env"));
    let with = |ctx: crate::common::Ctx| {
        SECRETS
            .iter()
            .fold(ctx, |ctx, (name, value)| ctx.env(name, value))
    };
    let listed = with(daemon.ctx(&["mcp", "list"]))
        .env(WORKER.0, WORKER.1)
        .run();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(
        listed.contains("CONTEXTURE_HUB_KEY"),
        "it says what is missing: {listed}"
    );
    clean("an MCP server", &written("mcp.env"));
    assert!(!folder.join("named.env").exists());
    let join = [
        "worker",
        "--json",
        "--id",
        "w",
        "--capability",
        "env",
        "--command",
        "env",
    ];
    let _worker = Worker::start(&with(daemon.ctx(&join)));
    let dispatch = [
        "task",
        "dispatch",
        "x",
        "--requires",
        "env",
        "--wait",
        "--json",
    ];
    let done = daemon.ctx(&dispatch).json();
    let result = done["result"].as_str().unwrap();
    clean("a worker's program", result);
    assert!(result.contains("CONTEXTURE_TASK_ID="), "{result}");
}
