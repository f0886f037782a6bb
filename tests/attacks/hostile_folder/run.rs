//! Runs a command under the tracer, and says what it did that it may not do.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use super::commands::{Line, TO_THE_DAEMON};
use super::plants::{MARK, OUTSIDE};
use super::rules::Rules;
use super::trace;
use super::world::{World, found};

/// How long a command may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one that serves is left alone.
const SERVES: Duration = Duration::from_millis(300);

/// Whether there is a tracer; says so where there is none.
pub fn tracer_missing() -> bool {
    let found = std::process::Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "true"])
        .output();
    let missing = !found.is_ok_and(|output| output.status.success());
    if missing {
        println!("skipped: there is no strace that may trace");
    }
    missing
}

/// A hostile folder, with what may be done there.
pub struct Place<'a> {
    pub world: &'a World,
    pub project: PathBuf,
}

impl Place<'_> {
    /// What the command did that it may not do.
    pub fn breaches(&self, line: &Line) -> Vec<String> {
        let traced = Traced::start(self, line, &[]);
        let mut ports = vec![self.world.model_port()];
        let mut all = Vec::new();
        if line.command == "serve"
            && let Some(port) = traced.port()
        {
            ports.push(port);
            for line in TO_THE_DAEMON {
                all.extend(Traced::start(self, line, &[port]).end(
                    &Line {
                        serves: false,
                        ..*line
                    },
                    &ports,
                ));
            }
        }
        all.extend(traced.end(line, &ports));
        all
    }

    fn filled(&self, text: &str) -> String {
        let (home, project) = (self.world.home(), &self.project);
        text.replace("{home}", home.to_str().unwrap())
            .replace("{project}", project.to_str().unwrap())
    }
}

/// A command that runs.
struct Traced<'a> {
    place: &'a Place<'a>,
    child: Child,
    /// Its output, its errors and its trace.
    files: [PathBuf; 3],
}

impl<'a> Traced<'a> {
    fn start(place: &'a Place<'a>, line: &Line, told: &[u16]) -> Self {
        let name = if told.is_empty() { "1" } else { "2" };
        let files =
            ["out", "err", "trace"].map(|kind| place.world.base.join(format!("{kind}{name}")));
        let input = place.world.base.join(format!("in{name}"));
        fs::write(&input, place.filled(line.input)).unwrap();
        // A trace of before would be taken for this one's.
        let _ = fs::remove_file(&files[2]);
        let mut command = place.world.command(found("strace").unwrap());
        command
            .args([
                "-f",
                "--seccomp-bpf",
                "-y",
                "-qq",
                "-s",
                "4096",
                "-e",
                "signal=none",
                "-e",
            ])
            .arg(format!("trace={}", trace::CALLS))
            .arg("-o")
            .arg(&files[2])
            .arg(env!("CARGO_BIN_EXE_ctx"))
            .args(line.command.split(' '))
            .args(line.args.iter().map(|arg| place.filled(arg)))
            .current_dir(&place.project)
            .stdin(File::open(input).unwrap())
            .stdout(File::create(&files[0]).unwrap())
            .stderr(File::create(&files[1]).unwrap())
            .process_group(0);
        if matches!(line.command, "mcp serve" | "tool call" | "tool list") {
            command.env("CONTEXTURE_SESSION_TOKEN", "7".repeat(64));
        }
        if line.input.is_empty() {
            command.stdin(Stdio::null());
        }
        let child = command.spawn().unwrap();
        Self {
            place,
            child,
            files,
        }
    }

    /// Where the daemon that it is listens, once it says so.
    fn port(&self) -> Option<u16> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.is_over() {
            let said = fs::read_to_string(&self.files[0]).unwrap_or_default();
            if let Some(first) = said.lines().next()
                && let Ok(said) = serde_json::from_str::<Value>(first)
            {
                return said["url"].as_str()?.rsplit_once(':')?.1.parse().ok();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Waits for its end, or ends it; then looks at everything.
    fn end(mut self, line: &Line, ports: &[u16]) -> Vec<String> {
        let begun = Instant::now();
        let mut told = false;
        let mut all = Vec::new();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // Before it has begun to serve, what we tell it ends it as it would end any program.
                let by_us = told && status.signal() == Some(Signal::TERM.as_raw());
                break if by_us { Some(0) } else { status.code() };
            }
            if line.serves && !told && begun.elapsed() > SERVES {
                told = true;
                self.tell();
            }
            if begun.elapsed() > PATIENCE {
                all.push(format!("does not end within {} s", PATIENCE.as_secs()));
                let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
                break self.child.wait().unwrap().code();
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let [out, err, trace] = &self.files;
        let text =
            |file: &Path| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
        let (out, err) = (text(out), text(err));
        if !matches!(code, Some(0..=5)) || err.contains("panicked") {
            let last: String = err
                .chars()
                .rev()
                .take(200)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect();
            all.push(format!("ends with {code:?}: {last}"));
        }
        for said in [&out, &err] {
            if said.contains(OUTSIDE) {
                all.push("shows what is outside".to_owned());
            }
        }
        let world = self.place.world;
        for seen in world.model.take_seen() {
            let body = String::from_utf8_lossy(&seen.body).into_owned();
            if let Some(at) = body.find(MARK).or_else(|| body.find(OUTSIDE)) {
                let shown: String = body[at..].chars().take(24).collect();
                all.push(format!("tells the model {shown}"));
            }
        }
        let rules = Rules {
            ctx: env!("CARGO_BIN_EXE_ctx").into(),
            writable: world
                .own()
                .into_iter()
                .chain([self.place.project.clone()])
                .collect(),
            forbidden: world.bait.outside.join(".contexture"),
            peers: ports.to_vec(),
            starts: line.starts,
            tries_sandbox: line.tries_sandbox,
        };
        let calls = trace::read(&fs::read(trace).unwrap_or_default(), &self.place.project);
        assert!(
            calls.iter().any(|call| call.name == "execve"),
            "{line:?} was not traced: {err}"
        );
        all.extend(rules.breaches(&calls));
        all
    }

    /// Tells the command itself to end, not its tracer.
    fn tell(&self) {
        let trace = fs::read_to_string(&self.files[2]).unwrap_or_default();
        let pid = trace
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    fn is_over(&self) -> bool {
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_none_or(|(_, rest)| rest.starts_with('Z'))
    }
}
