//! Codex: lines in a row, each a response item, an event or what holds for a turn. The oldest files
//! have the items bare, behind a first line about the session.

mod history;
mod items;

use serde_json::Value;

use super::fields::{put_back, take_object, take_text, take_time};
use super::log::{Draft, Log};
use super::parts::{extend, result, take_content};
use super::{Imported, Lines, Object, Source};
use crate::{Content, Message, Payload, Role, ToolCall};
use items::{Item, block, call, thought};

const SOURCE: Source = Source::Codex;

/// The types of lines that hold a payload.
pub(super) fn is_envelope(tag: &str) -> bool {
    matches!(
        tag,
        "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted"
    )
}

/// Whether the line is an item as the oldest files hold them.
pub(super) fn is_bare(tag: &str, line: &Object) -> bool {
    let in_blocks = |content: &Value| {
        let block = content.get(0).and_then(|block| block.get("type"));
        block.is_some_and(|tag| tag == "input_text" || tag == "output_text")
    };
    !line.contains_key("payload")
        && match tag {
            "message" => line.get("content").is_some_and(in_blocks),
            _ => is_item(tag),
        }
}

fn is_item(tag: &str) -> bool {
    matches!(
        tag,
        "reasoning"
            | "function_call"
            | "function_call_output"
            | "custom_tool_call"
            | "custom_tool_call_output"
            | "local_shell_call"
            | "web_search_call"
    )
}

pub(super) fn read(lines: Lines) -> Imported {
    let mut rest = lines.read.into_iter().peekable();
    let header = match rest.next_if(is_header) {
        Some(line) => header(line),
        None => Draft::header(SOURCE, None, Object::new()),
    };
    let mut reader = Reader {
        log: Log::new(SOURCE, header),
        open: None,
    };
    for line in rest {
        reader.line(line);
    }
    reader.log.finish(lines.skipped)
}

fn is_header(line: &Object) -> bool {
    match tag(line) {
        "session_meta" => line.get("payload").is_some_and(Value::is_object),
        "line" => line.contains_key("id") && line.contains_key("timestamp"),
        _ => false,
    }
}

fn header(mut line: Object) -> Draft {
    let timestamp = take_time(&mut line);
    let mut inner = take_object(&mut line, "payload");
    let said = inner.as_mut().unwrap_or(&mut line);
    let id = take_text(said, "id");
    let cwd = take_text(said, "cwd");
    put_back(&mut line, "payload", inner.unwrap_or_default());
    Draft {
        id: id.map(|id| ("id", id)),
        timestamp,
        rest: line,
        ..Draft::header(SOURCE, cwd, Object::new())
    }
}

struct Reader {
    log: Log,
    /// The assistant's message that the next items go on with.
    open: Option<usize>,
}

impl Reader {
    fn line(&mut self, mut line: Object) {
        let kind = tag(&line).to_owned();
        let timestamp = take_time(&mut line);
        let Some(item) = take_object(&mut line, "payload") else {
            let known = is_item(&kind) || (kind == "message" && line.contains_key("role"));
            return match known {
                true => {
                    let (line, item) = (Object::new(), line);
                    self.item(Item {
                        timestamp,
                        line,
                        item,
                        bare: true,
                    });
                }
                false => self.custom(&kind, timestamp, line),
            };
        };
        match kind.as_str() {
            "response_item" => self.item(Item {
                timestamp,
                line,
                item,
                bare: false,
            }),
            "compacted" => self.compacted(timestamp, line, item),
            "turn_context" if item.get("model").is_some_and(Value::is_string) => {
                self.model(timestamp, line, item);
            }
            _ => {
                let turns = match (kind.as_str(), tag(&item)) {
                    ("event_msg", "thread_rolled_back") => item.get("num_turns"),
                    _ => None,
                };
                let turns = turns.and_then(Value::as_u64);
                let kind = match kind.as_str() {
                    "event_msg" => format!("event_msg.{}", tag(&item)),
                    _ => kind,
                };
                line.insert("payload".to_owned(), item.into());
                match turns {
                    Some(turns) if turns > 0 => self.roll_back(turns, &kind, timestamp, line),
                    _ => self.custom(&kind, timestamp, line),
                }
            }
        }
    }

