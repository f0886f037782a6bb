//! Which session a chat takes place in, and what is said first.

use serde_json::json;

use crate::chat::terminal::{Terminal, says, tmux_missing};
use crate::common::{Ctx, Project, message};
use crate::model_server::ModelServer;

fn chat(project: &Project, server: &ModelServer, args: &[&str]) -> Ctx {
    let mut words = vec![
        "chat",
        "--model",
        "openai:gpt-4o",
        "--base-url",
        &server.url,
    ];
    words.extend(args);
    project.ctx(&words).input("")
}

#[test]
fn the_newest_session_or_a_named_one_goes_on() {
    let project = Project::new();
    let server = ModelServer::start(["One.", "Two.", "Three.", "Four."].map(says));
    chat(&project, &server, &["--continue", "hello"]).failure(2, "no session to continue");
    chat(&project, &server, &["--session", "old", "first"]).success();
    chat(&project, &server, &["--session", "new", "second"]).success();
    // Which one was written to last does not depend on the clock's steps.
    let touched = std::fs::File::options()
        .append(true)
        .open(project.log("old"))
        .unwrap();
    touched
        .set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(60))
        .unwrap();
    chat(&project, &server, &["--continue", "third"]).success();
    chat(&project, &server, &["fourth", "--resume", "old"]).success();
    let said = |key: &str| -> Vec<String> {
        let entries = project.entries(key);
        let users = entries
            .iter()
            .filter(|entry| entry["payload"]["message"]["role"] == "user");
        users
            .map(|entry| {
                entry["payload"]["message"]["content"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(said("new"), ["second", "third"]);
    assert_eq!(said("old"), ["first", "fourth"]);
    let sessions = project.ctx(&["sessions", "list", "--json"]).json();
    assert_eq!(sessions.as_array().unwrap().len(), 2);
}

#[test]
fn a_session_that_is_not_there_is_not_begun() {
    let project = Project::new();
    let server = ModelServer::start([]);
    chat(&project, &server, &["--resume", "nosuch"]).failure(1, "there is no session `nosuch`");
    chat(&project, &server, &["--resume"]).failure(2, "--resume needs the name of a session");
    chat(&project, &server, &["--continue", "--session", "x"]).failure(2, "cannot be used with");
    chat(&project, &server, &["--continue", "--resume", "x"]).failure(2, "cannot be used with");
    assert_eq!(
        project.ctx(&["sessions", "list", "--json"]).json(),
        json!([])
    );
}

// needs: tmux
#[test]
fn a_session_is_chosen_from_a_list() {
    if tmux_missing() {
        return;
    }
    let terminal = Terminal::start(["Good day.", "**Again**, you."].map(says), &["hello first"]);
    // The first prompt is shown as if it had been typed.
    terminal.sees("› hello first");
    terminal.sees("Good day.");
    terminal.leaves();
    let other = message("user", "another question").to_string();
    let append = terminal.project.ctx(&["sessions", "append", "other", "-"]);
    append.home(terminal.home()).input(other).success();
    terminal.opens(&["--resume"]);
    let screen = terminal.sees("number or name ›");
    assert!(
        screen.contains("talk") && screen.contains("hello first"),
        "{screen}"
    );
    assert!(
        screen.contains("1  other") && screen.contains("another question"),
        "{screen}"
    );
    terminal.types("nosuch").presses("Enter");
    terminal.sees("there is no session `nosuch`");
    terminal.types("2").presses("Enter");
    // The last exchange is shown again.
    let screen = terminal.sees_prompt();
    let (_, screen) = screen.split_once("/help").unwrap();
    assert!(
        screen.contains("› hello first") && screen.contains("Good day."),
        "{screen}"
    );
    terminal.line("and now?", "Again, you.");
    terminal.leaves();
}
