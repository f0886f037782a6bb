//! A terminal with `ctx chat` in it.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::Project;
use crate::model_server::{Answer, ModelServer, Piece};

/// How long anything may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Terminal {
    pub project: Project,
    pub server: ModelServer,
    /// The terminal's socket, and the user's home.
    home: TempDir,
}

/// Whether there is a tmux; says so where there is none.
pub fn tmux_missing() -> bool {
    let found = Command::new("tmux").arg("-V").output();
    let missing = !found.is_ok_and(|output| output.status.success());
    if missing {
        println!("skipped: there is no tmux");
    }
    missing
}

pub fn says(text: &'static str) -> Answer {
    Answer::Says(vec![Piece::Text(text)])
}

impl Terminal {
    /// A chat in a new project, with a model that answers from the script.
    pub fn start(script: impl IntoIterator<Item = Answer>, args: &[&str]) -> Self {
        Self::start_in(Project::new(), script, args)
    }

    pub fn start_in(
        project: Project,
        script: impl IntoIterator<Item = Answer>,
        args: &[&str],
    ) -> Self {
        let terminal = Self {
            project,
            server: ModelServer::start(script),
            home: tempfile::tempdir().unwrap(),
        };
        terminal.open(args);
        terminal
    }

    /// Opens the terminal, anew where there was one.
    pub fn open(&self, args: &[&str]) {
        let mut words = vec!["chat", "--session", "talk", "--model", "openai:gpt-4o"];
        words.extend(["--base-url", &self.server.url]);
        words.extend(args);
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let line = format!(
            "trap : INT; '{}' {}; echo \"left with $?\"; exec cat",
            env!("CARGO_BIN_EXE_ctx"),
            words.join(" ")
        );
        let mut command = self.command(&["-f", "/dev/null", "new-session", "-d"]);
        command
            .args(["-x", "100", "-y", "50", "sh", "-c", &line])
            .current_dir(self.project.path());
        done(command.output());
    }

    /// Types, letter by letter.
    pub fn types(&self, text: &str) -> &Self {
        done(self.command(&["send-keys", "-l", text]).output());
        self
    }

    /// Presses keys: `Enter`, `C-c`.
    pub fn presses(&self, key: &str) -> &Self {
        done(self.command(&["send-keys", key]).output());
        self
    }

    /// Types a line, once the prompt is there, and waits until something is on the screen.
    #[track_caller]
    pub fn line(&self, text: &str, then: &str) -> String {
        self.sees_prompt();
        self.types(text).presses("Enter");
        self.sees(then)
    }

    /// Pastes, as a terminal does that marks what is pasted.
    pub fn pastes(&self, text: &str) -> &Self {
        done(self.command(&["set-buffer", text]).output());
        done(self.command(&["paste-buffer", "-p"]).output());
        self
    }

    /// Waits until the screen, or what went off it, has this text; gives all of it.
    #[track_caller]
    pub fn sees(&self, text: &str) -> String {
        self.until(&format!("no `{text}`"), |screen| screen.contains(text))
    }

    /// Waits until the chat waits for a line, with nothing on it yet.
    #[track_caller]
    pub fn sees_prompt(&self) -> String {
        self.until("no prompt", |screen| {
            screen.trim_end().lines().next_back() == Some("›")
        })
    }

    /// Waits until the chat waits for the answer to a question.
    #[track_caller]
    pub fn sees_question(&self) -> String {
        self.until("no question", |screen| {
            let last = screen.trim_end().lines().next_back();
            last.is_some_and(|line| line.trim_end().ends_with("Enter no ›"))
        })
    }

    #[track_caller]
    fn until(&self, why: &str, enough: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if enough(&screen) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "{why} in:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// All that is and was on the screen.
    pub fn screen(&self) -> String {
        let output = self.command(&["capture-pane", "-p", "-S", "-"]).output();
        String::from_utf8(done(output).stdout).unwrap()
    }

    /// Leaves with Ctrl-D; the log can be verified.
    #[track_caller]
    pub fn leaves(&self) {
        self.sees_prompt();
        self.presses("C-d");
        self.sees("left with 0");
        self.project.ctx(&["replay", "talk", "--verify"]).success();
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-u")
            .arg("-S")
            .arg(self.home.path().join("tmux"))
            .args(args)
            .env("HOME", self.home.path())
            .env("SHELL", "/bin/sh")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX")
            .env_remove("NO_COLOR")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CONTEXTURE_STORE_URL");
        command
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

#[track_caller]
fn done(output: std::io::Result<Output>) -> Output {
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tmux: {said}");
    output
}
