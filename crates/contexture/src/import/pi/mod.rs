//! pi: entries in a tree like ours, from version 2 on; before, lines in a row.

mod blocks;

use serde_json::Value;

use super::fields::{flag, put_back, take_object, take_text, take_time, take_words};
use super::log::{Draft, Log, Parent, compaction};
use super::parts::{result, take_content};
use super::{Imported, Lines, Object, Source};
use crate::entry::BranchSummary;
use crate::{Message, Payload, Role};
use blocks::{block, ran};

const SOURCE: Source = Source::Pi;

/// The types of lines that pi writes.
pub(super) fn is_entry(tag: &str) -> bool {
    matches!(
        tag,
        "session"
            | "message"
            | "model_change"
            | "thinking_level_change"
            | "compaction"
            | "branch_summary"
            | "custom"
            | "custom_message"
            | "label"
            | "session_info"
    )
}

pub(super) fn read(lines: Lines) -> Imported {
    let mut rest = lines.read.into_iter().peekable();
    let header = match rest.next_if(|line| tag(line) == "session") {
        Some(line) => header(line),
        None => Draft::header(SOURCE, None, Object::new()),
    };
    let mut reader = Reader {
        log: Log::new(SOURCE, header),
        lines: vec![0],
    };
    for line in rest {
        reader.line(line);
        reader.lines.push(reader.log.tip());
    }
    reader.log.finish(lines.skipped)
}

fn header(mut line: Object) -> Draft {
    let id = take_text(&mut line, "id");
    let timestamp = take_time(&mut line);
    let cwd = take_text(&mut line, "cwd");
    Draft {
        id: id.map(|id| ("id", id)),
        timestamp,
        rest: line,
        ..Draft::header(SOURCE, cwd, Object::new())
    }
}

struct Reader {
    log: Log,
    /// Where each line went: version 1 counts lines.
    lines: Vec<usize>,
}

impl Reader {
    fn line(&mut self, mut line: Object) {
        let name = line.get("id").and_then(Value::as_str);
        if name.is_some_and(|name| self.log.named(name).is_some()) {
            // Written again: what it says has its place in the tree already.
            self.log.add(Draft::custom(SOURCE, "repeated", line));
            return;
        }
        let kind = tag(&line).to_owned();
        let id = take_text(&mut line, "id").map(|id| ("id", id));
        let parent = match line.get("parentId") {
            Some(Value::Null) => {
                line.shift_remove("parentId");
                Parent::Root
            }
            _ => match take_text(&mut line, "parentId") {
                Some(name) => Parent::Named("parentId", name),
                None => Parent::Tip,
            },
        };
        let draft = Draft {
            id,
            parent,
            timestamp: take_time(&mut line),
            ..Draft::new(kind.as_str(), Payload::Custom(Object::new()))
        };
        match kind.as_str() {
            "message" => self.message(draft, line),
            "custom_message" => {
                let (content, _) = take_content(&mut line, "content", block(false));
                self.put(
                    draft,
                    Message {
                        content,
                        ..Message::user("")
                    },
                    line,
                );
            }
            "model_change" => self.model(draft, line),
            "compaction" => self.compaction(draft, line),
            "branch_summary" => match take_text(&mut line, "summary") {
                Some(summary) => self.branch(draft, summary, line),
                None => self.custom(draft, line),
            },
            _ => self.custom(draft, line),
        }
    }

