//! Standard output and standard error: nothing of `ctx` is written but through here.
//!
//! Most of what a command shows was said by somebody else. On a terminal none of it comes raw: whatever is there besides
//! text, ends of lines and our own colours is made visible. Elsewhere each kind of output is what it says: text for
//! people as it was composed, data and contents byte for byte.
//!
//! Standard output that is closed or full ends the command; without standard error it goes on, and says nothing.

#![allow(
    clippy::disallowed_methods,
    reason = "this is the place that takes the streams"
)]

mod log;
mod shown;

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::LazyLock;

pub use log::Log;
pub use shown::JsonLines;

/// Whether standard output is a terminal.
pub fn is_terminal() -> bool {
    static TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());
    *TERMINAL
}

/// Whether standard error is a terminal.
pub fn notes_are_seen() -> bool {
    static TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stderr().is_terminal());
    *TERMINAL
}

/// Standard output, for as long as it is held.
pub struct Out(BufWriter<StdoutLock<'static>>);

impl Out {
    /// Takes standard output.
    pub fn new() -> Self {
        Self(BufWriter::new(io::stdout().lock()))
    }

    /// Text for people, that we composed.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        match is_terminal() {
            true => self.0.write_all(shown::text(text).as_bytes()),
            false => self.0.write_all(text.as_bytes()),
        }
    }

    /// JSON: on a terminal the same values, with escapes for what would not be seen.
    pub fn data(&mut self, json: &[u8]) -> io::Result<()> {
        match is_terminal() {
            true => self
                .0
                .write_all(shown::data(&String::from_utf8_lossy(json)).as_bytes()),
            false => self.0.write_all(json),
        }
    }

    /// A value as one line of JSON.
    pub fn json(&mut self, value: &(impl serde::Serialize + ?Sized)) -> io::Result<()> {
        if is_terminal() {
            self.data(&serde_json::to_vec(value)?)?;
        } else {
            // Without the text in memory beside the value: it may be large.
            serde_json::to_writer(&mut self.0, value)?;
        }
        self.0.write_all(b"\n")
    }

    /// What somebody else wrote and is asked for as it is: a page, a prompt, a tool's answer.
    pub fn content(&mut self, content: &[u8]) -> io::Result<()> {
        match is_terminal() {
            true => self
                .0
                .write_all(shown::content(&String::from_utf8_lossy(content)).as_bytes()),
            false => self.0.write_all(content),
        }
    }

    /// Sends it off.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Says something on standard error: a line, as `format!` takes it.
macro_rules! note {
    () => {
        $crate::output::tell("\n")
    };
    ($($words:tt)*) => {
        $crate::output::tell(&format!("{}\n", format_args!($($words)*)))
    };
}
pub(crate) use note;

/// Text on standard error, where there is one.
pub fn tell(text: &str) {
    draw("", text);
}

/// Text on standard error behind our own commands to the terminal.
pub fn draw(commands: &str, text: &str) {
    let text = match notes_are_seen() {
        true => shown::text(text),
        false => text.into(),
    };
    let all = format!("{commands}{text}");
    let mut err = io::stderr().lock();
    // Whoever closed it does not want to know.
    let _ = err.write_all(all.as_bytes()).and_then(|()| err.flush());
}
