//! Turns at a terminal: text, tools, Ctrl-C, Ctrl-D.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::chat::terminal::{Terminal, says, tmux_missing};
use crate::common::message;
use crate::model_server::{Answer, Piece, event_count};

// needs: tmux
#[test]
fn a_conversation_with_a_tool() {
    if tmux_missing() {
        return;
    }
    let call = Piece::Call("c1", "skills_list", json!({}));
    let terminal = Terminal::start(
        [
            says("Good day to you."),
            Answer::Says(vec![Piece::Thinking("what is there?"), call]),
            says("There are none."),
        ],
        &[],
    );
    let greeting = terminal.sees_prompt();
    assert!(greeting.contains("talk"), "{greeting}");
    assert!(greeting.contains("gpt-4o · 128,000 tokens"), "{greeting}");
    assert!(greeting.contains("/help"), "{greeting}");
    let screen = terminal.line("hello", "Good day to you.");
    assert!(screen.contains("› hello"), "{screen}");
    terminal.sees("64 % cached · 7 out");
    let screen = terminal.line("which skills?", "There are none.");
    assert!(screen.contains("✓ skills_list"), "{screen}");
    assert!(screen.contains("what is there?"), "the thought: {screen}");
    terminal.leaves();
    assert_eq!(terminal.server.left(), 0);
    let history = terminal.home().join(".local/state/contexture/history");
    let text = std::fs::read_to_string(&history).unwrap();
    assert!(text.contains("hello\nwhich skills?"), "{text}");
    let mode = std::fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

// needs: tmux
#[test]
fn ctrl_c_stops_the_turn_and_the_chat_goes_on() {
    if tmux_missing() {
        return;
    }
    let long = vec![Piece::Text("The first half. The other half.")];
    let events = event_count("chat/completions", &long);
    // All but the end of the text arrives, then nothing more.
    let terminal = Terminal::start([Answer::Stalls(long, events - 4), says("Yes, still.")], &[]);
    terminal.line("talk to me", "The first half.");
    terminal.presses("C-c");
    terminal.sees("stopped");
    terminal.line("still there?", "Yes, still.");
    terminal.leaves();
    // What arrived before is a part of the conversation.
    let entries = terminal.project.entries("talk");
    let kept = entries
        .iter()
        .find(|entry| entry["meta"]["interrupted"] == true)
        .expect("the answer that was stopped");
    let text = kept["payload"]["message"]["content"].as_str().unwrap();
    assert!(text.starts_with("The first half."), "{text}");
    let sent = terminal.server.seen()[1].json();
    let messages = sent["messages"].as_array().unwrap();
    assert!(messages.contains(&message("assistant", text)), "{sent}");
}

// needs: tmux
#[test]
fn keys_at_the_prompt() {
    if tmux_missing() {
        return;
    }
    let terminal = Terminal::start([says("Three lines, I see."), says("A script.")], &[]);
    terminal.sees_prompt();
    terminal.presses("C-c");
    terminal.sees("Ctrl-D or /quit leaves");
    terminal.sees_prompt();
    terminal.types("never said");
    terminal.sees("never said");
    terminal.presses("C-c");
    terminal.sees_prompt();
    for line in ["one\\", "two\\"] {
        terminal.types(line).presses("Enter");
    }
    terminal.types("three").presses("Enter");
    terminal.sees("Three lines, I see.");
    terminal.sees_prompt();
    terminal.pastes("ls \\\n  -l\nwc");
    terminal.sees("  -l");
    terminal.presses("Enter");
    terminal.sees("A script.");
    terminal.leaves();
    let sent = terminal.server.seen()[1].json();
    let said: Vec<&str> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert!(said.contains(&"one\ntwo\nthree"), "{said:?}");
    assert!(said.contains(&"ls \\\n  -l\nwc"), "{said:?}");
}

// needs: tmux
#[test]
fn an_error_is_said_and_the_chat_goes_on() {
    if tmux_missing() {
        return;
    }
    let refused = json!({"error": {"message": "no such key \u{1b}[2J", "type": "invalid_request_error", "code": "invalid_api_key"}});
    let terminal = Terminal::start(
        [
            Answer::Status(401, vec![], refused.to_string()),
            says("Better now."),
        ],
        &[],
    );
    terminal.line("hello", "✗");
    terminal.line("again?", "Better now.");
    terminal.leaves();
}

// needs: tmux
#[test]
fn nothing_acts_before_it_was_allowed() {
    if tmux_missing() {
        return;
    }
    let write = |id, name: &str| {
        let command = format!("echo made > {name}");
        Answer::Says(vec![Piece::Call(
            id,
            "exec_shell",
            json!({ "command": command }),
        )])
    };
    let terminal = Terminal::start(
        [
            write("c1", "first"),
            says("It is there."),
            write("c2", "second"),
            says("As you wish."),
            write("c3", "third"),
            says("Hello again."),
            write("c1", "first"),
            says("And again."),
        ],
        &[],
    );
    let made = |name: &str| terminal.project.path().join(name).exists();
    let screen = terminal.line("make the first", "Allow exec_shell?");
    assert!(screen.contains("command: echo made > first"), "{screen}");
    terminal.sees_question();
    terminal.types("a").presses("Enter");
    terminal.sees("It is there.");
    assert!(made("first"));
    terminal.line("make the second", "echo made > second");
    terminal.sees_question();
    terminal.types("sure").presses("Enter");
    terminal.sees("As you wish.");
    assert!(!made("second"));
    terminal.line("make the third", "command: echo made > third");
    terminal.sees_question();
    terminal.presses("C-c");
    terminal.sees("stopped;");
    assert!(!made("third"));
    // The keyboard is the prompt's again, to the last key.
    terminal.line("hello", "Hello again.");
    std::fs::remove_file(terminal.project.path().join("first")).unwrap();
    terminal.line("make the first again", "And again.");
    assert!(made("first"), "it was allowed for the session");
    terminal.leaves();
    let results: Vec<bool> = terminal
        .project
        .entries("talk")
        .iter()
        .filter(|entry| entry["payload"]["message"]["role"] == "tool")
        .map(|entry| entry["payload"]["message"]["isError"] == true)
        .collect();
    assert_eq!(results, [false, true, true, false]);
}
