//! Every command of `ctx`, with words as somebody might type them in a folder that was just cloned. A command that is not
//! in the table fails the test, so that a new one is tried, too.

use std::collections::BTreeSet;

use crate::common::ctx;

/// A command line.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// The command, as the help names it.
    pub command: &'static str,
    pub args: &'static [&'static str],
    /// What is written to its standard input.
    pub input: &'static str,
    /// Whether it goes on until it is told to end.
    pub serves: bool,
    /// The program that it is there to start.
    pub starts: Option<&'static str>,
    /// True if it tries which sandbox works: in mounts of its own, whatever the folder holds.
    pub tries_sandbox: bool,
}

/// The user's own files, beside the project.
pub const SESSION_FILE: &str = "{home}/session.jsonl";

const fn line(command: &'static str, args: &'static [&'static str]) -> Line {
    Line {
        command,
        args,
        input: "",
        serves: false,
        starts: None,
        tries_sandbox: false,
    }
}

const fn fed(command: &'static str, args: &'static [&'static str], input: &'static str) -> Line {
    Line {
        input,
        ..line(command, args)
    }
}

const fn trying(command: &'static str, args: &'static [&'static str]) -> Line {
    Line {
        tries_sandbox: true,
        starts: Some("bwrap"),
        ..line(command, args)
    }
}

const fn serving(command: &'static str, args: &'static [&'static str]) -> Line {
    Line {
        serves: true,
        ..line(command, args)
    }
}

const HOST: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"s","cwd":"{project}","mcpServers":[]}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"{project}","mcpServers":[]}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}"#,
    "\n"
);
const MESSAGE: &str = "{\"role\":\"user\",\"content\":\"hello\"}\n";
const OPTIONS: &str = r#"{"baseSystemPrompt":"You help.","history":[],"userMessage":"hello"}"#;
const META: &str = r#"{"name":"h","archetype":"service","backendType":"native"}"#;

/// All of them.
pub const TABLE: &[Line] = &[
    fed("acp", &[], HOST),
    line("agent backends", &[]),
    line("agent cancel", &["h"]),
    line("agent create", &["mine"]),
    line("agent create", &["h", "--ephemeral"]),
    line("agent list", &[]),
    line("agent permit", &["h"]),
    line("agent prompt", &["h", "hello"]),
    line("agent restart", &["h"]),
    line("agent rm", &["h"]),
    line("agent show", &["h"]),
    line("agent start", &["h"]),
    line("agent stop", &["h"]),
    line("agent-context", &[]),
    line("build", &[SESSION_FILE]),
    line("build", &[SESSION_FILE, "--json", "--budget", "900"]),
    line("build", &[SESSION_FILE, "--all"]),
    line("canvas list", &[]),
    line("canvas show", &["h"]),
    fed("chat", &[], "hello\n"),
    fed("chat", &["--session", "s"], "hello\n"),
    line("completions", &["bash"]),
    fed("compose", &[], OPTIONS),
    line("config schema", &[]),
    line("config show", &[]),
    line("demo", &["--model", "openai:gpt-4o"]),
    line("diff", &["s", "s3", "s7"]),
    trying("doctor", &[]),
    trying("doctor", &["--fix"]),
    line("events", &[]),
    line("events", &["--follow"]),
    line("import", &["new", SESSION_FILE]),
    line(
        "inject",
        &[
            "--name",
            "h",
            "--archetype",
            "employee",
            "--backend",
            "codex",
        ],
    ),
    fed("inject", &["--meta", "-"], META),
    line("inspect", &["s"]),
    line("inspect", &["f", "--json"]),
    line("man", &[]),
    line("mcp list", &[]),
    line("mcp serve", &[]),
    line("mcp tools", &[]),
    line("model add", &["evil", "weights.gguf"]),
    line("model list", &[]),
    // It is there to fetch: it asks pip from where, and the user's own index is the test's server.
    Line {
        starts: Some("python3"),
        ..line("model pull", &["smollm2"])
    },
    line("model rm", &["smollm2"]),
    line("model show", &["smollm2"]),
    line("orchestrate", &["hello"]),
    line("pool add", &["mine", "--capability", "web"]),
    line("pool catalog", &[]),
    line("pool grant", &["r", "exec_shell"]),
    line("pool key", &["r"]),
    line("pool list", &[]),
    line("pool map", &["web"]),
    line("pool map", &["web", "exec_shell"]),
    line("pool match", &["web"]),
    line("pool remove", &["r"]),
    line("pool repair", &["r"]),
    line("pool retire", &["r"]),
    line("pool revoke", &["r", "exec_shell"]),
    line("pool revoke-key", &["r"]),
    line("replay", &["s"]),
    line("replay", &["f", "--verify"]),
    line("run", &["hello"]),
    line("run", &["hello", "--session", "s"]),
    line("run", &["hello", "--session", "f", "--json"]),
    serving("serve", &["--listen", "127.0.0.1:0", "--json"]),
    line("schema", &["build"]),
    line("serve link", &[]),
    fed("sessions append", &["s"], MESSAGE),
    fed("sessions append", &["new"], MESSAGE),
    line("sessions export", &["s", "--format", "html"]),
    line("sessions export", &["f"]),
    line("sessions fork", &["s", "mine"]),
    line("sessions import", &["new", SESSION_FILE]),
    line("sessions list", &[]),
    line("sessions pin", &["s", "s3"]),
    line("sessions rm", &["s"]),
    line("sessions show", &["s"]),
    line("sessions show", &["g"]),
    line("sessions show", &["loop"]),
    line("sessions undo", &["s", "s3"]),
    line("sessions unpin", &["s", "s3"]),
    line("skills list", &[]),
    line("skills show", &["pdf"]),
    line("task cancel", &["task-1"]),
    line("task dispatch", &["hello"]),
    // It waits for somebody who can do it, and nobody is there but whom the folder brings.
    serving(
        "task dispatch",
        &[
            "hello",
            "--requires",
            "web",
            "--wait",
            "--timeout",
            "2",
            "--attempts",
            "1",
        ],
    ),
    line("task list", &[]),
    line("task show", &["task-1"]),
    line("templates list", &[]),
    line("templates show", &["mode"]),
    fed("tokens", &["--text"], "hello"),
    line("tool call", &["canvas_update", "--arg", "html=x"]),
    line("tool list", &[]),
    line("trust", &[]),
    line("trust", &["--list"]),
    line("trust", &["--revoke"]),
    line("update", &[SESSION_FILE]),
    serving("worker", &["--capability", "web"]),
    serving("worker", &["--agent", "h", "--id", "r"]),
    line("__try-model", &["weights.gguf"]),
];

