//! A terminal with `ctx chat` in it.

use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::Project;
use crate::model_server::{Answer, ModelServer, Piece};

/// How long anything may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal.
pub struct Pane {
    /// The terminal's socket, and the user's home.
    home: TempDir,
}

/// A terminal with a chat in it, and the model that answers.
pub struct Terminal {
    pub project: Project,
    pub server: ModelServer,
    pane: Pane,
}

impl Deref for Terminal {
    type Target = Pane;

    fn deref(&self) -> &Pane {
        &self.pane
    }
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
            pane: Pane::new(),
        };
        terminal.open(args);
        terminal
    }

    /// Opens the terminal with a chat in the session `talk`.
    pub fn open(&self, args: &[&str]) {
        let mut words = vec!["--session", "talk"];
        words.extend(args);
        self.opens(&words);
    }

    /// Opens the terminal, anew where there was one, with a chat of these words.
    pub fn opens(&self, args: &[&str]) {
        let mut words = vec!["chat", "--model", "openai:gpt-4o"];
        words.extend(["--base-url", &self.server.url]);
        words.extend(args);
        self.runs(self.project.path(), self.home(), &words);
    }

    /// Leaves with Ctrl-D; the log can be verified.
    #[track_caller]
    pub fn leaves(&self) {
        self.sees_prompt();
        self.presses("C-d");
        self.sees("left with 0");
        self.project.ctx(&["replay", "talk", "--verify"]).success();
    }
}

impl Pane {
    pub fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// Opens the terminal, anew where there was one, with `ctx` in a folder.
    pub fn runs(&self, dir: &Path, home: &Path, args: &[&str]) {
        let _ = self.command(&["kill-server"]).output();
        let start = Instant::now();
        let still = || self.command(&["list-sessions"]).output();
        while still().is_ok_and(|output| output.status.success()) {
            assert!(
                start.elapsed() < PATIENCE,
                "the terminal before does not close"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
        let line = format!(
            "trap : INT; HOME='{}' '{}' {}; echo \"left with $?\"; exec cat",
            home.display(),
            env!("CARGO_BIN_EXE_ctx"),
            words.join(" ")
        );
        let mut command = self.command(&["-f", "/dev/null", "new-session", "-d"]);
        command
            .args(["-x", "100", "-y", "50", "sh", "-c", &line])
            .current_dir(dir);
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

    /// Gives the terminal another width.
    pub fn resizes(&self, columns: usize) -> &Self {
        let columns = columns.to_string();
        done(
            self.command(&["resize-window", "-x", &columns, "-y", "50"])
                .output(),
        );
        self
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

    /// Waits until the screen is like that; gives all of it.
    #[track_caller]
    pub fn until(&self, why: &str, enough: impl Fn(&str) -> bool) -> String {
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

impl Drop for Pane {
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
