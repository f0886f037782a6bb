//! Codex: lines in a row, each a response item, an event or what holds for a turn. The oldest files
//! have the items bare, behind a first line about the session.

use serde_json::Value;

use super::fields::{put_back, take_object, take_text, take_time};
use super::log::{Draft, Log, Parent, compaction};
use super::parts::{Said, answer, take_content};
use super::{Imported, Lines, Object, Source};
use crate::{Content, Message, Part, Payload, Role, ToolCall};

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

/// An item of a response, with the line around it.
struct Item {
    timestamp: String,
    line: Object,
    item: Object,
    bare: bool,
}

impl Item {
    /// What is left of the line.
    fn rest(self) -> Object {
        let mut line = self.line;
        match self.bare {
            true => line.extend(self.item),
            false => put_back(&mut line, "payload", self.item),
        }
        line
    }

    fn kind(&self) -> String {
        tag(&self.item).to_owned()
    }
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
            if content != Content::Null {
                let more = Message {
                    content,
                    ..Message::assistant("")
                };
                let mut parts = message.parts();
                parts.extend(more.parts());
                message.content = Content::Parts(parts);
            }
            message.tool_calls.extend(calls);
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
        let content = answer(content);
        let mut draft = Draft::message(
            item.kind(),
            Message {
                content,
                ..Message::tool_result(id, "")
            },
        );
        if let Some(failed) = failed {
            draft.meta.insert("isError".to_owned(), failed.into());
        }
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

    /// The history is another one from here on: a summary, or a list of items.
    fn compacted(&mut self, timestamp: String, mut line: Object, mut inner: Object) {
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
            summary = take_text(&mut inner, "message").filter(|text| !text.trim().is_empty());
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
    fn roll_back(&mut self, turns: u64, kind: &str, timestamp: String, line: Object) {
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

/// A thought: its summary to read, and all of it for the provider to get back.
fn thought(item: &mut Object) -> Content {
    let texts: Vec<&str> = ["summary", "content"]
        .iter()
        .filter_map(|key| item.get(*key)?.as_array())
        .flatten()
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    let thinking = texts.join("\n\n");
    let mut extra = Object::new();
    for key in ["summary", "content", "encrypted_content"] {
        if let Some(value) = item.shift_remove(key) {
            extra.insert(key.to_owned(), value);
        }
    }
    if let Some(id) = item.get("id") {
        extra.insert("id".to_owned(), id.clone());
    }
    Content::Parts(vec![Part::Thinking {
        thinking,
        signature: None,
        extra,
    }])
}

fn call(item: &mut Object) -> Option<ToolCall> {
    let kind = tag(item).to_owned();
    if kind == "local_shell_call" {
        let id = take_text(item, "call_id").or_else(|| {
            // The first versions name the item alone.
            item.get("id").and_then(Value::as_str).map(str::to_owned)
        })?;
        let action = item.shift_remove("action").unwrap_or_default();
        return Some(ToolCall::new(id, "local_shell", action.to_string()));
    }
    let id = take_text(item, "call_id").unwrap_or_default();
    let name = take_text(item, "name").unwrap_or_default();
    let custom = kind == "custom_tool_call";
    let input = take_text(item, if custom { "input" } else { "arguments" });
    let mut call = ToolCall::new(id, name, input.unwrap_or_default());
    if custom {
        call.extra.insert("type".to_owned(), "custom".into());
    }
    Some(call)
}

/// Reads a block of the Responses form and gives back what is left of it.
fn block(mut block: Object, said: &mut Said) -> Object {
    match block.get("type").and_then(Value::as_str) {
        Some("input_text" | "output_text" | "text") => {
            if let Some(text) = take_text(&mut block, "text") {
                said.parts.push(Part::text_part(text));
            }
        }
        Some("input_image") => {
            if let Some(url) = take_text(&mut block, "image_url") {
                let mut image_url = Object::from_iter([("url".to_owned(), url.into())]);
                if let Some(detail) = take_text(&mut block, "detail") {
                    image_url.insert("detail".to_owned(), detail.into());
                }
                let extra = Object::new();
                said.parts.push(Part::Image { image_url, extra });
            }
        }
        Some("refusal") => said.parts.push(Part::Other(std::mem::take(&mut block))),
        _ => {}
    }
    block
}
