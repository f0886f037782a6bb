//! Runs a command, and sees how much memory it took at most, and what it wrote to a terminal.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::Ctx;

/// How much more memory than usual a single input may take, in KiB.
pub const MOST_KIB: u64 = 256 << 10;
/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a command.
pub struct Watched {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    /// The most memory that it had, in KiB.
    pub peak: u64,
}

/// Runs it with nothing on its standard input.
pub fn watched(ctx: &Ctx) -> Watched {
    let mut command = ctx.command();
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (out, err) = (reading(out), reading(err));
    let begun = Instant::now();
    let mut most = 0;
    let status = loop {
        most = most.max(peak(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            // It counts as one that was ended by a signal.
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    Watched {
        code: status.code(),
        out: out.join().unwrap(),
        err: err.join().unwrap(),
        peak: most,
    }
}

/// A pipe may hold more than anybody wants to see, and must not fill up.
fn reading(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// The most memory that a process has had so far, in KiB.
pub fn peak(pid: u32) -> u64 {
    status(pid, "VmHWM:")
}

/// The memory that it has now.
pub fn resident(pid: u32) -> u64 {
    status(pid, "VmRSS:")
}

fn status(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .unwrap_or_default();
    line.split_ascii_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .unwrap_or(0)
}

impl Watched {
    /// What is wrong with how it ended.
    pub fn bad_end(&self, name: &str) -> Option<String> {
        let well = matches!(self.code, Some(0..=5)) && !self.err.contains("panicked");
        (!well).then(|| format!("{name}: {:?} {}", self.code, tail(&self.err)))
    }

    /// The same, and what is wrong with the memory that it had beside `usual`.
    pub fn unbounded(&self, name: &str, usual: u64) -> Vec<String> {
        let over = self.peak.saturating_sub(usual);
        println!("hostile peers: {name}: {} MiB", over >> 10);
        let much = (over >= MOST_KIB).then(|| format!("{name} took {} MiB", over >> 10));
        self.bad_end(name).into_iter().chain(much).collect()
    }
}

fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(400);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// Whether script(1) is there to make a terminal; says so where it is not.
pub fn script_missing() -> bool {
    let missing = Command::new("script").arg("--version").output().is_err();
    if missing {
        println!("skipped: `script` is not there to make a terminal");
    }
    missing
}

/// All that a command writes to a terminal where somebody answers no to whatever is asked.
pub fn on_a_terminal(ctx: &Ctx) -> String {
    let inner = ctx.command();
    let quoted =
        |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"));
    let line: Vec<String> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(quoted)
        .collect();
    let mut command = Command::new("timeout");
    command
        .args(["60", "script", "-qec", &line.join(" "), "/dev/null"])
        .current_dir(inner.get_current_dir().unwrap());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .env("SHELL", "/bin/sh");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Held open until the end: a terminal that closes is not one where somebody is.
    let mut stdin = child.stdin.take().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    let answering = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            // Many a command is gone before it was asked anything.
            let _ = stdin.write_all(b"n\n");
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    over.store(true, Ordering::Relaxed);
    answering.join().unwrap();
    assert_ne!(status.code(), Some(124), "ctx {line:?} does not end");
    String::from_utf8_lossy(&stdout).into_owned()
}
