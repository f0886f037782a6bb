use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, UndefinedBehavior};
use serde::Serialize;

use super::Meta;
use super::block::{Block, blocks};
use super::conversation::{Kind, Said};
use super::decided::{Decided, count, digits};
use super::outline::{Outline, Row, is_long, line, time};
use super::rendered;
use crate::entry::tool_name;
use crate::text::hidden::legible;
use crate::tokens::Tokenizer;
use crate::{ContextError, EntryId, Role, View};

/// The page; everything that is written into it is escaped by its name's end.
const PAGE: (&str, &str) = ("page.html", include_str!("page.html"));
const STYLE: &str = include_str!("page.css");

/// The session as one HTML file that needs nothing else and runs nothing: no script, nothing to
/// fetch, and a policy that forbids both.
pub fn html(view: &View, meta: &Meta) -> Result<String, ContextError> {
    let outline = Outline::of(view)?;
    let counter = meta.tokenizer.as_deref();
    let sections = outline.conversation.sections.iter().map(|section| Item {
        role: "system",
        who: format!("system · {}", line(&section.name)),
        tokens: counter.map_or(0, |counter| counter.count(&section.text)),
        blocks: vec![Shown::text(&section.text, is_long(&section.text))],
        ..Item::default()
    });
    let rows = outline.rows();
    let said = rows.iter().map(|row| match row {
        Row::Said(said) => Item::said(&outline, said, counter),
        Row::Decided(decided) => Item::decided(decided),
    });
    let tools = outline.conversation.tools.iter();
    let mut items: Vec<Item> = sections.chain(said).collect();
    let mut facts = outline.facts();
    if let Some(counter) = counter {
        let all = items.iter().map(|item| item.tokens).sum();
        facts.push(format!(
            "{} ({})",
            tokens(all, counter),
            line(counter.name())
        ));
        for item in items.iter_mut().filter(|item| item.tokens > 0) {
            item.cost = tokens(item.tokens, counter);
        }
    }
    let page = Page {
        title: line(&meta.title),
        style: STYLE,
        facts,
        tools: tools
            .filter_map(|spec| Some(line(tool_name(spec)?)))
            .collect(),
        turns: turns(&items, counter),
        items,
    };
    render(&page).map_err(|error| {
        ContextError::invalid(
            PAGE.0,
            error.to_string(),
            "this is a fault of ours: report it",
        )
    })
}

fn render(page: &Page) -> Result<String, Error> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()?,
    );
    env.add_template(PAGE.0, PAGE.1)?;
    env.get_template(PAGE.0)?.render(Serde(page))
}

/// A number of tokens: `1,200 tokens`, `≤ 1,200 tokens` where it is an upper bound.
fn tokens(number: usize, counter: &dyn Tokenizer) -> String {
    let bound = if counter.exact() { "" } else { "≤ " };
    format!("{bound}{}", count(number, "token", "tokens"))
}

/// The table of contents: what the user said, each with what it led to.
fn turns(items: &[Item], counter: Option<&dyn Tokenizer>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut sum = 0;
    for item in items {
        if item.role == "user" {
            sum = 0;
            turns.push(Turn {
                to: Link::to(&EntryId::from(item.id.as_str())),
                begins: item.begins.clone(),
                cost: String::new(),
            });
        }
        sum += item.tokens;
        if let (Some(turn), true) = (turns.last_mut(), counter.is_some()) {
            turn.cost = digits(sum);
        }
    }
    // One is no table.
    if turns.len() < 2 { Vec::new() } else { turns }
}

#[derive(Serialize)]
struct Page {
    title: String,
    style: &'static str,
    facts: Vec<String>,
    tools: Vec<String>,
    turns: Vec<Turn>,
    items: Vec<Item>,
}

/// A line of the table of contents.
#[derive(Serialize)]
struct Turn {
    to: Link,
    begins: String,
    /// The tokens up to the next one.
    cost: String,
}

/// A message, or a line between messages.
#[derive(Serialize, Default)]
struct Item {
    /// What its colour follows from; `note` for a line.
    role: &'static str,
    who: String,
    id: String,
    time: String,
    marks: Vec<&'static str>,
    tokens: usize,
    /// The tokens in words, where they are counted.
    cost: String,
    /// The beginning of it.
    begins: String,
    /// The entries that a line is about.
    about: Vec<Link>,
    blocks: Vec<Shown>,
}

