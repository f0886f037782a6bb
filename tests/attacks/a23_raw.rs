//! 23, 55: on a real terminal nothing that somebody else said comes out raw, whichever command shows it.

use std::path::PathBuf;

use contexture::text::hidden::is_hidden;
use serde_json::{Value, json};

use crate::common::{Ctx, Project, ctx, message};
use crate::fleet::scene::Daemon;
use crate::model_server::{Answer, ModelServer, Piece};
use crate::terminal::{on_terminal, script_missing};

/// Clears, writes to the clipboard, links, colours, conceals, asks the terminal, goes back, turns, joins, selects, tags.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]52;c;aGk=\u{7}\u{1b}]8;;http:x\u{1b}\\\u{1b}[38;5;199m\u{1b}[8m\u{1b}P0q\u{1b}\\\u{1b}[6n\u{9b}31m\u{9d}0;t\u{9c}\u{8}\u{7f}\rover\u{202e}\u{2066}\u{200b}\u{200f}\u{61c}\u{2063}\u{206a}\u{fe0f}\u{e0101}\u{e0041}\u{ad}\u{ad}evil";
/// The same without what cannot be in a name of a key: control characters.
const NAME: &str = "k\u{202e}\u{200b}\u{e0041}\u{2063}";

/// What a terminal is told by nobody but us: colours, the cursor of what moves, and what the line editor does.
#[track_caller]
fn inert(what: &str, out: &str) {
    let mut rest = out;
    while let Some(c) = rest.chars().next() {
        let at = out.len() - rest.len();
        let near: String = out[..at].chars().rev().take(60).collect();
        let near: String = near.chars().rev().collect();
        let told = match c {
            '\u{1b}' => {
                let length = ours(rest);
                assert!(
                    length > 0,
                    "{what}: a command comes out raw behind {near:?}: {:?}",
                    &rest[..rest.len().min(20)]
                );
                length
            }
            '\r' => {
                let line = rest.starts_with("\r\n")
                    || rest.starts_with("\r\r\n")
                    || rest.starts_with("\r\u{1b}[J");
                assert!(line, "{what}: the line begins anew behind {near:?}");
                1
            }
            '\n' | '\t' => 1,
            c => {
                assert!(
                    !c.is_control() && !is_hidden(c),
                    "{what}: {c:?} comes out raw behind {near:?}"
                );
                c.len_utf8()
            }
        };
        rest = &rest[told..];
    }
    assert!(!out.contains("panicked"), "{what}: {out}");
}

/// How long the command of ours is that the text begins with.
fn ours(text: &str) -> usize {
    let plain = [
        "[0m", "[1m", "[2m", "[3m", "[4m", "[9m", "[22m", "[31m", "[32m", "[33m", "[36m", "[J",
        "[?25l", "[?25h", "[?2004h", "[?2004l",
    ];
    let text = &text[1..];
    if let Some(known) = plain.iter().find(|known| text.starts_with(*known)) {
        return 1 + known.len();
    }
    let digits =
        |from: &str| from.len() - from.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if let Some(number) = text.strip_prefix("[38;5;") {
        let colour = &number[..digits(number)];
        let is_one = number[colour.len()..].starts_with('m') && colour != "199";
        return if is_one { 1 + 6 + colour.len() + 1 } else { 0 };
    }
    match text.strip_prefix('[') {
        Some(up) if digits(up) > 0 && up[digits(up)..].starts_with('A') => 1 + 1 + digits(up) + 1,
        _ => 0,
    }
}

#[track_caller]
fn shows(ctx: &Ctx, what: &str) -> String {
    let out = on_terminal(ctx);
    inert(what, &out);
    out
}

