//! An agent's questions at the terminal: the same as those of `ctx chat`.

use crate::chat::terminal::{Pane, tmux_missing};
use crate::fleet::scene::Daemon;

// needs: tmux
#[test]
fn a_question_looks_as_in_a_chat_and_a_word_answers_it() {
    if tmux_missing() {
        return;
    }
    let daemon = Daemon::start();
    daemon.agent("bot", "repo");
    for (word, option) in [("y", "yes"), ("", "no"), ("sure", "no")] {
        let pane = Pane::new();
        let (dir, home) = (daemon.project.path(), daemon.project.home());
        pane.runs(dir, home, &["agent", "prompt", "bot", "ask"]);
        let screen = pane.sees_question();
        assert!(
            screen.contains("? bot asks: Allow rm -rf build"),
            "{screen}"
        );
        assert!(screen.contains("y Yes · "), "{screen}");
        pane.types(word).presses("Enter");
        let screen = pane.sees("left with 0");
        let said = format!("\"optionId\": \"{option}\"");
        assert!(screen.contains(&said), "no {said} in {screen}");
    }
    // Ctrl-C calls it off, and the keyboard is as it was.
    let pane = Pane::new();
    let (dir, home) = (daemon.project.path(), daemon.project.home());
    pane.runs(dir, home, &["agent", "prompt", "bot", "ask"]);
    pane.sees_question();
    pane.presses("C-c");
    pane.sees("left with 1");
    pane.types("echoed").presses("Enter");
    pane.until("what `cat` says again", |screen| {
        screen.matches("echoed").count() == 2
    });
}
