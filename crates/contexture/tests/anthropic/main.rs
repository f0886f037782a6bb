//! Anthropic's body, through its public door: small conversations by their shape, and random ones
//! by the rules of the API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod check;
mod conversations;
mod properties;
mod shape;
mod tools;

use contexture::message::anthropic::{Head, write_body};
use contexture::{Message, message::openai};
use serde_json::Value;

const HEAD: Head<'_> = Head {
    model: Some("claude-opus-4-5"),
    max_tokens: 4096,
};

fn body(tools: &[Value], messages: &[Message]) -> Vec<u8> {
    let messages: Vec<_> = messages.iter().collect();
    let mut out = Vec::new();
    write_body(&HEAD, tools, &messages, &mut out);
    out
}

fn message(value: Value) -> Message {
    openai::read(value).unwrap()
}
