//! The built `ctx`, through one door, and a project of its own for each test.
#![allow(dead_code, reason = "each test binary uses its own share")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use contexture_store::UserState;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The repository's root.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// A session of 44 entries; with 4,000 tokens it is compacted once.
pub const SESSION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/session.jsonl");

/// One door to the program.
#[must_use]
pub struct Ctx {
    args: Vec<String>,
    input: Vec<u8>,
    dir: PathBuf,
    /// Nothing of whoever runs the tests: `.home` in the folder that it runs in, unless given.
    home: Option<PathBuf>,
    env: Vec<(String, String)>,
}

pub fn ctx(args: &[&str]) -> Ctx {
    Ctx {
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        input: Vec::new(),
        dir: PathBuf::from(ROOT),
        home: None,
        env: Vec::new(),
    }
}

impl Ctx {
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
        self
    }

    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The command, not started yet, with pipes at both ends.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ctx"));
        let home = self.home.clone();
        command
            .args(&self.args)
            .current_dir(&self.dir)
            .env_remove("CONTEXTURE_STORE_URL")
            .env_remove("CONTEXTURE_TRUST")
            .env("HOME", home.unwrap_or_else(|| self.dir.join(".home")))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("CONTEXTURE_MODELS")
            .envs(self.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(self) -> Output {
        let mut child = self.command().spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.input;
        let feeder = std::thread::spawn(move || {
            // The program may refuse before it has read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        output
    }

    /// Runs it, and looks at its memory until it ends.
    pub fn measured(self) -> Measured {
        let began = Instant::now();
        let mut child = self.command().spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.input;
        let feeder = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let pid = child.id();
        let watcher = std::thread::spawn(move || {
            let mut most = 0;
            while let Some(now) = peak_kib(pid) {
                most = most.max(now);
                std::thread::sleep(Duration::from_millis(2));
            }
            most
        });
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        Measured {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            peak_kib: watcher.join().unwrap(),
            took: began.elapsed(),
        }
    }

    #[track_caller]
    pub fn success(self) -> String {
        let args = self.args.join(" ");
        let (stdout, stderr) = self.ends(0);
        assert!(!stderr.contains("panicked"), "ctx {args}: {stderr}");
        stdout
    }

    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.success()).unwrap()
    }

    /// A JSON document a line.
    #[track_caller]
    pub fn lines(self) -> Vec<Value> {
        let text = self.success();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Ends with this code; what it printed and what it said.
    #[track_caller]
    pub fn ends(self, code: i32) -> (String, String) {
        let args = self.args.join(" ");
        let output = self.run();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "ctx {args}: {stderr}");
        assert!(!stderr.contains("panicked"), "ctx {args}: {stderr}");
        (String::from_utf8(output.stdout).unwrap(), stderr)
    }

    /// Fails with this code, says `needle`, prints no data, and never panics.
    #[track_caller]
    pub fn failure(self, code: i32, needle: &str) -> String {
        let args = self.args.join(" ");
        let (stdout, stderr) = self.ends(code);
        assert!(
            stderr.contains(needle),
            "ctx {args}: `{needle}` is not in: {stderr}"
        );
        assert!(
            stdout.is_empty(),
            "ctx {args} printed data and failed: {stdout}"
        );
        stderr
    }

    /// The same with `--json`: the last line of what it says, as data.
    #[track_caller]
    pub fn failure_json(mut self, code: i32, needle: &str) -> Value {
        self.args.push("--json".to_owned());
        let stderr = self.failure(code, needle);
        let last: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
        assert!(!last["error"]["message"].as_str().unwrap().is_empty());
        last["error"].clone()
    }
}

/// What a command did, and what it took.
pub struct Measured {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// The most memory that it had, in KiB.
    pub peak_kib: u64,
    pub took: Duration,
}

/// The most memory that a process has had so far, in KiB; none where it is gone.
pub fn peak_kib(pid: u32) -> Option<u64> {
    status_kib(pid, "VmHWM:")
}

/// What a process is said to have in memory, in KiB.
pub fn status_kib(pid: u32, what: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(what))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A project in a folder of its own, gone with the test.
pub struct Project {
    folder: TempDir,
    home: PathBuf,
}

impl Project {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A project of its own, wherever the temporary folder is.
        std::fs::create_dir(folder.path().join(".contexture")).unwrap();
        let home = folder.path().join(".home");
        Self { folder, home }
    }

    /// The same, for somebody whose home is elsewhere.
    pub fn of_user(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        Self {
            home,
            ..Self::new()
        }
    }

    /// With the example session, as it was run with 4,000 tokens: 61 entries and a header, 16
    /// requests, one compaction.
    pub fn with_session(name: &str) -> Self {
        let project = Self::new();
        project
            .ctx(&["sessions", "import", name, SESSION, "--budget", "4k"])
            .success();
        project
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn ctx(&self, args: &[&str]) -> Ctx {
        ctx(args).dir(self.path()).home(&self.home)
    }

    /// The home of whoever works on it.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The user's state folder.
    pub fn user_state(&self) -> PathBuf {
        self.home().join(".local/state/contexture")
    }

    /// Where what acts in the project is kept for its user.
    pub fn state(&self) -> PathBuf {
        UserState::new(self.user_state())
            .of_project(self.path())
            .unwrap()
    }

    /// A session's file.
    pub fn log(&self, session: &str) -> PathBuf {
        self.path()
            .join(format!(".contexture/sessions/{session}/log.jsonl"))
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Appends what a user and an assistant say by turns; gives the ids.
    #[track_caller]
    pub fn say(&self, session: &str, texts: &[&str]) -> Vec<String> {
        let lines: String = texts
            .iter()
            .enumerate()
            .map(|(n, text)| format!("{}\n", message(["user", "assistant"][n % 2], text)))
            .collect();
        let append = self.ctx(&["sessions", "append", session]).input(lines);
        append.success().lines().map(str::to_owned).collect()
    }

    /// The entries of a session, as `show --json` gives them.
    #[track_caller]
    pub fn entries(&self, session: &str) -> Vec<Value> {
        self.ctx(&["sessions", "show", session, "--json"]).lines()
    }

    /// The first entry of a type.
    #[track_caller]
    pub fn entry_of(&self, session: &str, kind: &str) -> Value {
        let entries = self.entries(session);
        let found = entries.into_iter().find(|entry| entry["type"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {session}"))
    }
}

pub fn message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

/// An entry's id.
pub fn id(entry: &Value) -> String {
    entry["id"].as_str().unwrap().to_owned()
}

pub fn ids(entries: &[Value]) -> Vec<String> {
    entries.iter().map(id).collect()
}

/// The origins of a receipt's items, or of what it excludes.
pub fn origins(result: &Value, key: &str) -> Vec<String> {
    let items = result["receipt"][key].as_array().unwrap().iter();
    items
        .map(|item| item["origin"].as_str().unwrap().to_owned())
        .collect()
}

/// The rule under which an entry is in a request, or out of it.
pub fn rule_of(result: &Value, entry: &str) -> String {
    let receipt = &result["receipt"];
    let lists = [&receipt["items"], &receipt["excluded"]];
    let mut all = lists.into_iter().flat_map(|list| list.as_array().unwrap());
    let item = all.find(|item| item["origin"] == format!("entry:{entry}"));
    item.map_or("nowhere", |item| item["rule"].as_str().unwrap())
        .to_owned()
}
