//! The shell, with real commands. One file for each attack, by its number; `plain` is what it does on
//! any other day.

mod a29_chained;
mod a30_environment;
mod a32_protected;
mod a33_network;
mod a34_bombs;
mod a44_credentials;
mod a45_repositories;
mod a46_attributes;
mod ending;
mod everyday;
mod output;
mod plain;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use contexture::Content;
use contexture_tools::shell::sandbox::{Sandbox, available};
use contexture_tools::shell::{Shell, ShellOptions, Unsandboxed};
use contexture_tools::{Outcome, Tool};
use serde_json::{Value, json};

/// A project with a home beside it.
struct Project {
    _folder: tempfile::TempDir,
    root: PathBuf,
    home: PathBuf,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, home) = (base.join("project"), base.join("home"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&home).unwrap();
        Self {
            _folder: folder,
            root,
            home,
        }
    }

    /// With a sandbox if one works, and else without.
    fn options(&self) -> ShellOptions {
        ShellOptions {
            home: self.home.clone(),
            unsandboxed: Unsandboxed::Run,
            ..ShellOptions::new(&self.root)
        }
    }

    fn shell(&self) -> Shell {
        Shell::new(self.options()).unwrap()
    }

    fn within(&self, sandbox: Sandbox) -> Shell {
        let options = ShellOptions {
            sandbox: Some(sandbox),
            unsandboxed: Unsandboxed::Refuse,
            ..self.options()
        };
        Shell::new(options).unwrap()
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

async fn run(shell: &Shell, command: &str) -> Outcome {
    call(shell, &json!({ "command": command })).await
}

async fn call(shell: &Shell, arguments: &Value) -> Outcome {
    shell.call(arguments.as_object().unwrap()).await
}

#[track_caller]
fn text(outcome: &Outcome) -> &str {
    match &outcome.content {
        Content::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_has(outcome: &Outcome, part: &str) {
    assert!(
        text(outcome).contains(part),
        "no {part:?} in:\n{}",
        text(outcome)
    );
}

/// Every sandbox that works here.
fn sandboxes() -> Vec<Sandbox> {
    let all = [Sandbox::Mounts, Sandbox::Bubblewrap, Sandbox::Landlock];
    let works: Vec<_> = all.into_iter().filter(|it| available().has(*it)).collect();
    if works.is_empty() {
        eprintln!("skipped: no sandbox works here: {:?}", available());
    }
    works
}

/// Waits until something holds, and fails after a time that is only there against hanging.
#[track_caller]
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process runs whose command line has `words` in it.
fn runs(words: &str) -> bool {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let line = |path: &Path| fs::read(path.join("cmdline")).unwrap_or_default();
    pids.map(|pid| line(&pid.path())).any(|line| {
        let line = line
            .split(|byte| *byte == 0)
            .collect::<Vec<_>>()
            .join(&b' ');
        String::from_utf8_lossy(&line).contains(words)
    })
}

/// A number of seconds that no other test sleeps for.
fn own_sleep() -> String {
    use std::hash::{BuildHasher, RandomState};
    let number = RandomState::new().hash_one(0) % 1_000_000_000;
    format!("7{number:09}")
}
