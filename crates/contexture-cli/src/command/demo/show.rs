//! The demo on a terminal, or as lines of JSON.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use contexture::Message;

use super::facts::{Asked, Broken, Build, Compacted, Done, Fact, Undone, Verified};
use crate::agent::LOCAL;
use crate::command::{print, print_json, to_value};
use crate::error::CliError;
use crate::view::{self, Paint, Screen, Shown, clip, plural, safe, thousands, width};

/// What a step is called, and what a newcomer should know before it.
const STEPS: [(&str, &str, &str); 8] = [
    (
        "build",
        "1  Build",
        "A session is a log, and a request is made from it. Its receipt says where each token comes from, before \
         anything is sent.",
    ),
    (
        "ask",
        "2  Ask",
        "The model has seen nothing of this yet, so it reads every token before its first word.",
    ),
    (
        "askAgain",
        "3  Ask again",
        "The next request begins with all of the last one, so the model reads only what is new. The receipt \
         predicted how much it would reuse.",
    ),
    (
        "break",
        "4  Break the cache",
        "Many agents put the time of day into the system prompt. It stands at the beginning, so everything \
         behind it is read again. A fork of the session shows what that costs:",
    ),
    (
        "hold",
        "",
        "In the session itself the time is a note at the end, and the beginning stays as it was:",
    ),
    (
        "compact",
        "5  Compact",
        "When a session gets too long, old messages leave the request, and a summary takes their place. What is \
         pinned stays word for word.",
    ),
    (
        "undo",
        "6  Undo",
        "Nothing was deleted: the compaction is an entry of the log, and so is its undoing. The request's digest \
         shows that it is again what it was.",
    ),
    (
        "verify",
        "7  Verify",
        "The log is all it takes to make each request again. It is read back from the store, and every request \
         of this demo is compared with what was sent.",
    ),
];

/// The cells of a bar.
const CELLS: usize = 16;
const REUSED: u8 = 71;
const READ: u8 = 173;
const BAD: u8 = 167;
const NEUTRAL: u8 = 179;
/// The columns before what a step says, and before what belongs to a question.
const INDENT: usize = 4;
const INSIDE: usize = 6;

pub struct Show {
    screen: Arc<Screen>,
    json: bool,
}

impl Show {
    pub fn new(screen: Arc<Screen>, json: bool) -> Self {
        screen.begin();
        Self { screen, json }
    }

    pub fn opening(&self, model: &str) -> Result<(), CliError> {
        let paint = self.paint();
        let place = match model.starts_with(LOCAL) {
            true => " on this machine, without a key",
            false => "",
        };
        let about = format!(
            "It decides what a model is told on each turn, and accounts for every byte of it. Here with {}{place}.",
            safe(model)
        );
        let mut out = format!(" {}\n", paint.bold("Contexture in a minute"));
        for line in wrapped(&about, paint.width.saturating_sub(INDENT)) {
            let _ = writeln!(out, " {line}");
        }
        self.print(&out)
    }

    /// A step begins.
    pub fn heading(&self, step: &str) -> Result<(), CliError> {
        let known = STEPS.iter().find(|(known, ..)| *known == step);
        let Some((_, title, sentence)) = known else {
            return Ok(());
        };
        let mut out = String::from("\n");
        if !title.is_empty() {
            let _ = writeln!(out, " {}", self.paint().bold(title));
        }
        out.push_str(&indented(sentence, INDENT, self.paint()));
        out.push('\n');
        self.print(&out)
    }

    /// What moves until there is an answer.
    pub fn waiting(&self, tokens: usize, since: Duration, said: &str) -> Result<(), CliError> {
        if self.json {
            return Ok(());
        }
        let row = match said.trim() {
            "" => format!("reading {}… {}", plural(tokens, "token"), in_seconds(since)),
            said => safe(said),
        };
        Ok(self
            .screen
            .draw(&[format!("    {}", self.paint().dim(&row))])?)
    }

    /// A step is done.
    pub fn tell(&self, fact: &Fact) -> Result<(), CliError> {
        if self.json {
            return print_json(&to_value(fact)?);
        }
        let paint = self.paint();
        let text = match fact {
            Fact::Build(build) => built(build, paint),
            Fact::Ask(asked) | Fact::AskAgain(asked) | Fact::Hold(asked) => answer(asked, paint),
            Fact::Break(all) => broken(all, paint),
            Fact::Compact(all) => compacted(all, paint),
            Fact::Undo(all) => undone(all, paint),
            Fact::Verify(all) => verified(all, paint),
            Fact::Done(all) => done(all, paint),
        };
        self.print(&text)
    }

    fn paint(&self) -> Paint {
        self.screen.paint()
    }

    fn print(&self, text: &str) -> Result<(), CliError> {
        if self.json {
            return Ok(());
        }
        self.screen.draw(&[])?;
        print(text.as_bytes())
    }
}

impl Drop for Show {
    /// The terminal is as it was, however it ended.
    fn drop(&mut self) {
        self.screen.end();
    }
}

/// The picture that `ctx build` prints, a little to the right.
fn built(build: &Build, paint: Paint) -> String {
    let messages: Vec<&Message> = build.messages.iter().collect();
    let picture = view::request(
        &Shown {
            title: &build.session,
            receipt: &build.receipt,
            messages: &messages,
            bytes: build.bytes,
        },
        Paint {
            width: paint.width.saturating_sub(INDENT),
            ..paint
        },
    );
    let lines = picture.lines().map(|line| match line.is_empty() {
        true => "\n".to_owned(),
        false => format!("   {line}\n"),
    });
    lines.collect()
}

