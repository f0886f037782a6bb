//! 56: standard output or standard error that is closed or full ends a command quietly or with 1, and never in a panic.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{Ctx, Project, SESSION, ctx};
use crate::model_server::{Answer, ModelServer, Piece};

/// How long a command may go on before it counts as one that serves.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a stream leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Works,
    /// No room behind it.
    Full,
    /// A pipe that nobody reads.
    Unread,
}

impl End {
    fn stdio(self) -> Stdio {
        match self {
            Self::Works => Stdio::piped(),
            Self::Full => File::options()
                .write(true)
                .open("/dev/full")
                .unwrap()
                .into(),
            Self::Unread => std::io::pipe().unwrap().1.into(),
        }
    }
}

/// A project in which every command has something to say.
struct Scene {
    project: Project,
    server: ModelServer,
}

impl Scene {
    fn new() -> Self {
        let project = Project::with_session("s");
        project.write(
            "task.json",
            json!({ "orchestratorNote": "a note" }).to_string(),
        );
        project.write(
            "compose.json",
            json!({ "systemPrompt": "Be brief." }).to_string(),
        );
        project.write("AGENTS.md", "Be brief.");
        std::fs::create_dir_all(project.path().join(".agents/skills/pdf")).unwrap();
        project.write(
            ".agents/skills/pdf/SKILL.md",
            "---\nname: pdf\ndescription: Reads PDF.\n---\nRead it.\n",
        );
        project
            .ctx(&["pool", "add", "one", "--capability", "c", "--worker"])
            .success();
        project
            .ctx(&[
                "task",
                "dispatch",
                "x",
                "--id",
                "t-1",
                "--requires",
                "nothing",
            ])
            .success();
        project
            .ctx(&["agent", "create", "bot", "--backend", "native"])
            .success();
        let server = ModelServer::answering(|_| {
            Answer::Says(vec![Piece::Text("Well.\n"), Piece::Text("Done.")])
        });
        Self { project, server }
    }

    fn ctx(&self, args: &[&str]) -> Ctx {
        let at = ["--model", "openai:m", "--base-url", &self.server.url];
        let model = match args[0] {
            "run" | "chat" | "orchestrate" => &at[..],
            _ => &[],
        };
        self.project
            .ctx(&[args, model].concat())
            .env("OPENAI_API_KEY", "sk-of-the-tests-1234567890")
            // Nothing is fetched.
            .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
            .env("PIP_RETRIES", "0")
    }
}

