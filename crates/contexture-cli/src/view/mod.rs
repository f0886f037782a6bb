//! What people look at.

mod bar;
mod diff;
mod keys;
mod markdown;
mod meter;
mod paint;
mod pieces;
mod pool;
mod question;
mod replay;
mod request;
mod screen;
mod session;
mod steps;
mod task;
mod tool_line;

use contexture::text::hidden::legible;

pub use bar::Bar;
pub use diff::diff;
pub use keys::{Asked, Keys};
pub use markdown::rows as markdown;
pub use paint::{Paint, clip, width};
pub use pieces::Pieces;
pub use pool::{catalog, resources};
pub use question::{Choice, Question};
pub use replay::Table;
pub use request::{Shown, describe, request};
pub use screen::Screen;
pub use session::{Listed, choices, entries, sessions};
pub use steps::Steps;
pub use task::{task, task_line, tasks};

/// Text from outside on one line, harmless for a terminal: what controls it or hides in the text becomes visible. The
/// log keeps it as it is.
pub fn safe(text: &str) -> String {
    legible(text).replace('\n', "⏎").replace('\t', " ")
}

/// A line from outside with the characters that nobody would see spelled out, for whoever has to judge it.
pub fn revealed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let mut own = [0; 4];
        let own = c.encode_utf8(&mut own);
        match c {
            '\t' => out.push_str("    "),
            _ if safe(own) == *own => out.push(c),
            _ => out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
        }
    }
    out
}

/// Text of several lines, harmless for a terminal.
pub fn safe_lines(text: &str) -> String {
    legible(text).replace('\t', "    ")
}

/// `12,345`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 message`, `2 messages`, `3 entries`.
pub fn plural(number: usize, noun: &str) -> String {
    let number_of = thousands(number);
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("{number_of} {noun}"),
        Some(stem) => format!("{number_of} {stem}ies"),
        None => format!("{number_of} {noun}s"),
    }
}
