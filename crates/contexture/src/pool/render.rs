use std::borrow::Cow;

use serde_json::{Value, json};

use super::{AgentContext, CatalogEntry, Name};
use crate::ContextError;
use crate::prompt::{Section, Template, line};
use crate::text::hidden::reveal;

/// The language of what an agent is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Locale {
    /// English.
    #[default]
    En,
    /// Chinese, with the spec's own headings.
    Zh,
}

impl Locale {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::En, Self::Zh];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }

    /// The locale of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|locale| locale.as_str() == name)
    }

    fn template(self) -> Template {
        match self {
            Self::En => Template::AgentContextEn,
            Self::Zh => Template::AgentContextZh,
        }
    }
}

/// The name of the section that a pool is told in.
pub const SECTION: &str = "agent-context";

/// The most ids of a row. They are those of the best, and who wants more asks the pool: no model chooses among thousands.
const IDS: usize = 16;
/// The most rows of the table; what a task requires is always among them.
const ROWS: usize = 100;

impl AgentContext<'_> {
    /// The context for a model: the spec's `contextToSystemPrompt`.
    pub fn render(&self, locale: Locale) -> Result<String, ContextError> {
        let summary = self.pool.summary();
        let catalog = &summary.capability_catalog;
        let shown: Vec<Value> = catalog
            .iter()
            .enumerate()
            .filter(|(place, entry)| *place < ROWS || self.requires(entry.capability()))
            .map(|(_, entry)| self.row(entry))
            .collect();
        let task = self.task.as_ref().map(|task| {
            json!({
                "id": one_line(&task.id),
                "description": one_line(&task.description),
                "requiredCapabilities": task.required_capabilities,
            })
        });
        let note = self.orchestrator_note.as_deref();
        locale.template().render(json!({
            "total": summary.total_resources,
            "available": summary.available,
            "busy": summary.busy,
            "error": summary.error,
            "released": summary.released,
            "moreRows": catalog.len() - shown.len(),
            "rows": shown,
            "task": task,
            "note": note.map(block).filter(|note| !note.trim().is_empty()),
        }))
    }

    /// The same as a section that changes with the pool, so that the prefix before it stays what it was.
    pub fn section(&self, locale: Locale) -> Result<Section, ContextError> {
        Ok(Section::volatile(SECTION, "pool", self.render(locale)?))
    }

    fn requires(&self, capability: &Name) -> bool {
        let task = self.task.as_ref();
        task.is_some_and(|task| task.required_capabilities.contains(capability))
    }

    fn row(&self, entry: &CatalogEntry<'_>) -> Value {
        let available: Vec<&Name> = entry.best(IDS).collect();
        let task = self.task.iter();
        // They are not available, being taken: for this very task. So they are shown.
        let assigned: Vec<&Name> = task
            .flat_map(|task| &task.assigned_resources)
            .filter(|id| {
                let resource = self.pool.get(id.as_str());
                resource.is_some_and(|resource| resource.can().contains_key(entry.capability()))
            })
            .collect();
        json!({
            "capability": entry.capability(),
            "available": entry.available_count(),
            "total": entry.resource_count(),
            "more": entry.available_count() - available.len(),
            "ids": available,
            "assigned": assigned,
        })
    }
}

/// The base prompt with the context behind it; without a context the base prompt as it is. The spec's
/// `generateDynamicSystemPrompt`, for clients that send one string anew each turn.
pub fn dynamic_system_prompt(
    base: &str,
    context: Option<&AgentContext<'_>>,
    locale: Locale,
) -> Result<String, ContextError> {
    match context {
        Some(context) => Ok(format!("{base}\n\n{}", context.render(locale)?)),
        None => Ok(base.to_owned()),
    }
}

/// Text of others on one line, with nothing hidden in it; nothing where there is none.
fn one_line(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => line::value(&Value::from(seen(text).as_ref())),
    }
}

/// Text of others on lines of its own, none of which can pass for a heading or a table of ours.
fn block(text: &str) -> String {
    let text = seen(text);
    let mut lines: Vec<String> = Vec::new();
    for line in text.trim().split([
        '\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{2028}', '\u{2029}',
    ]) {
        let line: String = line
            .chars()
            .filter(|c| *c == '\t' || !c.is_control())
            .collect();
        let begins = line.trim_start();
        let rule = !begins.is_empty() && begins.trim_end().chars().all(|c| "-=_* ".contains(c));
        lines.push(match begins.starts_with(['#', '|']) || rule {
            true => format!("\\{begins}"),
            false => line,
        });
    }
    lines.join("\n")
}

fn seen(text: &str) -> Cow<'_, str> {
    match reveal(text) {
        Some((shown, _)) => Cow::Owned(shown),
        None => Cow::Borrowed(text),
    }
}