/// Every command, with words that make it say something. Those of `ctx` that are missing here fail a test below.
fn commands() -> Vec<Vec<&'static str>> {
    let file = SESSION;
    let all: [&[&str]; 81] = [
        &["build", file],
        &["build", file, "--json"],
        &["build", file, "--format", "openai"],
        &["update", file],
        &["tokens", file],
        &["compose", "compose.json"],
        &["agent-context", "--task", "task.json"],
        &["sessions", "list"],
        &["sessions", "list", "--json"],
        &["sessions", "show", "s"],
        &["sessions", "show", "s", "--json"],
        &["sessions", "append", "a", file],
        &["sessions", "fork", "s"],
        &["sessions", "undo", "s"],
        &["sessions", "pin", "s", "u1"],
        &["sessions", "unpin", "s", "u1"],
        &["sessions", "export", "s"],
        &["sessions", "export", "s", "--format", "jsonl"],
        &["sessions", "export", "s", "-o", "out.html"],
        &["sessions", "import", "i", file],
        &["sessions", "rm", "none"],
        &["import", "j", file],
        &["inspect", "s"],
        &["inspect", "s", "--json"],
        &["diff", "s", "0", "1"],
        &["replay", "s"],
        &["replay", "s", "--verify"],
        &["replay", file, "--format", "openai"],
        &["doctor"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["serve", "link"],
        &["agent", "create", "other"],
        &["agent", "start", "bot"],
        &["agent", "prompt", "bot", "hi"],
        &["agent", "cancel", "bot"],
        &["agent", "permit", "bot"],
        &["agent", "stop", "bot"],
        &["agent", "restart", "bot"],
        &["agent", "list"],
        &["agent", "list", "--json"],
        &["agent", "show", "bot"],
        &["agent", "rm", "bot"],
        &["agent", "backends"],
        &["canvas", "show", "bot"],
        &["canvas", "list"],
        &["skills", "list"],
        &["skills", "show", "pdf"],
        &["model", "list"],
        &["model", "pull", "none"],
        &["model", "add", "x", file],
        &["model", "show", "none"],
        &["model", "rm", "none"],
        &["trust"],
        &["trust", "--list"],
        &["mcp", "list"],
        &["mcp", "tools"],
        &["mcp", "serve"],
        &["tool", "list"],
        &["tool", "call", "x"],
        &["inject"],
        &["inject", "--json"],
        &["pool", "list"],
        &["pool", "add", "two", "--capability", "c"],
        &["pool", "remove", "two"],
        &["pool", "catalog"],
        &["pool", "match", "c"],
        &["pool", "key", "one"],
        &["pool", "revoke-key", "one"],
        &["pool", "grant", "one", "t"],
        &["pool", "revoke", "one", "t"],
        &["task", "dispatch", "x", "--requires", "nothing"],
        &["task", "list"],
        &["task", "show", "t-1"],
        &["task", "cancel", "t-1"],
        &["worker", "--capability", "c"],
        &["orchestrate", "go"],
        &["run", "go"],
        &["run", "go", "--json"],
        &["acp"],
        &["demo", "--model", "none:x"],
        &["config", "schema"],
    ];
    let more: [&[&str]; 8] = [
        &["chat"],
        &["completions", "bash"],
        &["help"],
        &["--help"],
        &["--version"],
        &["no-such-command"],
        &["build", "--no-such-option", "--json"],
        &["build", "no-such-file", "--json"],
    ];
    all.into_iter().chain(more).map(<[&str]>::to_vec).collect()
}

/// The names of all commands, as the help has them.
fn listed(before: &[&str], found: &mut BTreeSet<Vec<String>>) {
    let help = ctx(&[before, &["--help"]].concat()).success();
    let Some((_, commands)) = help.split_once("Commands:\n") else {
        found.insert(before.iter().map(|&word| word.to_owned()).collect());
        return;
    };
    let lines = commands.lines().take_while(|line| !line.is_empty());
    for line in lines.filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        if name != "help" {
            listed(&[before, &[name]].concat(), found);
        }
    }
}

#[test]
fn no_command_is_left_out() {
    let mut found = BTreeSet::new();
    listed(&[], &mut found);
    assert!(found.len() > 50, "{found:?}");
    let tried = commands();
    let begins = |words: &[&str], name: &[String]| {
        words.iter().zip(name).filter(|(a, b)| a == b).count() == name.len()
    };
    for name in found {
        assert!(
            tried.iter().any(|words| begins(words, &name)),
            "{name:?} is not tried"
        );
    }
}

/// Runs a command with its streams so; gives its code and what it said where that could be read.
#[track_caller]
fn ended(mut command: Command, out: End, err: End) -> (Option<i32>, String) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out.stdio())
        .stderr(err.stdio())
        .spawn()
        .unwrap();
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut said = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut said);
            }
            String::from_utf8_lossy(&said).into_owned()
        })
    };
    let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let status = wait(&mut child);
    let said = stdout.join().unwrap() + &stderr.join().unwrap();
    match status {
        None => (None, said),
        Some(status) => {
            assert_eq!(status.signal(), None, "{command:?}: {said}");
            (status.code(), said)
        }
    }
}

