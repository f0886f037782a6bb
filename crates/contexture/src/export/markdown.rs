use std::fmt::Write;

use super::Meta;
use super::block::{Block, blocks};
use super::conversation::{Kind, Said};
use super::decided::{Decided, count};
use super::outline::{Outline, Row, is_long, line, time};
use super::prose::prose;
use crate::text::hidden::legible;
use crate::{ContextError, Role, View};

/// The session as Markdown: a heading for each message, tool results and thoughts in fences, the
/// long ones folded. Nothing in it can be fetched, and no message can break the outline.
pub fn markdown(view: &View, meta: &Meta) -> Result<String, ContextError> {
    let outline = Outline::of(view)?;
    let mut out = Document(String::new());
    out.heading(1, &escape(&line(&meta.title)));
    out.block(&format!("*{}*", escape(&outline.facts().join(" · "))));
    for section in &outline.conversation.sections {
        out.heading(2, &format!("system · {}", escape(&line(&section.name))));
        out.text(&section.text);
    }
    for row in outline.rows() {
        match row {
            Row::Said(said) => out.said(&outline, said),
            Row::Decided(decided) => out.decided(decided),
        }
    }
    Ok(out.0)
}

struct Document(String);

impl Document {
    fn said(&mut self, outline: &Outline<'_>, said: &Said<'_>) {
        let mut heading = vec![escape(&outline.speaker(said))];
        heading.extend(outline.marks(said).into_iter().map(str::to_owned));
        heading.push(escape(&time(&said.entry.timestamp)));
        heading.push(code(said.entry.id.as_str()));
        heading.retain(|part| !part.is_empty());
        self.heading(2, &heading.join(" · "));
        for block in blocks(&said.message) {
            match block {
                Block::Text(text) if said.message.role == Role::Tool && !said.redacted => {
                    self.folded("result", text, "", is_long(text));
                }
                // Lines of a key and a value, which Markdown would run together.
                Block::Text(text) if matches!(said.kind, Kind::Facts | Kind::Hints) => {
                    self.fence(text, "");
                }
                Block::Text(text) => self.text(text),
                Block::Thinking(text) => self.folded("thinking", text, "", true),
                Block::Picture(url) => self.note(&Block::picture_note(url)),
                Block::Note(note) => self.note(&note),
                Block::Data(name, data) => self.folded(&name, &data, "json", is_long(&data)),
                Block::Call {
                    name,
                    id,
                    arguments,
                } => {
                    let (name, id) = (code(name), code(id));
                    self.block(&format!("Calls {name} ({id}):"));
                    self.fence(&arguments, "json");
                }
            }
        }
    }

    fn decided(&mut self, decided: &Decided<'_>) {
        self.block(&format!("*— {} —*", escape(&decided.sentence())));
        if let Some(summary) = decided.summary() {
            self.folded("the summary", summary, "", true);
        }
    }

    fn heading(&mut self, level: usize, markup: &str) {
        self.block(&format!("{} {markup}", "#".repeat(level)));
    }

    fn text(&mut self, text: &str) {
        let text = legible(text);
        match prose(&text) {
            Some(prose) => self.block(prose.trim_end()),
            None => self.fence(&text, "text"),
        }
    }

    fn note(&mut self, note: &str) {
        self.block(&format!("[{}]", code(note)));
    }

    fn folded(&mut self, what: &str, text: &str, language: &str, fold: bool) {
        if !fold {
            return self.fence(text, language);
        }
        let lines = count(text.lines().count(), "line", "lines");
        let what = escape(&line(what));
        self.block(&format!("<details><summary>{what}, {lines}</summary>"));
        self.fence(text, language);
        self.block("</details>");
    }

    fn fence(&mut self, text: &str, language: &str) {
        let text = legible(text);
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let text = text.trim_end_matches('\n');
        self.block(&format!("{fence}{language}\n{text}\n{fence}"));
    }

    fn block(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        let written = writeln!(self.0, "{text}");
        debug_assert!(written.is_ok());
    }
}

/// Text in which nothing is markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in legible(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '!' | '#' => out.extend(['\\', c]),
            '_' | '~' | '|' => out.extend(['\\', c]),
            '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Text as code on one line.
fn code(text: &str) -> String {
    let text = line(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(longest + 1);
    match longest {
        0 => format!("{marks}{text}{marks}"),
        _ => format!("{marks} {text} {marks}"),
    }
}
