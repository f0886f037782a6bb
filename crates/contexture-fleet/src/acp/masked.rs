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

/// Texts that are still being said, by session and kind.
type Streams = HashMap<(String, &'static str), MaskedStream<Arc<Value>>>;

impl Masked {
    pub fn new(mask: Arc<dyn Mask>) -> Self {
        Self {
            mask,
            streams: Mutex::default(),
        }
    }

    /// What can be shown of a session's updates with this one. A piece of a text may have to wait for the next.
    pub fn update(&self, session_id: &str, mut update: Value) -> Vec<Value> {
        let kind = update["sessionUpdate"].as_str();
        let streamed = STREAMED.into_iter().find(|known| Some(*known) == kind);
        let begins_call = kind == Some("tool_call");
        let text = match (streamed, update.pointer_mut("/content/text")) {
            (Some(_), Some(Value::String(text))) => Some(std::mem::take(text)),
            _ => None,
        };
        hide_in(&self.mask, &mut update);
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(kind), Some(text)) = (streamed, text) {
            let stream = streams.entry((session_id.to_owned(), kind)).or_default();
            let pieces = stream.push(&self.mask, envelope(kind, &update), &text);
            return match pieces.as_slice() {
                [(_, whole)] if *whole == text => {
                    update["content"]["text"] = Value::String(text);
                    vec![update]
                }
                _ => pieces.into_iter().map(filled).collect(),
            };
        }
        let mut out = Vec::new();
        // A text goes on behind whatever else is told, but not behind the next call.
        for kind in STREAMED {
            if begins_call || streamed == Some(kind) {
                let stream = streams.remove(&(session_id.to_owned(), kind));
                let rest = stream.map(|mut stream| stream.finish(&self.mask));
                out.extend(rest.into_iter().flatten().map(filled));
            }
        }
        out.push(update);
        out
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
    update["content"]["text"] = Value::String(text);
    update
}
