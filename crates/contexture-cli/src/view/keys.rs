//! The keyboard while nobody edits a line: quiet, or answering one question.

use std::sync::{Mutex, PoisonError};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::output::draw;

/// The terminal's own settings, to go back to.
pub struct Keys {
    own: Termios,
    /// Bytes that were typed before a question, for the next prompt.
    ahead: Mutex<Vec<u8>>,
}

/// Somebody who asked, and may have gone away since.
#[derive(Default)]
pub struct Asked {
    gone: Mutex<bool>,
}

/// The longest answer.
const MAX_ANSWER_BYTES: usize = 64;
/// The most that is kept of what was typed before a question.
const MAX_AHEAD_BYTES: usize = 64 << 10;
/// Marks around what is pasted.
const PASTE: [&str; 2] = ["\x1b[200~", "\x1b[201~"];

impl Keys {
    /// The keyboard, where there is one.
    pub fn here() -> Option<Self> {
        let own = tcgetattr(std::io::stdin()).ok()?;
        Some(Self {
            own,
            ahead: Mutex::default(),
        })
    }

    /// Turns off the echo, and keeps typed text for the next prompt: shown, it would stand in the middle of the output.
    /// Ctrl-C still stops, and takes nothing of it away.
    pub fn hush(&self) {
        let mut quiet = self.own.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        quiet.local_modes |= LocalModes::NOFLSH;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet);
    }

    /// Takes the text that was typed before a question.
    pub fn ahead(&self) -> String {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        edited(&std::mem::take(&mut *ahead))
    }

    /// As it was.
    pub fn restore(&self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.own);
    }

    /// Reads a line and shows it, until who asked has gone. What was typed before the question was
    /// there is no answer to it, and is kept for the next prompt.
    pub fn line(&self, asked: &Asked) -> Option<String> {
        let mut keys = self.own.clone();
        keys.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(std::io::stdin(), OptionalActions::Now, &keys).ok()?;
        self.set_aside();
        // A read ends after a tenth of a second, so that it never takes what others wait for.
        keys.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(std::io::stdin(), OptionalActions::Now, &keys).ok()?;
        // Only now: whoever answers what they see is heard.
        show(" › ");
        read(asked)
    }

    /// Takes all that was typed so far.
    fn set_aside(&self) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; 1024];
        while let Ok(read @ 1..) = rustix::io::read(std::io::stdin(), &mut bytes) {
            let room = MAX_AHEAD_BYTES.saturating_sub(ahead.len());
            ahead.extend_from_slice(&bytes[..read.min(room)]);
        }
    }
}

/// The text that keys have typed, as a line editor would have it: without what was deleted again, and without other
/// commands.
fn edited(keys: &[u8]) -> String {
    let typed = String::from_utf8_lossy(keys);
    let typed = PASTE
        .into_iter()
        .fold(typed.into_owned(), |typed, mark| typed.replace(mark, ""));
    let mut text = String::new();
    let mut chars = typed.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{8}' | '\u{7f}' => drop(text.pop()),
            '\r' | '\n' => text.push('\n'),
            '\t' => text.push(' '),
            // An arrow, say: up to its last letter.
            '\u{1b}' => {
                if chars.clone().next() == Some('[') {
                    chars.next();
                    chars.by_ref().find(|c| matches!(c, '@'..='~'));
                }
            }
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    text.trim_end_matches('\n').to_owned()
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
            (Ok(_), key @ b' '..=b'~') if line.len() < MAX_ANSWER_BYTES => {
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

#[cfg(test)]
mod tests {
    use super::edited;

    #[test]
    fn what_was_typed_ahead_is_text() {
        let keys =
            "wrongx\u{7f}\u{7f}g\u{1b}[A\u{1b}[3~ än\u{1}d\r\u{1b}[200~two\nlines\u{1b}[201~\n";
        assert_eq!(edited(keys.as_bytes()), "wrong änd\ntwo\nlines");
        assert_eq!(edited(b"\xff\x1b"), "\u{fffd}");
    }
}