#[derive(Serialize)]
struct Link {
    id: String,
    /// Whether its id can stand in an address as it is.
    plain: bool,
}

#[derive(Serialize)]
struct Shown {
    kind: &'static str,
    /// What stands on the fold, or before the text.
    label: String,
    text: String,
    folded: bool,
}

impl Item {
    fn said(outline: &Outline<'_>, said: &Said<'_>, counter: Option<&dyn Tokenizer>) -> Self {
        let message = &said.message;
        let is_result = message.role == Role::Tool;
        let blocks = blocks(message).into_iter().map(|block| match block {
            Block::Text(text) if is_result && !said.redacted => Shown::result(text),
            // Lines of a key and a value, which Markdown would run together.
            Block::Text(text) if matches!(said.kind, Kind::Facts | Kind::Hints) => {
                Shown::new("text", "", text)
            }
            Block::Text(text) => Shown::text(text, message.role.is_system() && is_long(text)),
            Block::Thinking(text) => Shown::folded("thinking", "thinking", text, true),
            Block::Picture(url) => Shown::new("picture", "", url),
            Block::Note(note) => Shown::new("remark", "", &note),
            Block::Data(name, data) => Shown::folded("data", &name, &data, is_long(&data)),
            Block::Call {
                name,
                id,
                arguments,
            } => Shown {
                text: legible(&arguments).into_owned(),
                ..Shown::new("call", &format!("{name} · {id}"), "")
            },
        });
        Self {
            role: match said.kind {
                Kind::Message => message.role.as_str(),
                _ => "aside",
            },
            who: outline.speaker(said),
            id: line(said.entry.id.as_str()),
            time: time(&said.entry.timestamp),
            marks: outline.marks(said),
            tokens: counter.map_or(0, |counter| counter.message(message)),
            begins: begins(&message.text()),
            cost: String::new(),
            about: Vec::new(),
            blocks: blocks.collect(),
        }
    }

    fn decided(decided: &Decided<'_>) -> Self {
        let summary = decided.summary();
        let summary = summary.map(|text| Shown::folded("thinking", "the summary", text, true));
        Self {
            role: "note",
            who: line(&decided.sentence()),
            id: line(decided.entry.id.as_str()),
            about: decided.about().iter().map(Link::to).collect(),
            blocks: summary.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl Link {
    fn to(id: &EntryId) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        Self {
            id: line(id.as_str()),
            plain: id.as_str().chars().all(plain),
        }
    }
}

impl Shown {
    fn new(kind: &'static str, label: &str, text: &str) -> Self {
        Self {
            kind,
            label: line(label),
            text: legible(text).into_owned(),
            folded: false,
        }
    }

    /// Markdown, rendered.
    fn text(text: &str, fold: bool) -> Self {
        let label = if fold {
            fold_label("", text)
        } else {
            String::new()
        };
        Self {
            folded: fold,
            text: rendered::html(text),
            ..Self::new("prose", &label, "")
        }
    }

    fn result(text: &str) -> Self {
        Self::folded("result", "", text, is_long(text))
    }

    fn folded(kind: &'static str, label: &str, text: &str, folded: bool) -> Self {
        Self {
            folded,
            ..Self::new(kind, &fold_label(label, text), text)
        }
    }
}

/// The label of a fold. One without a name has the text's first line, so that a reader need not open it to know what it
/// is.
fn fold_label(label: &str, text: &str) -> String {
    let lines = count(text.lines().count(), "line", "lines");
    match label {
        "" => format!("{lines} · {}", begins(text)),
        label => format!("{label} · {lines}"),
    }
}

/// The first line of a text, or the beginning of it.
fn begins(text: &str) -> String {
    const LONGEST: usize = 80;
    let first = text.lines().find(|line| !line.trim().is_empty());
    let first = first.unwrap_or("").trim();
    match first.char_indices().nth(LONGEST) {
        Some((end, _)) => line(&first[..end]) + "…",
        None => line(first),
    }
}