/// Those that do most by themselves.
pub const ACTING: [&str; 9] = [
    "serve",
    "run",
    "orchestrate",
    "task dispatch",
    "agent create",
    "agent rm",
    "doctor",
    "sessions append",
    "pool add",
];

/// What is said to the daemon of a hostile folder while it runs.
pub const TO_THE_DAEMON: &[Line] = &[
    line("agent list", &["--json"]),
    line("agent start", &["h"]),
    line("agent prompt", &["native", "hello"]),
    line("canvas show", &["h"]),
    line("task list", &[]),
    line("task dispatch", &["hello", "--requires", "web"]),
];

/// Commands that no help shows.
const HIDDEN: [&str; 2] = ["import", "__try-model"];

/// All commands that the help shows, with those that have commands of their own only where they do something by
/// themselves.
fn of_help(path: &[String], all: &mut BTreeSet<String>) {
    let words: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    let help = ctx(&words).success();
    let named = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names: Vec<String> = listed
        .take_while(|line| !line.is_empty())
        .filter(named)
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect();
    let optional = help
        .lines()
        .any(|line| line.starts_with("Usage:") && !line.contains("<COMMAND>"));
    if !path.is_empty() && (names.is_empty() || optional) {
        all.insert(path.join(" "));
    }
    for name in names {
        of_help(&[path, &[name]].concat(), all);
    }
}

#[test]
fn every_command_is_in_the_table() {
    let mut known = BTreeSet::new();
    of_help(&[], &mut known);
    assert!(known.len() > 60, "{known:?}");
    let tried: BTreeSet<String> = TABLE.iter().map(|line| line.command.to_owned()).collect();
    let missing: Vec<_> = known.difference(&tried).collect();
    assert!(missing.is_empty(), "no words for: {missing:?}");
    let stale: Vec<_> = tried
        .difference(&known)
        .filter(|name| !HIDDEN.contains(&name.as_str()))
        .collect();
    assert!(stale.is_empty(), "there are no such commands: {stale:?}");
}