    fn message(&mut self, draft: Draft, mut line: Object) {
        let Some(mut inner) = take_object(&mut line, "message") else {
            return self.custom(draft, line);
        };
        let role = inner
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let draft = Draft {
            kind: format!("message.{role}"),
            ..draft
        };
        match role {
            "user" => {
                inner.shift_remove("role");
                let (content, _) = take_content(&mut inner, "content", block(false));
                put_back(&mut line, "message", inner);
                self.put(
                    draft,
                    Message {
                        content,
                        ..Message::user("")
                    },
                    line,
                );
            }
            // Version 2 called them so.
            "custom" | "hookMessage" => {
                let (content, _) = take_content(&mut inner, "content", block(false));
                put_back(&mut line, "message", inner);
                self.put(
                    draft,
                    Message {
                        content,
                        ..Message::user("")
                    },
                    line,
                );
            }
            "assistant" => self.assistant(draft, line, inner),
            "toolResult" => self.result(draft, line, inner),
            "bashExecution" => {
                let message = Message {
                    include_in_context: !flag(&inner, "excludeFromContext"),
                    ..Message::user(ran(&inner))
                };
                put_back(&mut line, "message", inner);
                self.put(draft, message, line);
            }
            "branchSummary" | "compactionSummary" => {
                let compacts = role == "compactionSummary";
                let summary = take_text(&mut inner, "summary").unwrap_or_default();
                let before = inner.get("tokensBefore").and_then(Value::as_u64);
                put_back(&mut line, "message", inner);
                match compacts && !summary.trim().is_empty() {
                    true => {
                        let draft = Draft {
                            rest: line,
                            ..draft
                        };
                        self.log
                            .compact(draft, compaction(summary, before, None), None);
                    }
                    false => self.branch(draft, summary, line),
                }
            }
            _ => {
                line.insert("message".to_owned(), inner.into());
                self.custom(draft, line);
            }
        }
    }

    fn assistant(&mut self, draft: Draft, mut line: Object, mut inner: Object) {
        inner.shift_remove("role");
        let maker = |key: &str| inner.get(key).and_then(Value::as_str).unwrap_or_default();
        let sealed = ["anthropic", "bedrock"]
            .iter()
            .any(|name| maker("api").contains(name) || maker("provider").contains(name));
        // pi sends no reply again that ended so.
        let ended = !matches!(maker("stopReason"), "error" | "aborted");
        let (content, tool_calls) = take_content(&mut inner, "content", block(sealed));
        put_back(&mut line, "message", inner);
        let message = Message {
            content,
            tool_calls,
            include_in_context: ended,
            ..Message::new(Role::Assistant, "")
        };
        self.put(draft, message, line);
    }

    fn result(&mut self, draft: Draft, mut line: Object, mut inner: Object) {
        let id = take_text(&mut inner, "toolCallId").unwrap_or_default();
        let (content, _) = take_content(&mut inner, "content", block(false));
        let failed = inner.get("isError").and_then(Value::as_bool);
        if failed.is_some() {
            inner.shift_remove("isError");
        }
        put_back(&mut line, "message", inner);
        self.put(draft, result(id, content, failed), line);
    }

    fn model(&mut self, draft: Draft, mut line: Object) {
        let Some(model) = take_text(&mut line, "modelId") else {
            return self.custom(draft, line);
        };
        let mut change = Object::from_iter([("model".to_owned(), model.into())]);
        if let Some(provider) = take_text(&mut line, "provider") {
            change.insert("provider".to_owned(), provider.into());
        }
        let payload = Payload::ModelChange(change);
        self.log.add(Draft {
            payload,
            rest: line,
            ..draft
        });
    }

    fn compaction(&mut self, draft: Draft, mut line: Object) {
        let Some(summary) = take_words(&mut line, "summary") else {
            return self.custom(draft, line);
        };
        let before = line.get("tokensBefore").and_then(Value::as_u64);
        let by_id = line.get("firstKeptEntryId").and_then(Value::as_str);
        let by_index = line.get("firstKeptEntryIndex").and_then(Value::as_u64);
        let kept = by_id.and_then(|id| self.log.named(id)).or_else(|| {
            let index = usize::try_from(by_index?).ok()?;
            self.lines.get(index).copied().filter(|&p| p > 0)
        });
        let draft = Draft {
            rest: line,
            ..draft
        };
        self.log
            .compact(draft, compaction(summary, before, None), kept);
    }

    fn branch(&mut self, draft: Draft, summary: String, line: Object) {
        let payload = Payload::BranchSummary(BranchSummary {
            summary,
            extra: Object::new(),
        });
        self.log.add(Draft {
            payload,
            rest: line,
            ..draft
        });
    }

    fn put(&mut self, draft: Draft, message: Message, line: Object) {
        let payload = Payload::Message { message };
        self.log.add(Draft {
            payload,
            rest: line,
            ..draft
        });
    }

    fn custom(&mut self, draft: Draft, line: Object) {
        let payload = Draft::custom(SOURCE, "", line).payload;
        self.log.add(Draft { payload, ..draft });
    }
}

fn tag(line: &Object) -> &str {
    line.get("type").and_then(Value::as_str).unwrap_or("line")
}
