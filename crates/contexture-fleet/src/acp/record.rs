//! What an agent said and did, as messages of our log.
//!
//! Agents stream: a few letters, a call that begins, a call that is half done. A log holds whole messages,
//! in an order that every provider takes: what the assistant said with its calls, then a result for each.
//! So a step is kept until it is whole, and what comes while its calls are under way stands behind it.

use std::collections::VecDeque;

use contexture::Payload;
use contexture::message::{Content, Message, Part, Role, ToolCall};
use serde_json::{Map, Value, json};

/// The most bytes of a tool's result.
const LONGEST_RESULT: usize = 32 << 10;
/// The most bytes of a call's arguments.
const LONGEST_ARGUMENTS: usize = 32 << 10;
/// The most bytes of a text that is still being said. Then it is a message, and the next begins.
const LONGEST_TEXT: usize = 1 << 20;
/// What a part takes beside its text.
const PART: usize = 256;
/// The most steps that wait for a call to end, and the most memory that they take.
const MOST_STEPS: usize = 64;
const MAX_WAITING_BYTES: usize = 16 << 20;
/// The most calls of a step.
const MOST_CALLS: usize = 128;
/// How many ended calls are remembered, for what is told of them later.
const REMEMBERED: usize = 1024;

/// The kind of the `custom` entry that holds an agent's plan.
pub const PLAN: &str = "acp_plan";

/// Makes messages of a session's updates.
#[derive(Debug, Default)]
pub struct Transcript {
    steps: VecDeque<Step>,
    ended: VecDeque<String>,
    user: Step,
    replays: bool,
}

/// What the assistant said, and the calls that it made then.
#[derive(Debug, Default)]
struct Step {
    parts: Vec<Part>,
    bytes: usize,
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: Option<String>,
    title: Option<String>,
    kind: Option<String>,
    /// Its arguments, as JSON text.
    input: Option<String>,
    paths: Vec<String>,
    /// What came of it, as text: as it is shown, and as the tool gave it.
    content: Option<String>,
    output: Option<String>,
    /// Whether it failed, once it has ended.
    failed: Option<bool>,
}

impl Transcript {
    /// For a session that is under way: what the user says is given with [`prompt`](Self::prompt), and an
    /// agent that repeats it is not listened to.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a session that is loaded: what the user said comes with the rest.
    pub fn replay() -> Self {
        Self {
            replays: true,
            ..Self::default()
        }
    }

    /// What the user says. Whatever came before is over.
    pub fn prompt(&mut self, blocks: &[Value]) -> Vec<Payload> {
        let mut out = self.finish("another prompt");
        let mut said = Step::default();
        blocks
            .iter()
            .filter_map(|block| part(block, false))
            .for_each(|part| said.say(part));
        out.extend(said.message(Role::User).map(payload));
        out
    }

    /// Takes an update, and gives what is whole with it.
    pub fn push(&mut self, update: &Value) -> Vec<Payload> {
        let mut out = Vec::new();
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if kind == "user_message_chunk" && self.replays {
            if self.user.parts.is_empty() || self.user.bytes > LONGEST_TEXT {
                out.extend(self.finish("another prompt"));
            }
            if let Some(part) = part(&update["content"], false) {
                self.user.say(part);
            }
            return out;
        }
        out.extend(self.user_message());
        match kind {
            "agent_message_chunk" => self.say(&update["content"], false),
            "agent_thought_chunk" => self.say(&update["content"], true),
            "tool_call" => self.call(update, true),
            "tool_call_update" => self.call(update, false),
            "plan" if update["entries"].to_string().len() <= LONGEST_RESULT => {
                let kind = ("kind".to_owned(), json!(PLAN));
                let entries = ("entries".to_owned(), update["entries"].clone());
                out.push(Payload::Custom(Map::from_iter([kind, entries])));
            }
            _ => {}
        }
        self.flush(&mut out);
        out
    }

