//! The terminal as a run uses it: text that stays, and below it a few lines that are drawn anew until
//! they stay too.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use contexture::text::hidden::legible;

use super::keys::Keys;
use super::markdown::Reply;
use super::{Paint, Pieces, clip, safe_lines, width};
use crate::output::{self, Out, draw, tell};

/// Standard output for what the model says, standard error for all else.
pub struct Screen {
    /// Whether text is shown as it arrives.
    pub streams: bool,
    /// Whether there are lines that move.
    pub moves: bool,
    paint: Paint,
    keys: Option<Keys>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Rows at the bottom that will be drawn anew, each by its width.
    drawn: Vec<usize>,
    /// The model's reply, where it is rendered.
    reply: Reply,
    /// When the end of it was drawn last, and whether it has changed since.
    reply_drawn: Option<Instant>,
    reply_changed: bool,
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

/// The most rows of tools that move.
const ROWS: usize = 10;
/// Shortest interval at which the end of a reply is drawn.
const REDRAW: Duration = Duration::from_millis(40);

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

    /// The colours, and the width as it is now.
    pub fn paint(&self) -> Paint {
        self.paint.now()
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
            // What is pasted meanwhile stays one piece.
            draw("\x1b[?25l\x1b[?2004h", "");
        }
    }

    /// It is over: the terminal is as it was.
    pub fn end(&self) {
        let mut state = self.state();
        erase(&mut state, self.paint());
        let _ = self.end_line(&mut state);
        drop(state);
        self.restore();
    }

    /// The cursor and the keyboard as they were, from wherever.
    pub fn restore(&self) {
        if self.moves {
            draw("\x1b[?25h\x1b[?2004l", "");
        }
        if let Some(keys) = &self.keys {
            keys.restore();
        }
    }

    /// Shows the model's text as it arrives: rendered where rows may move, as it was written elsewhere. There white
    /// space at its end waits for what follows.
    pub fn say(&self, text: &str) -> std::io::Result<()> {
        let mut state = self.state();
        let text = state.pieces.add(text);
        if !self.moves {
            return self.put(&mut state, &text);
        }
        let rows = state.reply.add(&legible(&text), self.paint());
        state.reply_changed = true;
        if !rows.is_empty() {
            self.stay(&mut state, &rows)?;
        } else if state.reply_drawn.is_some_and(|at| at.elapsed() < REDRAW) {
            return Ok(());
        }
        self.draw_reply(&mut state);
        Ok(())
    }

    /// Draws what has changed of a reply since it was drawn.
    pub fn refresh(&self) {
        let mut state = self.state();
        if state.reply_changed && state.paused.is_none() {
            self.draw_reply(&mut state);
        }
    }

    /// Draws the end of a reply, as far as it has room and may still change.
    fn draw_reply(&self, state: &mut State) {
        let mut rows = state.reply.rows(self.paint());
        if state.last == Last::Note && !rows.is_empty() {
            rows.insert(0, String::new());
        }
        state.reply_drawn = Some(Instant::now());
        state.reply_changed = false;
        self.redraw(state, &rows, Paint::height().saturating_sub(2).max(3));
    }

    /// Shows rows of a reply that stay.
    fn stay(&self, state: &mut State, rows: &[String]) -> std::io::Result<()> {
        erase(state, self.paint());
        let lead = if state.last == Last::Note { "\n" } else { "" };
        state.last = Last::Text;
        out(&format!("{lead}{}\n", rows.join("\n")))
    }

    /// Ends what was said.
    pub fn said(&self) -> std::io::Result<()> {
        self.end_line(&mut self.state())
    }

    /// Lines that stay, on standard error.
    pub fn note(&self, lines: &[String]) -> std::io::Result<()> {
        let mut state = self.state();
        erase(&mut state, self.paint());
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
            erase(&mut state, self.paint());
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
        // No rows are no reason to end a reply that is under way.
        if !self.moves || state.paused.is_some() || (rows.is_empty() && !state.reply.is_empty()) {
            return Ok(());
        }
        self.end_line(&mut state)?;
        self.redraw(&mut state, rows, ROWS);
        Ok(())
    }

    /// Draws the last of these rows in the place of those that move.
    fn redraw(&self, state: &mut State, rows: &[String], most: usize) {
        let paint = self.paint();
        let room = paint.width.saturating_sub(1);
        let shown = &rows[rows.len().saturating_sub(most)..];
        let shown: Vec<String> = shown.iter().map(|row| clip(row, room)).collect();
        let text: String = shown.iter().map(|row| format!("{row}\n")).collect();
        draw(&up(&state.drawn, paint), &text);
        state.drawn = shown.iter().map(|row| width(row)).collect();
    }

    /// Makes way for a question: nothing moves until [`Screen::resume`].
    pub fn pause(&self, question: &str) {
        let mut state = self.state();
        erase(&mut state, self.paint());
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
        state.open = true;
        state.last = Last::Text;
        out(shown)
    }

    fn end_line(&self, state: &mut State) -> std::io::Result<()> {
        let rest = state.pieces.end();
        if self.moves {
            let mut rows = state.reply.add(&legible(&rest), self.paint());
            rows.extend(state.reply.end(self.paint()));
            state.reply_changed = false;
            return if rows.is_empty() {
                Ok(())
            } else {
                self.stay(state, &rows)
            };
        }
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

fn erase(state: &mut State, paint: Paint) {
    let drawn = std::mem::take(&mut state.drawn);
    if !drawn.is_empty() {
        draw(&up(&drawn, paint), "");
    }
}

/// To the first of these rows, and everything from there on gone. A terminal that has become narrower shows a row as
/// several.
fn up(drawn: &[usize], paint: Paint) -> String {
    let rows: usize = drawn
        .iter()
        .map(|width| width.div_ceil(paint.width).max(1))
        .sum();
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
