//! A reply as people see it: rendered, wrapped, at the terminal's width, and inert.

use crate::chat::terminal::{Terminal, says, tmux_missing};
use crate::model_server::{Answer, Piece, event_count};

const REPLY: &str = "# A plan\n\nFirst **read** the `file`, then see [the docs](https://e.example/docs) for what else there is to know of it, \
    and write.\n\n1. Build\n   - at once\n2. Test\n\n```rust\nfn main() {\n    println!(\"hi\");\n}\n```\n\n\
    | name | n |\n|---|--:|\n| one | 1 |\n| three | 3 |\n\nThe *end*.";

// needs: tmux
#[test]
fn markdown_is_rendered() {
    if tmux_missing() {
        return;
    }
    let terminal = Terminal::start([says(REPLY)], &[]);
    terminal.line("plan", "The end.");
    let screen = terminal.sees_prompt();
    let (_, reply) = screen.split_once("› plan\n").unwrap();
    let rows = reply.lines().map(str::trim_end);
    let rows = rows.take_while(|row| !row.contains("of 128,000 tokens"));
    let rows: Vec<&str> = rows.filter(|row| !row.is_empty()).collect();
    let shown = [
        "A plan",
        "First read the file, then see the docs (https://e.example/docs) for what else there is to know of",
        "it, and write.",
        " 1. Build",
        "     • at once",
        " 2. Test",
        "  rust",
        "    fn main() {",
        "        println!(\"hi\");",
        "    }",
        "name  │ n",
        "──────┼──",
        "one   │ 1",
        "three │ 3",
        "The end.",
    ];
    assert_eq!(rows, shown);
    terminal.leaves();
}

// needs: tmux
#[test]
fn a_resized_terminal_is_used_as_it_is() {
    if tmux_missing() {
        return;
    }
    let text = "word ".repeat(40) + "end.";
    let text: &'static str = text.leak();
    let half = vec![Piece::Text(text)];
    let events = event_count("chat/completions", &half);
    let terminal = Terminal::start(
        [says(text), Answer::Stalls(half, events - 3), says("Bye.")],
        &[],
    );
    terminal.sees_prompt();
    terminal.resizes(60);
    let screen = terminal.line("go", "end.");
    let rows = |screen: &str| -> Vec<usize> {
        let rows = screen.lines().filter(|row| row.starts_with("word"));
        rows.map(|row| row.trim_end().len()).collect()
    };
    assert!(
        rows(&screen)
            .iter()
            .all(|row| (50..60).contains(row) || *row < 30),
        "{screen}"
    );
    // Also in the middle of a reply: nothing of it is left behind, and nothing is there twice.
    let second = |screen: &str| -> usize {
        let reply = screen.split_once("› again");
        reply.map_or(0, |(_, reply)| reply.matches("word").count())
    };
    terminal.line("again", "word word word");
    terminal.until("the second reply", |screen| second(screen) >= 35);
    terminal.resizes(40);
    terminal.presses("C-c");
    let screen = terminal.sees("stopped;");
    assert!((35..=40).contains(&second(&screen)), "{screen}");
    let (_, reply) = screen.split_once("› again").unwrap();
    assert!(rows(reply).iter().all(|row| *row < 40), "{screen}");
    terminal.line("bye", "Bye.");
    terminal.leaves();
}

/// A model's reply cannot command the terminal, also where it is Markdown, and what is shown of a reply that is cut is
/// right.
// needs: tmux
#[test]
fn a_hostile_reply_that_is_cut_is_inert() {
    if tmux_missing() {
        return;
    }
    let sly = "**bold\u{1b}[2J** `\u{1b}]0;title\u{7}` &#27;[8mhidden&#x202e; <b>tag</b>\n\n\
        [safe](javascript:alert(1)) ![pixel](https://e.example/p.png)\n\n- one\n- **not clo";
    let text = vec![Piece::Text(sly), Piece::Text("sed and much more text")];
    let events = event_count("chat/completions", &text);
    let terminal = Terminal::start([Answer::Stalls(text, events - 4), says("Bye.")], &[]);
    terminal.line("go", "not clo");
    terminal.presses("C-c");
    let screen = terminal.sees("stopped;");
    for needle in [
        "bold⟨ESC⟩[2J ⟨ESC⟩]0;title⟨BEL⟩ ⟨ESC⟩[8mhidden⟨U+202E⟩ <b>tag</b>",
        "safe (javascript:alert(1)) [image: pixel (https://e.example/p.png)]",
        " • one",
        " • **not clo",
    ] {
        assert!(screen.contains(needle), "no {needle} in {screen}");
    }
    terminal.line("bye", "Bye.");
    terminal.leaves();
}
