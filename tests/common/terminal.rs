//! A terminal of its own for one command: what comes out there, raw.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Ctx;

/// How long a command may take before it counts as one that goes on.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether there is a `script` that gives a command a terminal; says so where there is none.
pub fn script_missing() -> bool {
    let found = Command::new("script").arg("--version").output();
    let missing = !found.is_ok_and(|output| output.status.success());
    if missing {
        println!("skipped: there is no script");
    }
    missing
}

/// Runs it with a terminal at all three ends, and gives what it wrote there.
pub fn on_terminal(ctx: &Ctx) -> String {
    let command = ctx.command();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")));
    let line = quoted.collect::<Vec<_>>().join(" ");
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &line, "/dev/null"]);
    script.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    script
        .env("TERM", "xterm-256color")
        .env("SHELL", "/bin/sh")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = script.spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = std::io::Read::read_to_end(&mut out, &mut all);
        all
    });
    let since = Instant::now();
    // Nothing is typed; one that waits for a person is ended.
    let stdin = child.stdin.take();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > PATIENCE {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(stdin);
    String::from_utf8_lossy(&reading.join().unwrap()).into_owned()
}
