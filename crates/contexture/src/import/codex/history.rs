//! What changes the history after the fact: a compaction, a rollback.

use serde_json::Value;

use super::items::Item;
use super::{Reader, SOURCE};
use crate::import::Object;
use crate::import::fields::take_words;
use crate::import::log::{Draft, Parent, compaction};
use crate::{Payload, Role};

impl Reader {
    /// The history is another one from here on: a summary, or a list of items.
    pub(super) fn compacted(&mut self, timestamp: String, mut line: Object, mut inner: Object) {
        self.open = None;
        let history = match inner.get("replacement_history") {
            Some(Value::Array(items)) if items.iter().any(is_sealed) => {
                // Only OpenAI can read this summary. The history itself is better than none.
                line.insert("payload".to_owned(), inner.into());
                return self.custom("compacted", timestamp, line);
            }
            Some(Value::Array(items)) if !items.is_empty() => items.clone(),
            _ => Vec::new(),
        };
        let mut summary = None;
        if history.is_empty() {
            summary = take_words(&mut inner, "message");
        } else {
            inner.shift_remove("replacement_history");
        }
        line.insert("payload".to_owned(), inner.into());
        self.custom("compacted", timestamp.clone(), line);
        let draft = Draft {
            timestamp: timestamp.clone(),
            ..Draft::new("compacted", Payload::Custom(Object::new()))
        };
        let mut compaction = compaction(summary.unwrap_or_default(), None, None);
        if !compaction.summary.is_empty() {
            // What users said stands beside the summary.
            let users = self.log.path(self.log.tip()).filter(|&p| self.is_user(p));
            compaction.kept_entry_ids = users.map(|p| self.log.id(p)).collect();
            compaction.kept_entry_ids.reverse();
            self.log.compact(draft, compaction, None);
        } else if !history.is_empty() {
            let leading = self.leading();
            self.log.compact(draft, compaction, None);
            for value in history {
                let (timestamp, line) = (timestamp.clone(), Object::new());
                match value {
                    // What leads a session is never summarised, so it is still there.
                    Value::Object(item) if leading.contains(&instruction(&item)) => {
                        self.custom("compacted", timestamp, item);
                    }
                    Value::Object(item) => self.item(Item {
                        timestamp,
                        line,
                        item,
                        bare: true,
                    }),
                    other => {
                        let line = Object::from_iter([("item".to_owned(), other)]);
                        self.custom("compacted", timestamp, line);
                    }
                }
            }
            self.open = None;
        }
    }

    /// The last turns are undone: what follows goes on from before them.
    pub(super) fn roll_back(&mut self, turns: u64, kind: &str, timestamp: String, line: Object) {
        self.open = None;
        let asked = self.log.path(self.log.tip()).filter(|&p| self.is_turn(p));
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        let first = asked.take(turns).last();
        let before = first.and_then(|p| self.log.path(p).nth(1));
        let mut draft = Draft::custom(SOURCE, kind, line);
        draft.timestamp = timestamp;
        if let Some(before) = before {
            draft.parent = Parent::At(before);
        }
        self.log.add(draft);
    }

    /// The instructions that the session opened with.
    fn leading(&self) -> Vec<Option<String>> {
        let mut path: Vec<usize> = self.log.path(self.log.tip()).collect();
        path.reverse();
        path.into_iter()
            .filter_map(|p| self.log.message(p))
            .take_while(|message| message.role.is_system())
            .map(|message| Some(message.text().into_owned()))
            .collect()
    }

    fn is_user(&self, position: usize) -> bool {
        let message = self.log.message(position);
        message.is_some_and(|message| message.role == Role::User)
    }

    /// Whether a turn begins there: a user speaks, and not Codex in their name.
    fn is_turn(&self, position: usize) -> bool {
        const OWN: [&str; 6] = [
            "<environment_context>",
            "<user_instructions>",
            "<user_shell_command>",
            "<turn_aborted>",
            "<skill>",
            "# AGENTS.md instructions",
        ];
        self.is_user(position)
            && self.log.message(position).is_some_and(|message| {
                let text = message.text();
                !OWN.iter().any(|own| text.trim_start().starts_with(own))
            })
    }
}

/// The text of an item that instructs.
fn instruction(item: &Object) -> Option<String> {
    let role = item.get("role").and_then(Value::as_str);
    role.and_then(Role::parse).filter(|role| role.is_system())?;
    let blocks = item.get("content").and_then(Value::as_array)?;
    let texts = blocks
        .iter()
        .filter_map(|block| block.get("text")?.as_str());
    Some(texts.collect())
}

/// Whether the item is a summary that only its provider can read.
fn is_sealed(item: &Value) -> bool {
    matches!(
        item.get("type").and_then(Value::as_str),
        Some("compaction" | "compaction_summary" | "context_compaction")
    )
}