/// Question, answer, and what it took.
fn answer(asked: &Asked, paint: Paint) -> String {
    let room = paint.width.saturating_sub(INSIDE);
    let (reused, read) = (asked.reused_tokens, asked.read_tokens());
    let filled = (reused * CELLS)
        .checked_div(asked.input_tokens)
        .unwrap_or(0)
        .min(CELLS);
    let bar = format!(
        "{}{}  ",
        paint.fg(REUSED, &"█".repeat(filled)),
        paint.fg(READ, &"░".repeat(CELLS - filled))
    );
    let numbers = format!(
        "predicted {:>3} · {} · {} · first word after {}",
        thousands(asked.predicted_tokens),
        paint.fg(REUSED, &format!("reused {:>3}", thousands(reused))),
        paint.fg(READ, &format!("read {:>3} tokens", thousands(read))),
        paint.bold(&in_seconds(asked.first_word())),
    );
    let numbers = match width(&bar) + width(&numbers) <= room {
        true => format!("      {bar}{numbers}\n"),
        false => indented(&numbers, INSIDE, paint),
    };
    format!(
        "    {} {}\n      {}\n{numbers}",
        paint.fg(REUSED, "›"),
        clip(&safe(&asked.question), room),
        clip(&safe(&asked.answer), room),
    )
}

fn broken(all: &Broken, paint: Paint) -> String {
    let why = match &all.broken_by {
        Some(broken) => safe(&broken.why),
        None => "nothing did".to_owned(),
    };
    let cost = format!(
        "{} billed again, and {} more than in step 3",
        plural(all.rebilled_tokens, "token"),
        in_seconds(Duration::from_millis(all.cost_ms))
    );
    let (what, cost) = (paint.fg(BAD, &why), paint.bold(&cost));
    format!(
        "{}{}{}",
        answer(&all.asked, paint),
        indented(&format!("what broke it: {what}"), INSIDE, paint),
        indented(&format!("what it cost: {cost}"), INSIDE, paint)
    )
}

fn compacted(all: &Compacted, paint: Paint) -> String {
    let mut out = format!(
        "    {} → {} tokens\n",
        thousands(all.tokens_before),
        paint.bold(&thousands(all.tokens_after)),
    );
    let left = all.left_out.iter().map(|piece| (BAD, "−", piece));
    let came = all.summary.iter().map(|piece| (REUSED, "+", piece));
    let stayed = all.pinned.iter().map(|piece| (NEUTRAL, "=", piece));
    for (colour, mark, piece) in left.chain(came).chain(stayed) {
        let head = format!(
            "    {} {:<10}{:<11}{:>5}  ",
            paint.fg(colour, mark),
            piece.role,
            piece.rule.as_str(),
            thousands(piece.tokens)
        );
        let room = paint.width.saturating_sub(width(&head) + 1);
        let _ = writeln!(out, "{head}{}", clip(&piece.text, room));
    }
    out
}

fn undone(all: &Undone, paint: Paint) -> String {
    let (colour, verdict) = match all.before == all.after {
        true => (REUSED, "✓ the same"),
        false => (BAD, "✗ another"),
    };
    let room = paint.width.saturating_sub(29);
    format!(
        "    before     {}\n    compacted  {}\n    undone     {}  {}\n",
        clip(&all.before, room),
        paint.dim(&clip(&all.compacted, room)),
        clip(&all.after, room),
        paint.fg(colour, verdict),
    )
}

fn verified(all: &Verified, paint: Paint) -> String {
    let colour = if all.all() { REUSED } else { BAD };
    let text = format!(
        "{} of {} requests, byte for byte",
        all.verified, all.requests
    );
    format!("    {}\n", paint.fg(colour, &text))
}

fn done(all: &Done, paint: Paint) -> String {
    let mut out = format!(
        "\n All of it is in session {}, like any other. Go on with:\n",
        paint.bold(&safe(&all.session))
    );
    let widest = all.commands.iter().map(|next| width(&next.command)).max();
    for next in &all.commands {
        let gap = widest.unwrap_or(0).saturating_sub(width(&next.command)) + 3;
        let line = format!(
            "    {}{}{}",
            paint.bold(&next.command),
            " ".repeat(gap),
            paint.dim(next.what)
        );
        let _ = writeln!(out, "{}", clip(&line, paint.width));
    }
    out
}

/// A text in lines that fit, so many columns to the right.
fn indented(text: &str, columns: usize, paint: Paint) -> String {
    let lines = wrapped(text, paint.width.saturating_sub(columns));
    let lines = lines.iter();
    lines
        .map(|line| format!("{}{line}\n", " ".repeat(columns)))
        .collect()
}

/// The words of a text, in lines of at most so many columns. A word that is longer has its own.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Always in seconds, so that two times can be compared at a glance.
fn in_seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_no_word_is_lost() {
        let text = "Contexture decides what a model is told on each turn";
        for columns in 1..60 {
            let lines = wrapped(text, columns);
            assert_eq!(lines.join(" "), text);
            for line in lines {
                assert!(width(&line) <= columns || !line.contains(' '), "{line:?}");
            }
        }
    }
}
