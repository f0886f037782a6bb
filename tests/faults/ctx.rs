//! The built program.

use std::path::Path;
use std::process::{Command, Output, Stdio};

pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ctx"));
    command
        .args(["--dir".as_ref(), folder.as_os_str()])
        .args(args)
        .env("HOME", folder.join(".home"))
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs it with nothing on its standard input.
pub fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).stdin(Stdio::null()).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Lines for `ctx sessions append`, without end.
pub fn messages(who: &str) -> impl Iterator<Item = String> {
    (0_u64..).map(move |n| {
        let text = format!("{who} {n} {}", "lorem ipsum ".repeat((n % 7) as usize * 3));
        format!("{}\n", serde_json::json!({"role": "user", "content": text}))
    })
}