/// A folder with a name that commands, and in it all that a project can have, written by somebody hostile.
struct Scene {
    _project: Project,
    folder: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let project = Project::new();
        let folder = project.path().join(HOSTILE.replace('/', ""));
        std::fs::create_dir_all(folder.join(".contexture")).unwrap();
        Self {
            _project: project,
            folder,
        }
    }

    fn ctx(&self, args: &[&str]) -> Ctx {
        ctx(args).dir(&self.folder)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn transcript() -> String {
    let call = json!([{ "id": HOSTILE, "type": "function", "function": { "name": HOSTILE, "arguments": HOSTILE } }]);
    let lines = [
        message("system", HOSTILE),
        message("user", HOSTILE),
        json!({ "role": "assistant", "content": HOSTILE, "tool_calls": call }),
        json!({ "role": "tool", "tool_call_id": HOSTILE, "content": HOSTILE }),
        message("assistant", HOSTILE),
        message("user", HOSTILE),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_log_and_files_of_others_on_a_terminal() {
    if script_missing() {
        return;
    }
    let scene = Scene::new();
    let file = scene.write(&format!("{HOSTILE}.jsonl"), transcript());
    let bad = scene.write(
        "bad.jsonl",
        format!("{{\"role\":{}}}\n{HOSTILE}", json!(HOSTILE)),
    );
    let compose = scene.write(
        "compose.json",
        json!({ "systemPrompt": HOSTILE, "basePrompt": HOSTILE, "persona": {"name": HOSTILE} })
            .to_string(),
    );
    let pool = scene.write("pool.json", json!({ "resources": [] }).to_string());
    let task = scene.write(
        "task.json",
        json!({ "orchestratorNote": HOSTILE }).to_string(),
    );
    let base = scene.write("base.md", HOSTILE);
    shows(&scene.ctx(&["sessions", "import", NAME, &file]), "import");
    let entries = scene.ctx(&["sessions", "show", NAME, "--json"]).lines();
    let last = entries.last().unwrap()["id"].as_str().unwrap().to_owned();
    let commands: &[&[&str]] = &[
        &["build", &file],
        &["build", &file, "--json"],
        &["build", &file, "--format", "openai"],
        &["build", &file, "--format", "anthropic"],
        &["build", &bad],
        &["build", &bad, "--json"],
        &["build", "no\u{1b}[2J\u{9b}such"],
        &["update", &file],
        &["update", &file, "--json"],
        &["tokens", &file],
        &["tokens", &file, "--json"],
        &["compose", &compose],
        &["compose", &compose, "--json"],
        &["compose", &bad],
        &["agent-context", "--pool", &pool, "--task", &task],
        &["agent-context", "--pool", &pool, "--task", &task, "--json"],
        &["agent-context", "--pool", &pool, "--base", &base],
        &["replay", &file],
        &["replay", &file, "--json"],
        &["replay", &file, "--format", "openai"],
        &["replay", NAME, "--verify"],
        &["sessions", "list"],
        &["sessions", "list", "--json"],
        &["sessions", "show", NAME],
        &["sessions", "show", NAME, "--json"],
        &["sessions", "show", HOSTILE],
        &["sessions", "append", NAME, &file],
        &["sessions", "append", NAME, &bad],
        &["sessions", "append", NAME, &bad, "--json"],
        &["sessions", "export", NAME],
        &["sessions", "export", NAME, "--format", "html"],
        &["sessions", "export", NAME, "--format", "openai"],
        &["sessions", "export", NAME, "--format", "anthropic"],
        &["sessions", "export", NAME, "--format", "jsonl"],
        &["sessions", "export", NAME, "-o", "out\u{1b}[2J\u{202e}.md"],
        &["sessions", "pin", NAME, &last],
        &["sessions", "unpin", NAME, &last],
        &["sessions", "undo", NAME, HOSTILE],
        &["sessions", "fork", NAME],
        &["sessions", "fork", NAME, "f", "--json"],
        &["sessions", "rm", "f"],
        &["inspect", NAME],
        &["inspect", NAME, "--json"],
        &["inspect", NAME, "--format", "anthropic"],
        &["inspect", NAME, "--at", HOSTILE],
        &["diff", NAME, HOSTILE, &last],
        &["diff", NAME, "0", "0"],
        &["diff", NAME, "0", "0", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["inject", "--name", HOSTILE],
        &["inject", "--meta", &bad],
        &["pool", "add", HOSTILE],
        &["pool", "add", "one", "--name", HOSTILE, "--capability", "c"],
        &["pool", "list"],
        &["pool", "list", "--json"],
        &["pool", "catalog"],
        &["pool", "match", HOSTILE],
        &["pool", "key", HOSTILE],
        &["pool", "grant", "one", HOSTILE],
        &["pool", "remove", HOSTILE],
        &["task", "dispatch", HOSTILE, "--requires", "other"],
        &[
            "task",
            "dispatch",
            HOSTILE,
            "--note",
            HOSTILE,
            "--requires",
            "other",
            "--json",
        ],
        &["task", "list"],
        &["task", "list", "--json"],
        &["task", "show", "t1"],
        &["task", "show", HOSTILE],
        &["task", "cancel", "t1"],
        &[
            "agent",
            "create",
            "bot",
            "--backend",
            "custom",
            "--env",
            HOSTILE,
            "--command",
            HOSTILE,
            HOSTILE,
        ],
        &["agent", "create", HOSTILE],
        &["agent", "list"],
        &["agent", "show", "bot"],
        &["agent", "show", "bot", "--json"],
        &["agent", "backends"],
        &["agent", "show", HOSTILE],
        &["agent", "rm", "bot"],
        &["canvas", "list"],
        &["canvas", "show", HOSTILE],
        &["model", "list"],
        &["model", "show", HOSTILE],
        &["model", "pull", HOSTILE],
        &["model", "add", HOSTILE, &file],
        &["model", "rm", HOSTILE],
        &["tool", "list", "--url", HOSTILE],
        &["tool", "call", HOSTILE],
        &["config", "schema"],
        &["completions", "bash"],
        &["completions", HOSTILE],
        &["--dir", HOSTILE, "sessions", "list"],
        &[HOSTILE],
        &["build", &format!("--{HOSTILE}")],
        &["build", &file, "--budget", HOSTILE],
        &["build", &file, "--format", HOSTILE, "--json"],
        &["help", HOSTILE],
        &["--help"],
        &["worker", "--id", HOSTILE],
        &["serve", "--listen", HOSTILE],
    ];
    let mut seen = 0;
    for args in commands {
        let out = shows(&scene.ctx(args), &format!("{args:?}"));
        seen += usize::from(out.contains("evil") || out.contains('⟨') || out.contains("\\u"));
    }
    // What was said is there to be read.
    assert!(seen > 60, "{seen}");
}

#[test]
fn what_a_folder_would_teach_and_start_on_a_terminal() {
    if script_missing() {
        return;
    }
    let scene = Scene::new();
    let skill = format!(
        "---\nname: sly\ndescription: {}\n---\n{HOSTILE}\n",
        json!(HOSTILE)
    );
    scene.write(".agents/skills/sly/SKILL.md", skill);
    scene.write(
        ".agents/skills/bad/SKILL.md",
        format!("---\nname: {HOSTILE}\n---\n"),
    );
    scene.write("AGENTS.md", HOSTILE);
    let server = scene.write("server.py", MCP);
    let config = json!({
        "baseUrl": format!("http://127.0.0.1:1/{HOSTILE}"),
        "mcpServers": { "sly": { "command": "python3", "args": [server], "env": { "A": HOSTILE } },
                        "gone": { "command": HOSTILE } },
    });
    scene.write("contexture.json", config.to_string());
    let commands: &[&[&str]] = &[
        &["trust", "--yes"],
        &["trust"],
        &["trust", "--json"],
        &["trust", "--list"],
        &["trust", "--list", "--json"],
        &["skills", "list"],
        &["skills", "list", "--json"],
        &["skills", "show", "sly"],
        &["skills", "show", "sly", "--json"],
        &["skills", "show", HOSTILE],
        &["mcp", "list"],
        &["mcp", "list", "--json"],
        &["mcp", "tools"],
        &["mcp", "tools", "--json"],
        &["inject"],
        &["inject", "--json"],
        &["trust", "--revoke"],
        &["mcp", "tools"],
    ];
    for args in commands {
        shows(&scene.ctx(args), &format!("{args:?}"));
    }
    for (name, text) in [
        ("contexture.json", format!("{{ {HOSTILE}")),
        ("contexture.json", json!({ HOSTILE: 1 }).to_string()),
        (
            "contexture.json",
            json!({ "agent": { "model": [HOSTILE] } }).to_string(),
        ),
    ] {
        scene.write(name, text);
        shows(&scene.ctx(&["sessions", "list"]), name);
        shows(&scene.ctx(&["sessions", "list", "--json"]), name);
    }
}

/// An MCP server of somebody hostile.
const MCP: &str = r#"
import json, sys
sly = "\u001b[2J\u001b]52;c;aGk=\u0007\u001b]8;;http:x\u0007\u009b31m\rover\u202e\u200b\u061c\udb40\udc41 evil"
sys.stderr.write(sly)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": sly, "version": sly}, "instructions": sly}
    elif asked["method"] == "tools/list":
        schema = {"type": "object", "properties": {sly: {"type": "string", "description": sly}}}
        result = {"tools": [{"name": "read", "description": sly, "inputSchema": schema}, {"name": sly, "description": sly, "inputSchema": schema}]}
    else:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": sly}}) + "\n")
        sys.stdout.flush()
        continue
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
    sys.stdout.flush()
"#;

#[test]
fn what_a_model_says_on_a_terminal() {
    if script_missing() {
        return;
    }
    let scene = Scene::new();
    let server = ModelServer::answering(|seen| {
        let body = String::from_utf8_lossy(&seen.body);
        match body.contains("refuse") {
            true => Answer::Status(
                400,
                vec![],
                json!({ "error": { "message": HOSTILE, "type": HOSTILE } }).to_string(),
            ),
            false if body.contains("\"role\":\"tool\"") => Answer::Says(vec![
                Piece::Thinking(HOSTILE),
                Piece::Text(HOSTILE),
                Piece::Text("\u{fe0f}\u{1b}"),
                Piece::Text("[2J\u{9b}"),
                // What Markdown spells.
                Piece::Text(
                    "\n\n# &#27;[2J `&#x9b;` [a](javascript:x \"&#27;[8m\") <b\u{1b}[2J>\n\n",
                ),
                Piece::Text(
                    "| &#27;]52;c;aGk=&#7; |\n|---|\n| &#x202e;&#8; |\n\n```&#27;[2J\n\u{1b}[2J\n",
                ),
            ]),
            false => Answer::Says(vec![
                Piece::Text(HOSTILE),
                Piece::Call(
                    "c",
                    "exec_shell",
                    json!({ "command": format!("printf '%s' '{HOSTILE}'; exit 3") }),
                ),
            ]),
        }
    });
    let at = ["--model", "openai:m", "--base-url", &server.url];
    let commands: [&[&str]; 7] = [
        &["run", "go", "--allow", "exec_shell", "--session", NAME],
        &[
            "run",
            "go on",
            "--allow",
            "exec_shell",
            "--session",
            NAME,
            "--json",
        ],
        &["run", "refuse"],
        &["run", "refuse", "--json"],
        &["run", "go", "--session", HOSTILE],
        &["orchestrate", "go"],
        &["orchestrate", "go", "--json"],
    ];
    for args in commands {
        let all = [args, &at].concat();
        let ctx = scene
            .ctx(&all)
            .env("OPENAI_API_KEY", "sk-of-the-tests-1234567890");
        shows(&ctx, &format!("{args:?}"));
    }
    shows(&scene.ctx(&["sessions", "show", NAME]), "what is logged");
}

/// `ctx canvas show` gave an agent the terminal.
#[test]
fn what_an_agent_shows_and_says_on_a_terminal() {
    if script_missing() {
        return;
    }
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    daemon.prompt("bot", &format!("canvas <p>{HOSTILE}</p>"));
    let shown = |args: &[&str]| shows(&daemon.ctx(args), &format!("{args:?}"));
    let page = shown(&["canvas", "show", "bot"]);
    assert!(page.contains("⟨ESC⟩]52;c;aGk=⟨BEL⟩"), "{page}");
    for args in [
        &["canvas", "show", "bot", "--json"][..],
        &["canvas", "list"],
        &["canvas", "list", "--json"],
        &["agent", "prompt", "bot", &format!("say {HOSTILE}")],
        &[
            "agent",
            "prompt",
            "bot",
            &format!("say {HOSTILE}"),
            "--json",
        ],
        &["agent", "prompt", "bot", HOSTILE],
        &["agent", "list"],
        &["agent", "show", "bot", "--json"],
        &["sessions", "list"],
    ] {
        shown(args);
    }
    // Elsewhere the page is what the agent wrote.
    let page = daemon.ctx(&["canvas", "show", "bot"]).success();
    assert_eq!(page, format!("<p>{HOSTILE}</p>"));
    let page: Value = daemon.ctx(&["canvas", "show", "bot", "--json"]).json();
    assert_eq!(page["html"], format!("<p>{HOSTILE}</p>"));
}
