//! The terminal as a run uses it: text that stays, and below it a few lines that are drawn anew until
//! they stay too.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::keys::Keys;
use super::{Paint, Pieces, clip, safe_lines};
use crate::output::{self, Out, draw, tell};

/// Standard output for what the model says, standard error for all else.
pub struct Screen {
    /// Whether text is shown as it arrives.
    pub streams: bool,
    /// Whether there are lines that move.
    pub moves: bool,
    pub paint: Paint,
    keys: Option<Keys>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Rows at the bottom that will be drawn anew.
    drawn: usize,
    /// Whether the last line of text has no end yet.
    open: bool,
    /// The end of the last piece, which the next one may change.
    pieces: Pieces,
    /// White space that is shown only if something follows it.
    held: String,
    /// Since when a question is open, and how long questions were open before.
    paused: Option<Instant>,
    waited: Duration,
    last: Last,
}

/// What was shown last.
#[derive(Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    Text,
    Note,
}

/// The most rows that move.
const ROWS: usize = 10;

impl Screen {
    /// The terminal as it is.
    pub fn new() -> Self {
        let paint = Paint::stdout();
        let (out, err) = (output::is_terminal(), output::notes_are_seen());
        let moves = out && err && paint.colour;
        Self {
            streams: out,
            moves,
            paint,
            keys: (err && std::io::stdin().is_terminal())
                .then(Keys::here)
                .flatten(),
            state: Mutex::default(),
        }
    }

    /// A run begins: the keyboard is quiet until it ends.
    pub fn begin(&self) {
        self.state().last = Last::Nothing;
        self.hush();
    }

    fn hush(&self) {
        if let Some(keys) = &self.keys {
            keys.hush();
        }
        if self.moves {
            draw("\x1b[?25l", "");
        }
    }

    /// It is over: the terminal is as it was.
    pub fn end(&self) {
        let mut state = self.state();
        erase(&mut state);
        let _ = self.end_line(&mut state);
        drop(state);
        self.restore();
    }

    /// The cursor and the keyboard as they were, from wherever.
    pub fn restore(&self) {
        if self.moves {
            draw("\x1b[?25h", "");
        }
        if let Some(keys) = &self.keys {
            keys.restore();
        }
    }

    /// What the model says, as it arrives. White space at its end waits for what follows.
    pub fn say(&self, text: &str) -> std::io::Result<()> {
        let mut state = self.state();
        let text = state.pieces.add(text);
        self.put(&mut state, &text)
    }

    /// Ends what was said.
    pub fn said(&self) -> std::io::Result<()> {
        self.end_line(&mut self.state())
    }

    /// Lines that stay, on standard error.
    pub fn note(&self, lines: &[String]) -> std::io::Result<()> {
        let mut state = self.state();
        erase(&mut state);
        let ended = self.end_line(&mut state);
        state.last = Last::Note;
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        tell(&text);
        ended
    }

    /// An empty line between what was said and what is done next.
    pub fn part(&self) -> std::io::Result<()> {
        let mut state = self.state();
        self.end_line(&mut state)?;
        if self.moves && state.last == Last::Text {
            state.last = Last::Note;
            erase(&mut state);
            tell("\n");
        }
        Ok(())
    }

    /// For how long questions were open, up to now.
    pub fn waited(&self) -> Duration {
        self.state().waited
    }

    /// Draws the rows that move in the place of those that were there.
    pub fn draw(&self, rows: &[String]) -> std::io::Result<()> {
        let mut state = self.state();
        if !self.moves || state.paused.is_some() || (rows.is_empty() && state.drawn == 0) {
            return Ok(());
        }
        self.end_line(&mut state)?;
        let shown = &rows[rows.len().saturating_sub(ROWS)..];
        let room = self.paint.width.saturating_sub(1);
        let text: String = shown.iter().map(|row| clip(row, room) + "\n").collect();
        draw(&up(state.drawn), &text);
        state.drawn = shown.len();
        Ok(())
    }

    /// Makes way for a question: nothing moves until [`Screen::resume`].
    pub fn pause(&self, question: &str) {
        let mut state = self.state();
        erase(&mut state);
        let _ = self.end_line(&mut state);
        state.paused = Some(Instant::now());
        state.last = Last::Note;
        tell(question);
        if self.moves {
            draw("\x1b[?25h", "");
        }
    }

    /// The question is answered, or nobody waits for an answer any more.
    pub fn resume(&self) {
        let mut state = self.state();
        if let Some(since) = state.paused.take() {
            state.waited += since.elapsed();
        }
        drop(state);
        self.hush();
    }

    /// The keyboard, where somebody can be asked.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.as_ref()
    }

    /// Shows text, but for the white space at its end.
    fn put(&self, state: &mut State, text: &str) -> std::io::Result<()> {
        let text = format!("{}{}", std::mem::take(&mut state.held), safe_lines(text));
        let text = if state.open {
            &text
        } else {
            text.trim_start_matches('\n')
        };
        let shown = text.trim_end();
        state.held = text[shown.len()..].to_owned();
        if shown.is_empty() {
            return Ok(());
        }
        erase(state);
        if !state.open && self.moves && state.last == Last::Note {
            out("\n")?;
        }
        state.open = true;
        state.last = Last::Text;
        out(shown)
    }

    fn end_line(&self, state: &mut State) -> std::io::Result<()> {
        let rest = state.pieces.end();
        self.put(state, &rest)?;
        state.held.clear();
        match std::mem::take(&mut state.open) {
            true => out("\n"),
            false => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn erase(state: &mut State) {
    match std::mem::take(&mut state.drawn) {
        0 => {}
        rows => draw(&up(rows), ""),
    }
}

/// To the first of so many rows, and everything from there on gone.
fn up(rows: usize) -> String {
    match rows {
        0 => String::new(),
        rows => format!("\x1b[{rows}A\r\x1b[J"),
    }
}

fn out(text: &str) -> std::io::Result<()> {
    let mut out = Out::new();
    out.text(text)?;
    out.flush()
}
