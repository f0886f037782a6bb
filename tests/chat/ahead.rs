//! Typing ahead: text that is typed while a reply arrives is there at the next prompt.

use serde_json::json;

use crate::chat::terminal::{Terminal, says, tmux_missing};
use crate::model_server::{Answer, Piece, event_count};

// needs: tmux
#[test]
fn what_is_typed_during_a_reply_is_said_next() {
    if tmux_missing() {
        return;
    }
    let long = vec![Piece::Text("The first half. The other half.")];
    let events = event_count("chat/completions", &long);
    let terminal = Terminal::start(
        [
            Answer::Stalls(long, events - 4),
            says("Second."),
            says("Third."),
            says("Fourth."),
        ],
        &[],
    );
    terminal.line("one", "The first half.");
    // Two lines, the beginning of a third, and something that was taken back.
    terminal.types("two").presses("Enter");
    terminal.types("three").presses("Enter");
    terminal.types("foux").presses("BSpace").types("r");
    // Ctrl-C stops the reply and takes nothing of it away.
    terminal.presses("C-c");
    terminal.sees("Third.");
    terminal.until("the line that was begun", |screen| {
        screen.trim_end().lines().next_back() == Some("› four")
    });
    terminal.presses("Enter");
    terminal.sees("Fourth.");
    terminal.leaves();
    let sent = terminal.server.seen()[3].json()["messages"].clone();
    let said: Vec<&str> = sent
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].as_str().unwrap())
        .filter(|text| !text.starts_with('<'))
        .collect();
    assert!(said.ends_with(&["one", "two", "three", "four"]), "{said:?}");
}

// needs: tmux
#[test]
fn what_is_typed_before_a_question_is_no_answer_and_not_lost() {
    if tmux_missing() {
        return;
    }
    let run = |id, command: &str| {
        let call = Piece::Call(id, "exec_shell", json!({ "command": command }));
        Answer::Says(vec![call])
    };
    let wait = "until [ -e go ]; do sleep 0.1; done";
    let terminal = Terminal::start(
        [
            run("c1", wait),
            run("c2", "echo made > file"),
            says("As you wish."),
            says("Hello."),
        ],
        &[],
    );
    terminal.line("go", wait);
    terminal.sees_question();
    terminal.types("y").presses("Enter");
    // While the tool runs. The next question comes only after that.
    terminal.types("y").presses("Enter");
    terminal.project.write("go", "");
    terminal.sees("command: echo made > file");
    terminal.sees_question();
    terminal.presses("Enter");
    terminal.sees("As you wish.");
    assert!(!terminal.project.path().join("file").exists());
    terminal.until("what was typed", |screen| {
        screen.trim_end().lines().next_back() == Some("› y")
    });
    terminal.presses("Enter");
    terminal.sees("Hello.");
    terminal.leaves();
}
