//! pi: entries in a tree like ours, from version 2 on; before, lines in a row.

use serde_json::Value;

use super::fields::{flag, put_back, take_object, take_text, take_time};
use super::log::{Draft, Log, Parent, compaction};
use super::parts::{self, Said, answer, take_content};
use super::{Imported, Lines, Object, Source};
use crate::entry::BranchSummary;
use crate::{Message, Part, Payload, Role, ToolCall};

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

    fn result(&mut self, mut draft: Draft, mut line: Object, mut inner: Object) {
        let id = take_text(&mut inner, "toolCallId").unwrap_or_default();
        let (content, _) = take_content(&mut inner, "content", block(false));
        if let Some(failed) = inner.get("isError").and_then(Value::as_bool) {
            inner.shift_remove("isError");
            draft.meta.insert("isError".to_owned(), failed.into());
        }
        put_back(&mut line, "message", inner);
        let content = answer(content);
        self.put(
            draft,
            Message {
                content,
                ..Message::tool_result(id, "")
            },
            line,
        );
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
        let Some(summary) = take_text(&mut line, "summary").filter(|s| !s.trim().is_empty()) else {
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

/// A command that the user ran, as pi tells the model of it.
fn ran(run: &Object) -> String {
    let text = |key: &str| run.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut out = format!("Ran `{}`\n", text("command"));
    match text("output") {
        "" => out.push_str("(no output)"),
        output => out.push_str(&format!("```\n{output}\n```")),
    }
    match run.get("exitCode").and_then(Value::as_i64) {
        _ if flag(run, "cancelled") => out.push_str("\n\n(command cancelled)"),
        Some(code) if code != 0 => out.push_str(&format!("\n\nCommand exited with code {code}")),
        _ => {}
    }
    out
}

/// Reads a block and gives back what is left of it. A seal is one for Anthropic's models only;
/// elsewhere the field holds what another provider wants back.
fn block(sealed: bool) -> impl Fn(Object, &mut Said) -> Object {
    move |mut block, said| {
        let is_text = |block: &Object, key: &str| block.get(key).is_some_and(Value::is_string);
        match block.get("type").and_then(Value::as_str) {
            Some("text") => parts::text(&mut block, said),
            Some("image") => said
                .parts
                .extend(parts::image(&mut block, "mimeType", "data")),
            Some("thinking") if is_text(&block, "thinking") => {
                let mut whole = std::mem::take(&mut block);
                if sealed && flag(&whole, "redacted") && is_text(&whole, "thinkingSignature") {
                    let seal = take_text(&mut whole, "thinkingSignature").unwrap_or_default();
                    block.insert("type".to_owned(), "thinking".into());
                    whole.insert("type".to_owned(), "redacted_thinking".into());
                    whole.insert("data".to_owned(), seal.into());
                    said.parts.push(Part::Other(whole));
                    return block;
                }
                whole.shift_remove("type");
                let thinking = take_text(&mut whole, "thinking").unwrap_or_default();
                let signature = match sealed {
                    true => take_text(&mut whole, "thinkingSignature"),
                    false => None,
                };
                said.parts.push(Part::Thinking {
                    thinking,
                    signature,
                    extra: whole,
                });
            }
            Some("toolCall") if is_text(&block, "id") && is_text(&block, "name") => {
                let id = take_text(&mut block, "id").unwrap_or_default();
                let name = take_text(&mut block, "name").unwrap_or_default();
                let arguments = match block.shift_remove("arguments") {
                    Some(arguments) => arguments.to_string(),
                    None => "{}".to_owned(),
                };
                said.calls.push(ToolCall::new(id, name, arguments));
            }
            _ => {}
        }
        block
    }
}