    /// The turn is over, and this is why. Calls that did not end never will.
    pub fn finish(&mut self, stop_reason: &str) -> Vec<Payload> {
        let mut out = Vec::new();
        out.extend(self.user_message());
        while let Some(step) = self.steps.pop_front() {
            self.write(step, stop_reason, &mut out);
        }
        out
    }

    fn user_message(&mut self) -> Option<Payload> {
        std::mem::take(&mut self.user)
            .message(Role::User)
            .map(payload)
    }

    /// Adds to what is being said.
    fn say(&mut self, block: &Value, thought: bool) {
        let Some(said) = part(block, thought) else {
            return;
        };
        let step = match self.steps.back_mut() {
            Some(step) if step.calls.is_empty() && step.bytes < LONGEST_TEXT => step,
            _ => self.begin(),
        };
        step.say(said);
    }

    fn begin(&mut self) -> &mut Step {
        self.steps.push_back(Step::default());
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    /// Takes what is told of a call, the first time or later.
    fn call(&mut self, update: &Value, begins: bool) {
        let Some(id) = update["toolCallId"].as_str() else {
            return;
        };
        let id: String = id.chars().take(200).collect();
        let under_way = self.steps.iter_mut().rev();
        let mut calls = under_way.flat_map(|step| step.calls.iter_mut());
        if let Some(call) = calls.find(|call| call.id == id && call.failed.is_none()) {
            return call.take(update);
        }
        // Of a call that has ended there is nothing more to say. But agents use ids again.
        let ended = || self.steps.iter().flat_map(|step| &step.calls);
        if !begins && (self.ended.contains(&id) || ended().any(|call| call.id == id)) {
            return;
        }
        let mut call = Call {
            id,
            ..Call::default()
        };
        call.take(update);
        // Calls that run beside each other are one step; one that begins behind the end of all is the next.
        let step = match self.steps.back_mut() {
            Some(step) if step.takes(&call.id) => step,
            _ => self.begin(),
        };
        step.calls.push(call);
    }

    /// Gives the steps that are whole: nothing is added to one that has another behind it, or whose calls
    /// have all ended.
    fn flush(&mut self, out: &mut Vec<Payload>) {
        while let Some(first) = self.steps.front() {
            let ended = first.calls.iter().all(|call| call.failed.is_some());
            let whole = match first.calls.is_empty() {
                true => self.steps.len() > 1,
                false => ended,
            };
            if !whole && self.has_room() {
                return;
            }
            if let Some(step) = self.steps.pop_front() {
                self.write(step, "it went on without it", out);
            }
        }
    }

    /// Whether the first step may wait for the end of its calls.
    fn has_room(&self) -> bool {
        let held = || self.steps.iter().map(Step::held).sum::<usize>();
        match self.steps.len() {
            0 | 1 => true,
            many => many <= MOST_STEPS && held() <= MAX_WAITING_BYTES,
        }
    }

    fn write(&mut self, step: Step, why: &str, out: &mut Vec<Payload>) {
        let results: Vec<Message> = step.calls.iter().map(|call| call.result(why)).collect();
        let calls: Vec<ToolCall> = step.calls.iter().map(Call::tool_call).collect();
        let ids = step.calls.iter().map(|call| call.id.clone());
        self.ended.extend(ids);
        let beyond = self.ended.len().saturating_sub(REMEMBERED);
        self.ended.drain(..beyond);
        let said = Step {
            calls: Vec::new(),
            ..step
        };
        // Thoughts alone are kept too: they are what was done, though no model is shown them.
        let message = match said.message(Role::Assistant) {
            Some(message) => Some(Message {
                tool_calls: calls,
                ..message
            }),
            None if calls.is_empty() => None,
            None => Some(Message::calls(calls)),
        };
        out.extend(message.map(payload));
        out.extend(results.into_iter().map(payload));
    }
}

impl Step {
    /// Adds a part, to the last one where both are of a kind.
    fn say(&mut self, part: Part) {
        self.bytes += length(&part) + PART;
        match (self.parts.last_mut(), part) {
            (Some(Part::Text { text, .. }), Part::Text { text: more, .. }) => text.push_str(&more),
            (Some(Part::Thinking { thinking, .. }), Part::Thinking { thinking: more, .. }) => {
                thinking.push_str(&more);
            }
            (_, part) => self.parts.push(part),
        }
    }

