//! What an agent says, without secrets: the one door behind which its words become updates, questions and answers.
//!
//! Agents are given a token, and repeat what they were given: in a title, in a key, half in one piece of a message and
//! half in the next. So everything is masked here, before anybody sees it. Only what it asks us to read, write or run
//! goes past, because that is for itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_tools::MaskedStream;
use contexture_tools::secrets::mask::{Mask, hide_in, hide_text};
use serde_json::{Map, Value, json};

use super::Choice;
use super::record::TERMINAL_OUTPUT;

/// Texts that come in pieces.
const STREAMED: [&str; 3] = [
    "agent_message_chunk",
    "agent_thought_chunk",
    "user_message_chunk",
];
/// The longest id of a message that is kept for a piece that waits.
const MAX_ID_BYTES: usize = 256;

/// Masks what comes from one agent.
pub(super) struct Masked {
    mask: Arc<dyn Mask>,
    streams: Mutex<Streams>,
}

/// Texts that are still being said, by session and by their kind, or the call and the terminal that they are of.
type Streams = HashMap<(String, Source), MaskedStream<Arc<Value>>>;

#[derive(PartialEq, Eq, Hash)]
enum Source {
    Said(&'static str),
    Printed { call: String, terminal: String },
}

/// The most texts that are being said at a time. Beyond, a session's are taken as ended.
const MAX_STREAMS: usize = 64;

impl Masked {
    pub fn new(mask: Arc<dyn Mask>) -> Self {
        Self {
            mask,
            streams: Mutex::default(),
        }
    }

    /// What can be shown of a session's updates with this one. A piece of a text may have to wait for the next.
    pub fn update(&self, session_id: &str, mut update: Value) -> Vec<Value> {
        let kind = kind_of(&update);
        let streamed = STREAMED.into_iter().find(|known| Some(*known) == kind);
        let text = match (streamed, update.pointer_mut("/content/text")) {
            (Some(_), Some(Value::String(text))) => Some(std::mem::take(text)),
            _ => None,
        };
        let printed = printed(&mut update);
        hide_in(&self.mask, &mut update);
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(kind_of(&update), Some("tool_call" | "tool_call_update")) {
            return self.call(&mut streams, session_id, update, printed);
        }
        if let (Some(kind), Some(text)) = (streamed, text) {
            let source = (session_id.to_owned(), Source::Said(kind));
            let stream = streams.entry(source).or_default();
            let pieces = stream.push(&self.mask, envelope(kind, &update), &text);
            return match pieces.as_slice() {
                [(_, whole)] if *whole == text => {
                    update["content"]["text"] = Value::String(text);
                    vec![update]
                }
                _ => pieces.into_iter().map(filled).collect(),
            };
        }
        // A text goes on behind whatever else is told.
        let mut out = match streamed {
            Some(kind) => self.ended(&mut streams, |(session, source)| {
                session == session_id && *source == Source::Said(kind)
            }),
            None => Vec::new(),
        };
        out.push(update);
        out
    }

    /// The part of a call's update that can be shown: what a command prints comes in pieces too.
    fn call(
        &self,
        streams: &mut Streams,
        session_id: &str,
        mut update: Value,
        printed: Vec<(&'static str, Source, String)>,
    ) -> Vec<Value> {
        let mut out = Vec::new();
        // No text goes on behind the next call.
        if kind_of(&update) == Some("tool_call") {
            out = self.ended(streams, |(session, source)| {
                session == session_id && matches!(source, Source::Said(_))
            });
        }
        for (key, source, data) in printed {
            if streams.len() >= MAX_STREAMS {
                out.extend(self.ended(streams, |(session, _)| session == session_id));
            }
            let tag = piece_of(key, &source);
            let stream = streams.entry((session_id.to_owned(), source)).or_default();
            let pieces = stream.push(&self.mask, tag, &data).into_iter();
            let shown: String = pieces.map(|(_, text)| text).collect();
            update["_meta"][key]["data"] = Value::String(shown);
        }
        if matches!(update["status"].as_str(), Some("completed" | "failed")) {
            let id = update["toolCallId"].as_str().unwrap_or_default();
            let ends = |(session, source): &(String, Source)| {
                let of_call = matches!(source, Source::Printed { call, .. } if call == id);
                session == session_id && of_call
            };
            // What is held back of this update's own piece goes with it.
            for rest in self.ended(streams, ends) {
                if !absorbed(&mut update, &rest) {
                    out.push(rest);
                }
            }
        }
        out.push(update);
        out
    }

    /// The rest that was held back of texts that are over.
    fn ended(&self, streams: &mut Streams, over: impl Fn(&(String, Source)) -> bool) -> Vec<Value> {
        let ended = streams.extract_if(|key, _| over(key));
        let rest = ended.flat_map(|(_, mut stream)| stream.finish(&self.mask));
        rest.map(filled).collect()
    }

    /// What was held back, by session: nothing follows it.
    pub fn finish(&self) -> Vec<(String, Value)> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::new();
        for ((session_id, _), mut stream) in streams.drain() {
            let rest = stream.finish(&self.mask).into_iter();
            out.extend(rest.map(|piece| (session_id.clone(), filled(piece))));
        }
        out
    }

