//! A call of a tool, as an agent tells of it in pieces.

use contexture::message::{Message, ToolCall};
use serde_json::{Map, Value, json};

use super::part::{PART, cut};
use super::terminal::{Piece, Terminal, Terminals, shown};

/// The most bytes of a tool's result.
pub(super) const MAX_RESULT_BYTES: usize = 32 << 10;
/// The most bytes of a result of several pieces, each of which may say how much of it was cut.
const MAX_SHOWN_BYTES: usize = MAX_RESULT_BYTES + 64;
/// The most bytes of a call's arguments.
const MAX_ARGUMENT_BYTES: usize = 32 << 10;

/// A call, as far as it was told.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub id: String,
    name: Option<String>,
    title: Option<String>,
    kind: Option<String>,
    /// Its arguments, as JSON text.
    input: Option<String>,
    paths: Vec<String>,
    /// Its result: as it is shown, what its terminals printed, and as the tool gave it.
    content: Vec<Piece>,
    terminals: Terminals,
    output: Option<String>,
    /// True if it failed; none until it has ended.
    pub failed: Option<bool>,
}

impl Call {
    pub fn new(id: String) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    /// Takes what an update says; what it does not say stays. Only as much is kept as will be written.
    pub fn take(&mut self, update: &Value) {
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
        let content = shown(&update["content"]);
        if !content.is_empty() {
            self.content = content;
        }
        self.terminals.take(&update["_meta"]);
        self.output = output(&update["rawOutput"]).or_else(|| self.output.take());
        match update["status"].as_str() {
            Some("completed") => self.failed = Some(false),
            Some("failed") => self.failed = Some(true),
            _ => {}
        }
    }

    pub fn held(&self) -> usize {
        let texts = [&self.input, &self.output, &self.title];
        let texts = texts.into_iter().flatten().chain(&self.paths);
        let shown = self.content.iter().map(Piece::held).sum::<usize>();
        PART + shown + self.terminals.held() + texts.map(String::len).sum::<usize>()
    }

    /// Its result, as it is shown: with what its terminals printed, also where no place for that was shown.
    fn shown(&self) -> Option<String> {
        let mut rest: Vec<&Terminal> = self.terminals.iter().collect();
        let mut texts: Vec<String> = Vec::new();
        for piece in &self.content {
            match piece {
                Piece::Text(text) => texts.push(text.clone()),
                Piece::Terminal(id) => {
                    let at = rest.iter().position(|known| known.id() == id);
                    texts.extend(at.map(|at| rest.remove(at).text()));
                }
            }
        }
        texts.extend(rest.into_iter().map(Terminal::text));
        texts.retain(|text| !text.is_empty());
        let text = texts.join("\n");
        (!text.is_empty()).then(|| cut(&text, MAX_SHOWN_BYTES))
    }

    pub fn tool_call(&self) -> ToolCall {
        let arguments = self.input.clone().unwrap_or_else(|| self.about());
        ToolCall::new(self.id.clone(), self.tool_name(), arguments)
    }

    /// A description in place of its arguments: its title and paths.
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
        let names = [&self.name, &self.title, &self.kind];
        let mut names = names.into_iter().flatten().filter_map(|name| legal(name));
        names.next().unwrap_or_else(|| "tool".to_owned())
    }

    pub fn result(&self, why: &str) -> Message {
        let text = || self.shown().or_else(|| self.output.clone());
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

/// A tool's name as providers take it: `server:tool` and `server.tool` are `server__tool`. None where it is no name.
fn legal(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let legal = name.replace([':', '.'], "__");
    let fits = !name.is_empty() && legal.len() <= 64 && legal.chars().all(plain);
    fits.then_some(legal)
}

/// The arguments of a call, if there are any yet.
fn arguments(input: &Value) -> Option<String> {
    let whole = match input {
        Value::Null => return None,
        Value::Object(none) if none.is_empty() => return None,
        Value::Object(_) => input.to_string(),
        other => json!({ "input": other }).to_string(),
    };
    Some(match whole.len() <= MAX_ARGUMENT_BYTES {
        true => whole,
        // It has to stay JSON.
        false => json!({ "beginning": cut(&whole, MAX_ARGUMENT_BYTES / 2) }).to_string(),
    })
}

/// The result of a call, as the tool gave it.
fn output(raw: &Value) -> Option<String> {
    let text = match (raw, raw.get("output")) {
        (Value::Null, _) => return None,
        (Value::String(text), _) | (_, Some(Value::String(text))) => text.clone(),
        (value, _) => value.to_string(),
    };
    Some(cut(&text, MAX_RESULT_BYTES))
}