/// How it ended; nothing where it serves, and had to be ended.
fn wait(child: &mut Child) -> Option<std::process::ExitStatus> {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[track_caller]
fn never_panics(out: End, err: End) {
    let scene = Scene::new();
    for args in commands() {
        // These serve for as long as somebody is there to be told.
        if matches!(args[0], "serve" | "worker") && out == End::Works {
            continue;
        }
        let (code, said) = ended(scene.ctx(&args).command(), out, err);
        let what = format!("{args:?} with {out:?} and {err:?}: {code:?} {said}");
        assert!(matches!(code, Some(0..=5)), "{what}");
        assert!(
            !said.contains("panicked") && !said.contains("RUST_BACKTRACE"),
            "{what}"
        );
    }
}

#[test]
fn a_full_disk_behind_stdout() {
    never_panics(End::Full, End::Works);
}

#[test]
fn a_full_disk_behind_stderr() {
    never_panics(End::Works, End::Full);
}

#[test]
fn a_full_disk_behind_both() {
    never_panics(End::Full, End::Full);
}

#[test]
fn nobody_reads_stdout() {
    never_panics(End::Unread, End::Works);
}

#[test]
fn nobody_reads_anything() {
    never_panics(End::Unread, End::Unread);
}

/// Data that is lost is a failure that says so, but to whoever has seen enough.
#[test]
fn what_could_not_be_written_is_said() {
    let scene = Scene::new();
    for args in [
        &["build", SESSION][..],
        &["build", SESSION, "--format", "openai"],
        &["sessions", "show", "s", "--json"],
        &["sessions", "export", "s"],
        &["replay", "s"],
        &["run", "go"],
        &["run", "go", "--json"],
        &["--help"],
        &["completions", "bash"],
        &["config", "schema"],
    ] {
        let (code, said) = ended(scene.ctx(args).command(), End::Full, End::Works);
        assert_eq!(code, Some(1), "{args:?}: {said}");
        assert!(said.contains("standard output: "), "{args:?}: {said}");
        let (code, said) = ended(scene.ctx(args).command(), End::Unread, End::Works);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        assert!(!said.contains("standard output"), "{args:?}: {said}");
    }
}

/// As `ctx … | head -1` has it, with more than a pipe holds behind that line.
#[test]
fn a_reader_that_leaves_in_the_middle() {
    let scene = Scene::new();
    let text = "a line of a session that is long enough\n".repeat(20_000);
    let line = json!({ "role": "user", "content": text }).to_string();
    scene
        .project
        .ctx(&["sessions", "append", "long"])
        .input(format!("{line}\n{line}\n"))
        .success();
    for args in [
        &["sessions", "show", "long", "--json"][..],
        &["sessions", "export", "long"],
        &["sessions", "export", "long", "--format", "jsonl"],
        &[
            "build",
            ".contexture/sessions/long/log.jsonl",
            "--budget",
            "2m",
            "--format",
            "openai",
        ],
    ] {
        let mut child = scene.ctx(args).command().spawn().unwrap();
        let mut out = BufReader::with_capacity(64, child.stdout.take().unwrap());
        let mut some = [0; 64];
        out.fill_buf().unwrap();
        out.read_exact(&mut some).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
        assert_eq!(said, "", "{args:?}");
    }
}

/// A shell that closes them: `ctx … >&- 2>&- <&-`.
#[test]
fn streams_that_were_never_open() {
    let scene = Scene::new();
    for closed in [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"] {
        for args in [
            &["build", SESSION][..],
            &["sessions", "list"],
            &["sessions", "append", "b", SESSION],
            &["build", "no-such-file"],
            &["run", "go"],
            &["--help"],
        ] {
            let ctx = scene.ctx(args).command();
            let mut shell = Command::new("sh");
            shell
                .arg("-c")
                .arg(format!("exec \"$@\" {closed}"))
                .arg("sh");
            shell.arg(ctx.get_program()).args(ctx.get_args());
            shell.current_dir(ctx.get_current_dir().unwrap());
            for (name, value) in ctx.get_envs() {
                match value {
                    Some(value) => shell.env(name, value),
                    None => shell.env_remove(name),
                };
            }
            let (code, said) = ended(shell, End::Works, End::Works);
            assert!(
                matches!(code, Some(0..=3)),
                "{args:?} {closed}: {code:?} {said}"
            );
            assert!(!said.contains("panicked"), "{args:?} {closed}: {said}");
        }
    }
}
