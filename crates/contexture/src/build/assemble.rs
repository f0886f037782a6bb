//! Step 5: the exact bytes, and their digest.
//!
//! What is stable comes first: parameters, tools, then the messages in order. The body of a chat
//! request only grows at its end while the items before stay the same, and so does the hash over it:
//! a turn writes and hashes what the turn added.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::item::Item;
use crate::Wire;
use crate::message::anthropic;

/// What stands around the messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Head {
    pub model: Option<String>,
    /// Parameters of the caller's that go out as they are.
    pub params: Map<String, Value>,
    pub max_tokens: usize,
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
}

const CLOSE: &[u8] = b"]}";

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
            Wire::OpenAi => self.write_openai(head, tools, items),
            Wire::Anthropic => {
                // Its form depends on the neighbours, so it is written anew, into the same memory.
                self.bytes.clear();
                let messages: Vec<_> = items.iter().map(|item| &*item.piece.message).collect();
                let head = anthropic::Head {
                    model: head.model.as_deref(),
                    max_tokens: head.max_tokens,
                };
                anthropic::write_body(&head, tools, &messages, &mut self.bytes);
                self.digest = hex(Sha256::digest(&self.bytes).as_slice());
            }
        }
    }

    fn write_openai(&mut self, head: &Head, tools: &[Value], items: &[Item]) {
        if self.head == 0 {
            self.bytes = openai_head(head, tools);
            self.head = self.bytes.len();
        } else {
            self.bytes
                .truncate(self.ends.last().copied().unwrap_or(self.head));
        }
        let new = &items[self.ends.len()..];
        let longer: usize = new.iter().map(|item| item.piece.wire.len() + 1).sum();
        self.bytes.reserve(longer + CLOSE.len());
        for item in new {
            if !self.ends.is_empty() {
                self.bytes.push(b',');
            }
            self.bytes.extend_from_slice(&item.piece.wire);
            self.ends.push(self.bytes.len());
        }
        let (mut hash, done) = self.hashed.take().unwrap_or_default();
        let from = if done == 0 { 0 } else { self.ends[done - 1] };
        hash.update(&self.bytes[from..]);
        self.hashed = (!items.is_empty()).then(|| (hash.clone(), items.len()));
        self.bytes.extend_from_slice(CLOSE);
        hash.update(CLOSE);
        self.digest = hex(hash.finalize().as_slice());
    }
}

/// How many bytes stand around the messages, at most.
pub(crate) fn frame_bytes(wire: Wire, head: &Head, tools: &[Value]) -> usize {
    match wire {
        Wire::OpenAi => openai_head(head, tools).len() + CLOSE.len(),
        Wire::Anthropic => {
            let head = anthropic::Head {
                model: head.model.as_deref(),
                max_tokens: head.max_tokens,
            };
            anthropic::frame_bound(&head, tools)
        }
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

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
    let digits = bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]);
    "sha256:".chars().chain(digits).collect()
}