    /// The memory that it takes, about.
    fn held(&self) -> usize {
        self.bytes + self.calls.iter().map(Call::held).sum::<usize>()
    }

    /// What was said, as a message of whoever said it; none if nothing was.
    fn message(self, role: Role) -> Option<Message> {
        let content = match self.parts.as_slice() {
            [] => return None,
            [Part::Text { text, .. }] => Content::Text(text.clone()),
            _ => Content::Parts(self.parts),
        };
        Some(Message {
            content,
            ..Message::new(role, "")
        })
    }

    /// Whether a call of this id can be one of this step's.
    fn takes(&self, id: &str) -> bool {
        let running = self.calls.iter().any(|call| call.failed.is_none());
        let has = self.calls.iter().any(|call| call.id == id);
        !has && self.calls.len() < MOST_CALLS && (self.calls.is_empty() || running)
    }
}

impl Call {
    /// Takes what an update says; what it does not say stays. Only as much is kept as will be written.
    fn take(&mut self, update: &Value) {
        let text = |value: &Value, most: usize| value.as_str().map(|text| cut(text, most));
        // Some tell the tool's name apart from its title, each in its own place.
        let names = [
            &update["name"],
            &update["_meta"]["claudeCode"]["toolName"],
            &update["_meta"]["goose"]["toolCall"]["toolName"],
        ];
        let name = names.into_iter().find_map(|name| text(name, 200));
        self.name = name.or_else(|| self.name.take());
        self.title = text(&update["title"], 1_000).or_else(|| self.title.take());
        self.kind = text(&update["kind"], 100).or_else(|| self.kind.take());
        self.input = arguments(&update["rawInput"]).or_else(|| self.input.take());
        if let Some(places) = update["locations"].as_array() {
            let paths = places
                .iter()
                .filter_map(|place| text(&place["path"], 1_000));
            self.paths = paths.take(16).collect();
        }
        self.content = shown(&update["content"]).or_else(|| self.content.take());
        self.output = output(&update["rawOutput"]).or_else(|| self.output.take());
        match update["status"].as_str() {
            Some("completed") => self.failed = Some(false),
            Some("failed") => self.failed = Some(true),
            _ => {}
        }
    }

    fn held(&self) -> usize {
        let texts = [&self.input, &self.content, &self.output, &self.title];
        let texts = texts.into_iter().flatten().chain(&self.paths);
        PART + texts.map(String::len).sum::<usize>()
    }

    fn tool_call(&self) -> ToolCall {
        let arguments = self.input.clone().unwrap_or_else(|| self.about());
        ToolCall::new(self.id.clone(), self.tool_name(), arguments)
    }

    /// What is told of it instead of its arguments.
    fn about(&self) -> String {
        let mut about = Map::new();
        if let Some(title) = &self.title {
            about.insert("title".to_owned(), json!(title));
        }
        if !self.paths.is_empty() {
            about.insert("paths".to_owned(), json!(self.paths));
        }
        Value::Object(about).to_string()
    }

    /// A name that providers take: the tool's, else its title where that is one, else its kind.
    fn tool_name(&self) -> String {
        let legal = |name: &&String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            !name.is_empty() && name.len() <= 64 && name.chars().all(plain)
        };
        let names = [&self.name, &self.title, &self.kind];
        let name = names.into_iter().flatten().find(legal);
        name.cloned().unwrap_or_else(|| "tool".to_owned())
    }

    fn result(&self, why: &str) -> Message {
        let text = || self.content.clone().or_else(|| self.output.clone());
        let (text, failed) = match self.failed {
            Some(failed) => (text().unwrap_or_default(), failed),
            None => (format!("It did not end: {why}."), true),
        };
        let mut message = Message::tool_result(self.id.clone(), text);
        if failed {
            message.extra.insert("isError".to_owned(), json!(true));
        }
        message
    }
}

