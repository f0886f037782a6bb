use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, UndefinedBehavior};
use serde::Serialize;

use super::Meta;
use super::block::{Block, blocks};
use super::conversation::{Kind, Said};
use super::decided::{Decided, count};
use super::outline::{Outline, Row, is_long, line, time};
use crate::entry::tool_name;
use crate::text::hidden::legible;
use crate::{ContextError, EntryId, Role, View};

/// The page; everything that is written into it is escaped by its name's end.
const PAGE: (&str, &str) = ("page.html", include_str!("page.html"));
const STYLE: &str = include_str!("page.css");

/// The session as one HTML file that needs nothing else and runs nothing: no script, nothing to
/// fetch, and a policy that forbids both.
pub fn html(view: &View, meta: &Meta) -> Result<String, ContextError> {
    let outline = Outline::of(view)?;
    let sections = outline.conversation.sections.iter().map(|section| Item {
        role: "system",
        who: format!("system · {}", line(&section.name)),
        blocks: vec![Shown::text(&section.text, is_long(&section.text))],
        ..Item::default()
    });
    let rows = outline.rows();
    let said = rows.iter().map(|row| match row {
        Row::Said(said) => Item::said(&outline, said),
        Row::Decided(decided) => Item::decided(decided),
    });
    let tools = outline.conversation.tools.iter();
    let page = Page {
        title: line(&meta.title),
        style: STYLE,
        facts: outline.facts(),
        tools: tools
            .filter_map(|spec| Some(line(tool_name(spec)?)))
            .collect(),
        items: sections.chain(said).collect(),
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

#[derive(Serialize)]
struct Page {
    title: String,
    style: &'static str,
    facts: Vec<String>,
    tools: Vec<String>,
    items: Vec<Item>,
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
    fn said(outline: &Outline<'_>, said: &Said<'_>) -> Self {
        let message = &said.message;
        let is_result = message.role == Role::Tool;
        let blocks = blocks(message).into_iter().map(|block| match block {
            Block::Text(text) if is_result && !said.redacted => Shown::result(text),
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

    fn text(text: &str, fold: bool) -> Self {
        match fold {
            true => Self::folded("fold", "", text, true),
            false => Self::new("text", "", text),
        }
    }

    fn result(text: &str) -> Self {
        Self::folded("result", "", text, is_long(text))
    }

    /// With its first line on the fold, so that a reader need not open it to know what it is.
    fn folded(kind: &'static str, label: &str, text: &str, folded: bool) -> Self {
        const LONGEST: usize = 80;
        let lines = count(text.lines().count(), "line", "lines");
        let first = text.lines().find(|line| !line.trim().is_empty());
        let first: String = first.unwrap_or("").trim().chars().take(LONGEST).collect();
        let label = match label {
            "" => format!("{lines} · {first}"),
            label => format!("{label} · {lines}"),
        };
        Self {
            folded,
            ..Self::new(kind, &label, text)
        }
    }
}
