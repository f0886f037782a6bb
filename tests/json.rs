//! `--json` wherever it is offered: standard output is one JSON document or JSON lines, and the last line of a failure
//! is one.

use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::attacks::a56_streams::{Scene, commands};
use crate::common::SESSION;

/// Time that a command may go on before it counts as one that serves.
const PATIENCE: Duration = Duration::from_secs(20);

/// The output, the errors and the exit code of a command; no code where it served, and had to be ended.
fn ended(scene: &Scene, args: &[&str]) -> (String, String, Option<i32>) {
    let serves = matches!(args, ["serve", "--listen", ..] | ["worker", ..]);
    let mut child = scene
        .ctx(args)
        .command()
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let said = std::thread::spawn(move || text(stderr));
    let stdout = child.stdout.take().unwrap();
    let printed = std::thread::spawn(move || text(stdout));
    let patience = if serves {
        Duration::from_secs(3)
    } else {
        PATIENCE
    };
    let code = wait(&mut child, patience);
    (printed.join().unwrap(), said.join().unwrap(), code)
}

fn text(mut stream: impl Read) -> String {
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    all
}

fn wait(child: &mut Child, patience: Duration) -> Option<i32> {
    let since = Instant::now();
    while since.elapsed() < patience {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

fn is_json(text: &str) -> bool {
    let parses = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    parses(text) || text.lines().all(parses)
}

/// The table names every command of the help: a test beside it fails otherwise.
#[test]
fn every_command_prints_json() {
    let scene = Scene::new();
    let mut wrong = Vec::new();
    for args in commands() {
        if args[0] == "help" || matches!(args[0], "--help" | "--version") {
            continue;
        }
        let mut all = args.clone();
        if !all.contains(&"--json") {
            all.push("--json");
        }
        let (printed, said, code) = ended(&scene, &all);
        if !is_json(&printed) {
            wrong.push(format!("{all:?} prints {printed}"));
        }
        let last = said.lines().last().unwrap_or_default();
        let error = serde_json::from_str::<Value>(last).unwrap_or_default();
        if !matches!(code, Some(0) | None) && !error["error"]["code"].is_string() {
            wrong.push(format!("{all:?} ends with {code:?} and says {said}"));
        }
        if matches!(code, Some(0)) && printed.is_empty() && !is_protocol(&args) {
            wrong.push(format!("{all:?} prints nothing"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns true if a command speaks with a peer, here with nobody.
fn is_protocol(args: &[&str]) -> bool {
    matches!(args, ["acp", ..] | ["mcp", "serve", ..] | ["chat", ..])
}

/// A form that is no JSON contradicts `--json`.
#[test]
fn what_is_no_json_is_refused() {
    let scene = Scene::new();
    for args in [
        &["build", SESSION, "--format", "view"][..],
        &["update", SESSION, "--format", "view"],
        &["inspect", "s", "--format", "view"],
        &["replay", "s", "--format", "view"],
        &["completions", "bash"],
        &["man"],
    ] {
        let error = scene.ctx(args).failure_json(2, "");
        assert_eq!(error["code"], "Usage", "{args:?}: {error}");
    }
}