    pub fn value(&self, mut value: Value) -> Value {
        hide_in(&self.mask, &mut value);
        value
    }

    pub fn text(&self, mut text: String) -> String {
        hide_text(&self.mask, &mut text);
        text
    }

    /// The choices as they are shown. One whose id is a secret gets another for that time.
    pub fn choices(&self, choices: &[Choice]) -> Vec<Choice> {
        let shown = |(n, choice): (usize, &Choice)| Choice {
            id: match self.text(choice.id.clone()) {
                same if same == choice.id => same,
                _ => format!("option-{}", n + 1),
            },
            name: self.text(choice.name.clone()),
            kind: self.text(choice.kind.clone()),
        };
        choices.iter().enumerate().map(shown).collect()
    }
}

/// What is kept of an update while its text waits: little, because an agent decides how much there is.
fn envelope(kind: &str, update: &Value) -> Arc<Value> {
    let mut kept = Map::new();
    kept.insert("sessionUpdate".to_owned(), json!(kind));
    if let Some(id) = update["messageId"].as_str()
        && id.len() <= MAX_ID_BYTES
    {
        kept.insert("messageId".to_owned(), json!(id));
    }
    kept.insert("content".to_owned(), json!({"type": "text"}));
    Arc::new(Value::Object(kept))
}

fn filled((envelope, text): (Arc<Value>, String)) -> Value {
    let mut update = Value::clone(&envelope);
    let place = match update.get_mut("content") {
        Some(content) => &mut content["text"],
        None => match data_in(&mut update) {
            Some(data) => data,
            None => return update,
        },
    };
    *place = Value::String(text);
    update
}

fn kind_of(update: &Value) -> Option<&str> {
    update["sessionUpdate"].as_str()
}

/// Takes what an update says that commands printed. What has too long a name for it is not told.
fn printed(update: &mut Value) -> Vec<(&'static str, Source, String)> {
    let Some(call) = update["toolCallId"].as_str().map(str::to_owned) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for key in TERMINAL_OUTPUT {
        let Some(chunk) = update.get_mut("_meta").and_then(|meta| meta.get_mut(key)) else {
            continue;
        };
        let data = chunk.get_mut("data").map(Value::take);
        let terminal = chunk["terminal_id"].as_str().map(str::to_owned);
        if let (Some(Value::String(data)), Some(terminal)) = (data, terminal)
            && call.len().max(terminal.len()) <= MAX_ID_BYTES
        {
            let call = call.clone();
            all.push((key, Source::Printed { call, terminal }, data));
        }
    }
    all
}

/// An update that tells no more than a piece of what a command printed.
fn piece_of(key: &str, source: &Source) -> Arc<Value> {
    let (call, terminal) = match source {
        Source::Printed { call, terminal } => (call.as_str(), terminal.as_str()),
        Source::Said(kind) => (*kind, ""),
    };
    Arc::new(json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": call,
        "_meta": {key: {"terminal_id": terminal, "data": ""}},
    }))
}

/// The text of such an update.
fn data_in(update: &mut Value) -> Option<&mut Value> {
    let chunks = update.get_mut("_meta")?.as_object_mut()?;
    let mut chunks = chunks.iter_mut();
    let (_, chunk) = chunks.find(|(key, _)| TERMINAL_OUTPUT.contains(&key.as_str()))?;
    chunk.get_mut("data")
}

/// Adds the text of such an update to another's piece of the same terminal, where it has one.
fn absorbed(update: &mut Value, rest: &Value) -> bool {
    TERMINAL_OUTPUT.into_iter().any(|key| {
        let (from, to) = (&rest["_meta"][key], &update["_meta"][key]);
        let (Some(more), Some(text)) = (from["data"].as_str(), to["data"].as_str()) else {
            return false;
        };
        let same = from["terminal_id"] == to["terminal_id"];
        if same {
            let whole = format!("{text}{more}");
            update["_meta"][key]["data"] = Value::String(whole);
        }
        same
    })
}
