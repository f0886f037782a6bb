//! A project with its daemon.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Ctx, Project, ROOT};

pub struct Daemon {
    pub project: Project,
    pub url: String,
    pub sign_in: String,
    env: Vec<(String, String)>,
    child: Option<Child>,
}

/// An answer over HTTP.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
    }
}

impl Daemon {
    pub fn start() -> Self {
        Self::over(Project::new())
    }

    /// A daemon for a project that is there.
    pub fn over(project: Project) -> Self {
        Self::with(project, &[])
    }

    /// The same, with more in its environment.
    pub fn with(project: Project, env: &[(&str, &str)]) -> Self {
        let mut daemon = Self {
            project,
            url: String::new(),
            sign_in: String::new(),
            env: env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            child: None,
        };
        daemon.again();
        daemon
    }

    /// Starts it, for the first time or after its end.
    pub fn again(&mut self) {
        let serve = self
            .project
            .ctx(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut child = serve
            .command()
            .envs(self.env.iter().cloned())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).expect("what `ctx serve` says first");
        self.url = said["url"].as_str().unwrap().to_owned();
        self.sign_in = said["signIn"].as_str().unwrap().to_owned();
        self.child = Some(child);
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends it as a system does. How it ended.
    pub fn terminate(&mut self) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        child.wait().unwrap().code()
    }

    /// The daemon's process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn ctx(&self, args: &[&str]) -> Ctx {
        self.project.ctx(args)
    }

    /// Makes an agent of `agent.py` and starts it.
    pub fn agent(&self, name: &str, archetype: &str) -> Value {
        self.create(name, archetype, &[], &[]);
        self.ctx(&["agent", "start", name, "--json"]).json()
    }

    pub fn create(&self, name: &str, archetype: &str, options: &[&str], script: &[&str]) {
        let mut args = vec!["agent", "create", name, "--backend", "scripted"];
        args.extend(["--archetype", archetype]);
        args.extend(options);
        let file = format!("{ROOT}/tests/fleet/agent.py");
        args.extend(["--command", "python3", &file]);
        args.extend(script);
        self.ctx(&args).success();
    }

    /// What an agent says to a prompt.
    #[track_caller]
    pub fn prompt(&self, name: &str, text: &str) -> String {
        let lines = self.ctx(&["agent", "prompt", name, text, "--json"]).lines();
        let done = lines.last().unwrap();
        assert_eq!(done["type"], "done");
        done["text"].as_str().unwrap().to_owned()
    }

    pub fn show(&self, name: &str) -> Value {
        self.ctx(&["agent", "show", name, "--json"]).json()
    }

    /// Waits until an agent is in a state.
    #[track_caller]
    pub fn until(&self, name: &str, state: &str) -> Value {
        let mut last = Value::Null;
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            last = self.show(name);
            if last["state"] == state {
                return last;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{name} is not {state}: {last}");
    }

    /// The folder with the tokens of sessions.
    pub fn tokens(&self) -> PathBuf {
        self.project.state().join("tokens")
    }

    /// The tokens of sessions under way, from their files. Each is its owner's alone.
    pub fn kept_tokens(&self) -> Vec<String> {
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&self.tokens()), 0o700);
        let all = std::fs::read_dir(self.tokens()).unwrap();
        let all = all.map(|entry| {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            std::fs::read_to_string(path).unwrap()
        });
        let all: BTreeSet<String> = all.collect();
        all.into_iter().collect()
    }

    /// The owner's secret.
    pub fn secret(&self) -> String {
        let file = self.project.state().join("daemon.json");
        let daemon: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        daemon["secret"].as_str().unwrap().to_owned()
    }

    /// A call as anybody with this secret makes it.
    pub fn call(&self, secret: &str, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.post(
            &format!("Authorization: Bearer {secret}\r\n"),
            &body.to_string(),
        );
        serde_json::from_str(&answer.body).unwrap_or_else(|_| json!({"status": answer.status}))
    }

    pub fn post(&self, headers: &str, body: &str) -> Answer {
        let length = body.len();
        self.send(&format!(
            "POST /rpc HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}",
            self.host()
        ))
    }

    pub fn get(&self, path: &str, headers: &str) -> Answer {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n",
            self.host()
        ))
    }

    pub fn host(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.host()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    }

    pub fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let all = String::from_utf8_lossy(&all);
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        Answer {
            status: head
                .split(' ')
                .nth(1)
                .and_then(|code| code.parse().ok())
                .unwrap_or(0),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// A session prepared by the owner: its id and its token.
    pub fn prepare(&self, name: &str, archetype: &str) -> (String, String) {
        let meta = json!({"name": name, "archetype": archetype, "backendType": "native"});
        let answer = self.call(&self.secret(), "session.prepare", &json!({"meta": meta}));
        let text = |key: &str| answer["result"][key].as_str().unwrap().to_owned();
        (text("sessionId"), text("token"))
    }

    /// All that was logged as having happened, of one type.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        let folder = self.project.state().join("events");
        let mut all = Vec::new();
        for file in std::fs::read_dir(folder).into_iter().flatten() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap_or_default();
            all.extend(
                text.lines()
                    .filter_map(|line| serde_json::from_str::<Value>(line).ok()),
            );
        }
        all.retain(|event| event["type"] == kind);
        all
    }

    /// Waits until so many of them were logged.
    #[track_caller]
    pub fn logged(&self, kind: &str, many: usize) -> Vec<Value> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let all = self.events(kind);
            if all.len() >= many {
                return all;
            }
            assert!(Instant::now() < until, "{kind}: {} of {many}", all.len());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.terminate();
        }
    }
}

/// The processes that this one started and that are no corpses.
pub fn children(of: u32) -> Vec<i64> {
    let of = of.to_string();
    let is_child = |pid: &i64| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
        behind.split(' ').nth(1) == Some(&of)
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter(is_child).filter(|pid| runs(*pid)).collect()
}

/// Whether a process is there and is no corpse.
pub fn runs(pid: i64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .map(|(_, rest)| rest.starts_with('Z'));
    state == Some(false)
}

/// Processes whose command line or environment has this text.
pub fn processes(of: &str) -> Vec<i64> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i64>() else {
            continue;
        };
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let folder = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        if (words.contains(of) || folder.starts_with(of)) && runs(pid) {
            found.push(pid);
        }
    }
    found
}
