//! What begins with a slash.

use crate::chat::terminal::{Terminal, says, tmux_missing};
use crate::common::rule_of;

// needs: tmux
#[test]
fn looking_at_the_conversation() {
    if tmux_missing() {
        return;
    }
    let terminal = Terminal::start([says("One."), says("Two.")], &["--budget", "20k"]);
    // Before anything was sent, what will stand before the first message.
    terminal.line("/context", "tool spec");
    terminal.line("/diff", "there are no two requests");
    terminal.line("first", "One.");
    terminal.line("second", "Two.");
    let screen = terminal.line("/context", "assistant");
    assert!(screen.contains("of 20,000 tokens"), "{screen}");
    terminal.line("/diff", "the prefix held");
    let screen = terminal.line("/tools", "tells");
    assert!(screen.contains("context_recall"), "{screen}");
    terminal.line("/sessions", "1 session");
    terminal.line("/help", "take back the last turn");
    terminal.line("/contxt", "did you mean /context?");
    terminal.sees_prompt();
    terminal.types("/q").presses("Tab");
    terminal.sees("› /quit");
    terminal.presses("Enter");
    terminal.sees("left with 0");
}

// needs: tmux
#[test]
fn taking_back_a_turn() {
    if tmux_missing() {
        return;
    }
    let script = ["Odd.", "Blue, then.", "Green, then.", "Forgotten."];
    let terminal = Terminal::start(script.map(says), &[]);
    // The first turn has no message before it.
    terminal.line("a tpyo", "Odd.");
    terminal.line("/undo", "taken back: “a tpyo” (2 messages)");
    terminal.line("paint it blue", "Blue, then.");
    terminal.line("paint it green", "Green, then.");
    let screen = terminal.line("/undo", "taken back: “paint it green” (2 messages)");
    terminal.line("what colour?", "Forgotten.");
    terminal.line("/undo", "“what colour?”");
    let (_, rest) = screen.split_once("/undo ").unwrap();
    assert!(rest.contains("brings it back"), "{screen}");
    terminal.leaves();
    let sent = terminal.server.seen()[3].json().to_string();
    assert!(sent.contains("blue") && !sent.contains("green"), "{sent}");
    assert!(!sent.contains("tpyo"), "{sent}");
    let now = terminal
        .project
        .ctx(&["inspect", "talk", "--json"])
        .json()
        .to_string();
    assert!(now.contains("Blue, then."), "{now}");
}

// needs: tmux
#[test]
fn pins_forks_models_and_room() {
    if tmux_missing() {
        return;
    }
    let story = format!("Long. {}", "And then they went on. ".repeat(300));
    let story: &'static str = story.leak();
    let script = ["Hm.", "Noted.", "Another here.", story, "Yes.", "The end."];
    let terminal = Terminal::start(
        script.map(says),
        &["--budget", "9k", "--compactor", "extract"],
    );
    terminal.line("/fork", "there is nothing to fork yet");
    terminal.line("what is this?", "Hm.");
    terminal.line(
        "/pin never touch the tests",
        "pinned: “never touch the tests”",
    );
    terminal.line("hello", "Noted.");
    terminal.line("/pin", "pinned: “hello”");
    terminal.line("/unpin", "no longer pinned: “hello”");
    terminal.line("/model", "gpt-4o · 9,000 tokens");
    terminal.line("/model openai:gpt-4o-mini", "gpt-4o-mini · 9,000 tokens");
    terminal.line("/fork aside", "now in aside");
    terminal.line("and you?", "Another here.");
    terminal.line("/sessions talk", "now in talk");
    terminal.line("a long story", "Long.");
    terminal.line("that was long", "Yes.");
    let screen = terminal.line("/compact", "compacted: ");
    assert!(screen.contains("brings it back"), "{screen}");
    terminal.line("go on", "The end.");
    terminal.leaves();
    let (talk, aside) = (&terminal.project, "aside");
    talk.ctx(&["replay", aside, "--verify"]).success();
    let seen = terminal.server.seen();
    assert_eq!(seen[2].json()["model"], "gpt-4o-mini");
    let last = seen[5].json().to_string();
    assert!(last.contains("never touch the tests"), "{last}");
    assert!(seen[4].json().to_string().contains(story.trim()));
    assert!(!last.contains(story.trim()), "{last}");
    let entries = talk.entries("talk");
    let rule = |text: &str| {
        let said = |entry: &&serde_json::Value| entry["payload"]["message"]["content"] == text;
        let id = entries.iter().find(said).unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned();
        rule_of(&talk.ctx(&["inspect", "talk", "--json"]).json(), &id)
    };
    assert_eq!(rule("never touch the tests"), "pinned");
    assert_ne!(rule("hello"), "pinned");
    assert!(talk.entry_of("talk", "model_change")["payload"]["model"] == "gpt-4o-mini");
}