    fn item(&mut self, item: Item) {
        let role = item.item.get("role").and_then(Value::as_str);
        match (tag(&item.item), role.and_then(Role::parse)) {
            ("message", Some(Role::Assistant)) => {
                // Another answer, unless the one before waits for its calls.
                let waits = |p: &usize| {
                    self.log
                        .message(*p)
                        .is_some_and(|m| !m.tool_calls.is_empty())
                };
                let thinks = |p: &usize| self.log.message(*p).is_some_and(Message::is_empty);
                self.open = self.open.filter(|p| waits(p) || thinks(p));
                self.go_on(item, |item| take_content(item, "content", block));
            }
            ("message", Some(role)) if role != Role::Tool => self.said(item, role),
            ("reasoning", _) => self.go_on(item, |item| (thought(item), Vec::new())),
            ("function_call" | "custom_tool_call" | "local_shell_call", _) => {
                self.go_on(item, |item| {
                    (Content::Null, call(item).into_iter().collect())
                });
            }
            ("function_call_output" | "custom_tool_call_output", _)
                if item.item.get("call_id").is_some_and(Value::is_string) =>
            {
                self.answered(item);
            }
            _ => {
                let (kind, timestamp) = (item.kind(), item.timestamp.clone());
                self.custom(&kind, timestamp, item.rest());
            }
        }
    }

    fn said(&mut self, mut item: Item, role: Role) {
        self.open = None;
        item.item.shift_remove("role");
        let (content, _) = take_content(&mut item.item, "content", block);
        self.put(
            item,
            Message {
                content,
                ..Message::new(role, "")
            },
        );
    }

    /// A part of what the assistant says: a new message, or more of the open one.
    fn go_on(
        &mut self,
        mut item: Item,
        take: impl FnOnce(&mut Object) -> (Content, Vec<ToolCall>),
    ) {
        let (content, calls) = take(&mut item.item);
        let Some(position) = self.open else {
            item.item.shift_remove("role");
            let message = Message {
                content,
                tool_calls: calls,
                ..Message::assistant("")
            };
            self.open = Some(self.put(item, message));
            return;
        };
        let kind = item.kind();
        if !item.timestamp.is_empty() && !item.line.contains_key("timestamp") {
            item.line
                .insert("timestamp".to_owned(), item.timestamp.clone().into());
        }
        self.log.amend(position, &kind, item.rest(), |message| {
            extend(message, content, calls);
        });
    }

    fn answered(&mut self, mut item: Item) {
        self.open = None;
        let id = take_text(&mut item.item, "call_id").unwrap_or_default();
        let (content, failed) = match take_object(&mut item.item, "output") {
            // What the first versions wrote.
            Some(mut output) => {
                let (content, _) = take_content(&mut output, "content", block);
                let failed = output.get("success").and_then(Value::as_bool).map(|ok| !ok);
                put_back(&mut item.item, "output", output);
                (content, failed)
            }
            None => (take_content(&mut item.item, "output", block).0, None),
        };
        let draft = Draft::message(item.kind(), result(id, content, failed));
        self.add(item, draft);
    }

    fn model(&mut self, timestamp: String, mut line: Object, mut item: Object) {
        let model = item.shift_remove("model").unwrap_or_default();
        put_back(&mut line, "payload", item);
        let payload = Payload::ModelChange(Object::from_iter([("model".to_owned(), model)]));
        let draft = Draft::new("turn_context", payload);
        self.log.add(Draft {
            timestamp,
            rest: line,
            ..draft
        });
    }

    fn custom(&mut self, kind: &str, timestamp: String, line: Object) {
        let draft = Draft::custom(SOURCE, kind, line);
        self.log.add(Draft { timestamp, ..draft });
    }

    fn put(&mut self, item: Item, message: Message) -> usize {
        let draft = Draft::message(item.kind(), message);
        self.add(item, draft)
    }

    fn add(&mut self, mut item: Item, draft: Draft) -> usize {
        let id = take_text(&mut item.item, "id").map(|id| ("id", id));
        let timestamp = std::mem::take(&mut item.timestamp);
        self.log.add(Draft {
            id,
            timestamp,
            rest: item.rest(),
            ..draft
        })
    }
}

fn tag(line: &Object) -> &str {
    line.get("type").and_then(Value::as_str).unwrap_or("line")
}
