//! The keyboard while nobody edits a line: quiet, or answering one question.

use std::sync::{Mutex, PoisonError};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::output::draw;

/// The terminal's own settings, to go back to.
pub struct Keys {
    own: Termios,
}

/// Somebody who asked, and may have gone away since.
#[derive(Default)]
pub struct Asked {
    gone: Mutex<bool>,
}

/// The longest answer, in bytes.
const LONGEST: usize = 64;

impl Keys {
    /// The keyboard, where there is one.
    pub fn here() -> Option<Self> {
        let own = tcgetattr(std::io::stdin()).ok()?;
        Some(Self { own })
    }

    /// What is typed is kept for later and not shown: it would stand in the middle of what is. Ctrl-C
    /// still stops.
    pub fn hush(&self) {
        let mut quiet = self.own.clone();
        quiet.local_modes -= LocalModes::ECHO;
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet);
    }

    /// As it was.
    pub fn restore(&self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.own);
    }

    /// Reads a line and shows it, until who asked has gone. What was typed before the question was
    /// there is no answer to it, and is thrown away.
    pub fn line(&self, asked: &Asked) -> Option<String> {
        let mut keys = self.own.clone();
        keys.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        // A read ends after a tenth of a second, so that it never takes what others wait for.
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &keys).ok()?;
        read(asked)
    }
}

fn read(asked: &Asked) -> Option<String> {
    let mut line: Vec<u8> = Vec::new();
    loop {
        let mut byte = [0];
        let read = asked.unless_gone(|| rustix::io::read(std::io::stdin(), &mut byte))?;
        match (read, byte[0]) {
            (Ok(0) | Err(rustix::io::Errno::INTR), _) => {}
            (Err(_), _) => return None,
            (Ok(_), b'\n' | b'\r') => {
                show("\n");
                return String::from_utf8(line).ok();
            }
            // Ctrl-D.
            (Ok(_), 4) => {
                show("\n");
                return None;
            }
            (Ok(_), 8 | 127) if line.pop().is_some() => show("\u{8} \u{8}"),
            (Ok(_), key @ b' '..=b'~') if line.len() < LONGEST => {
                line.push(key);
                show(&char::from(key).to_string());
            }
            _ => {}
        }
    }
}

fn show(typed: &str) {
    draw(typed, "");
}

impl Asked {
    /// Nobody waits for the answer any more.
    pub fn leave(&self) {
        *self.gone.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Does it while somebody waits, who cannot go away in between.
    fn unless_gone<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        (!*gone).then(work)
    }
}
