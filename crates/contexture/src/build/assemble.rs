//! Step 5: the exact bytes, and their digest.
//!
//! What is stable comes first: parameters, tools, then the messages in order. OpenAI's bodies only
//! grow at their end while the items before stay the same, and so does the hash over them: a turn
//! writes and hashes what the turn added.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::item::{Item, Piece};
use crate::message::{anthropic, responses};
use crate::{Message, Wire};

/// What stands around the messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Head {
    pub model: Option<String>,
    /// Parameters of the caller's.
    pub params: Map<String, Value>,
    /// For the forms that must say how long the answer may be.
    pub max_tokens: usize,
}

impl Head {
    pub(crate) fn anthropic(&self) -> anthropic::Head<'_> {
        anthropic::Head {
            model: self.model.as_deref(),
            max_tokens: self.max_tokens,
            params: Some(&self.params),
        }
    }

    fn responses(&self) -> responses::Head<'_> {
        responses::Head {
            model: self.model.as_deref(),
            params: Some(&self.params),
        }
    }
}

/// The request's body.
#[derive(Default)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    /// Where each item ends.
    ends: Vec<usize>,
    head: usize,
    /// The hash over the body up to its last item, and how many items that is.
    hashed: Option<(Sha256, usize)>,
    digest: String,
    /// What writes the next item, where that depends on those before it.
    writer: Option<responses::Writer>,
}

impl Body {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// `sha256:` and the hash of the bytes, in hex.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Forgets everything from item `from` on.
    pub(crate) fn cut(&mut self, from: usize) {
        if from >= self.ends.len() {
            return;
        }
        self.ends.truncate(from);
        self.writer = None;
        self.bytes
            .truncate(self.ends.last().copied().unwrap_or(self.head));
        if self.hashed.as_ref().is_some_and(|(_, items)| *items > from) {
            self.hashed = None;
        }
    }

    /// Forgets everything: what stands before the messages changed.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Brings the body up to the items. Those it has already are the same.
    pub(crate) fn write(&mut self, wire: Wire, head: &Head, tools: &[Value], items: &[Item]) {
        match wire {
            Wire::OpenAi => {
                self.open(|| openai_head(head, tools));
                self.grow(items, |item, _, out| {
                    out.extend_from_slice(&item.piece.wire);
                });
                self.close(b"]}");
            }
            Wire::Responses => {
                self.open(|| responses_head(head, tools));
                let mut writer = match self.writer.take() {
                    Some(writer) => writer,
                    None => caught_up(tools, items, self.ends.len()),
                };
                self.grow(items, |item, after, out| {
                    let Piece { message, wire, .. } = &*item.piece;
                    writer.write(message, messages(after), Some(wire), out);
                });
                self.writer = Some(writer);
                self.close(responses::close(self.bytes.len() == self.head));
            }
            Wire::Anthropic => {
                // Its form depends on the neighbours, so it is written anew, into the same memory.
                self.bytes.clear();
                let messages: Vec<_> = messages(items).collect();
                anthropic::write_body(&head.anthropic(), tools, &messages, &mut self.bytes);
                self.digest = hex(Sha256::digest(&self.bytes).as_slice());
            }
        }
    }

    /// Leaves what may be kept: all up to the end of the last item, or a new head.
    fn open(&mut self, head: impl FnOnce() -> Vec<u8>) {
        if self.head == 0 {
            self.bytes = head();
            self.head = self.bytes.len();
        } else {
            self.bytes
                .truncate(self.ends.last().copied().unwrap_or(self.head));
        }
    }

    /// Adds the items that are not there yet. `write` is given each with those behind it; one may
    /// come to nothing.
    fn grow(&mut self, items: &[Item], mut write: impl FnMut(&Item, &[Item], &mut Vec<u8>)) {
        let done = self.ends.len();
        let new = &items[done..];
        let longer: usize = new.iter().map(|item| item.piece.wire.len() + 1).sum();
        self.bytes.reserve(longer + ROOM);
        for (at, item) in new.iter().enumerate() {
            let end = self.bytes.len();
            if end > self.head {
                self.bytes.push(b',');
            }
            let begin = self.bytes.len();
            write(item, &new[at + 1..], &mut self.bytes);
            if self.bytes.len() == begin {
                self.bytes.truncate(end);
            }
            self.ends.push(self.bytes.len());
        }
    }

    /// Ends the body, and hashes what the hash has not seen.
    fn close(&mut self, close: &[u8]) {
        let (mut hash, done) = self.hashed.take().unwrap_or_default();
        let from = if done == 0 { 0 } else { self.ends[done - 1] };
        hash.update(&self.bytes[from..]);
        self.hashed = (!self.ends.is_empty()).then(|| (hash.clone(), self.ends.len()));
        self.bytes.extend_from_slice(close);
        hash.update(close);
        self.digest = hex(hash.finalize().as_slice());
    }
}

/// Room for what ends a body.
const ROOM: usize = 64;

/// A writer that has the first `done` items behind it.
fn caught_up(tools: &[Value], items: &[Item], done: usize) -> responses::Writer {
    let mut writer = responses::Writer::new(tools);
    for (at, item) in items[..done].iter().enumerate() {
        writer.skip(&item.piece.message, messages(&items[at + 1..]));
    }
    writer
}

fn messages(items: &[Item]) -> impl Iterator<Item = &Message> {
    items.iter().map(|item| &*item.piece.message)
}

/// How many bytes stand around the messages, at most.
pub(crate) fn frame_bytes(wire: Wire, head: &Head, tools: &[Value]) -> usize {
    match wire {
        Wire::OpenAi => openai_head(head, tools).len() + "]}".len(),
        Wire::Responses => responses::frame_bound(&head.responses(), tools),
        Wire::Anthropic => anthropic::frame_bound(&head.anthropic(), tools),
    }
}

fn openai_head(head: &Head, tools: &[Value]) -> Vec<u8> {
    let mut fields = Map::new();
    if let Some(model) = &head.model {
        fields.insert("model".into(), model.clone().into());
    }
    for (key, value) in &head.params {
        fields.insert(key.clone(), value.clone());
    }
    if !tools.is_empty() {
        fields.insert("tools".into(), tools.to_vec().into());
    }
    let mut text = Value::Object(fields).to_string();
    text.pop();
    if text.len() > 1 {
        text.push(',');
    }
    text.push_str("\"messages\":[");
    text.into_bytes()
}

fn responses_head(head: &Head, tools: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    responses::write_head(&head.responses(), tools, &mut bytes);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
    let digits = bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]);
    "sha256:".chars().chain(digits).collect()
}