/// The arguments of a call, if there are any yet.
fn arguments(input: &Value) -> Option<String> {
    let whole = match input {
        Value::Null => return None,
        Value::Object(none) if none.is_empty() => return None,
        Value::Object(_) => input.to_string(),
        other => json!({ "input": other }).to_string(),
    };
    Some(match whole.len() <= LONGEST_ARGUMENTS {
        true => whole,
        // It has to stay JSON.
        false => json!({ "beginning": cut(&whole, LONGEST_ARGUMENTS / 2) }).to_string(),
    })
}

/// What came of a call, as the tool gave it.
fn output(raw: &Value) -> Option<String> {
    let text = match (raw, raw.get("output")) {
        (Value::Null, _) => return None,
        (Value::String(text), _) | (_, Some(Value::String(text))) => text.clone(),
        (value, _) => value.to_string(),
    };
    Some(cut(&text, LONGEST_RESULT))
}

/// What came of a call, as it is shown to people.
fn shown(content: &Value) -> Option<String> {
    let pieces: Vec<String> = content.as_array()?.iter().filter_map(piece).collect();
    let text = pieces.join("\n");
    match text.is_empty() {
        true => None,
        false => Some(cut(&text, LONGEST_RESULT)),
    }
}

fn piece(content: &Value) -> Option<String> {
    match content["type"].as_str()? {
        "content" => match part(&content["content"], false)? {
            Part::Text { text, .. } => Some(text),
            _ => Some("[an image]".to_owned()),
        },
        "diff" => {
            let path = content["path"].as_str().unwrap_or_default();
            let new = content["newText"].as_str().unwrap_or_default();
            Some(match content["oldText"].as_str() {
                Some(old) => format!("{path}, before:\n{old}\n{path}, now:\n{new}"),
                None => format!("{path}, new:\n{new}"),
            })
        }
        "terminal" => {
            let id = content["terminalId"].as_str().unwrap_or_default();
            Some(format!("[the output of {id}]"))
        }
        _ => None,
    }
}

/// A block of content as a part of a message.
fn part(block: &Value, thought: bool) -> Option<Part> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let said = match block["type"].as_str()? {
        "text" => text(&block["text"])?,
        "resource_link" => {
            let uri = text(&block["uri"])?;
            let name = text(&block["name"]).unwrap_or_else(|| uri.clone());
            format!("[{name}]({uri})")
        }
        "resource" => {
            let inside = &block["resource"];
            let uri = text(&inside["uri"]).unwrap_or_default();
            match text(&inside["text"]) {
                Some(text) => format!("{uri}:\n{text}"),
                None => format!("[{uri}]"),
            }
        }
        "image" => {
            let (kind, data) = (text(&block["mimeType"])?, text(&block["data"])?);
            let url = json!(format!("data:{kind};base64,{data}"));
            return Some(Part::Image {
                image_url: Map::from_iter([("url".to_owned(), url)]),
                extra: Map::new(),
            });
        }
        _ => return None,
    };
    if said.is_empty() {
        return None;
    }
    Some(match thought {
        true => Part::Thinking {
            thinking: said,
            signature: None,
            extra: Map::new(),
        },
        false => Part::text_part(said),
    })
}

fn length(part: &Part) -> usize {
    match part {
        Part::Text { text, .. } => text.len(),
        Part::Thinking { thinking, .. } => thinking.len(),
        Part::Image { image_url, .. } => image_url
            .values()
            .filter_map(Value::as_str)
            .map(str::len)
            .sum(),
        Part::File { .. } | Part::Other(_) => 0,
    }
}

/// The beginning of a text, with a mark that says how much is missing.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let at = (0..=most).rev().find(|at| text.is_char_boundary(*at));
    let at = at.unwrap_or_default();
    format!("{}\n[{} bytes were cut]", &text[..at], text.len() - at)
}

fn payload(message: Message) -> Payload {
    Payload::Message { message }
}
