//! Anthropic's body, through its public door: small conversations by their shape, and random ones
//! by the rules of the API.

pub mod check;
mod conversations;
mod params;
mod properties;
mod shape;
mod tools;

use contexture::message::anthropic::{Head, frame_bound, size_bound, write_body};
use contexture::{Message, message::openai};
use serde_json::Value;

const HEAD: Head<'_> = Head {
    model: Some("claude-opus-4-5"),
    max_tokens: 4096,
    params: None,
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

/// Writes the body and holds it against every rule, its size included.
#[track_caller]
fn check(tools: &[Value], messages: &[Message]) -> Vec<u8> {
    let bytes = check_form(tools, messages);
    let bound = frame_bound(&HEAD, tools) + messages.iter().map(size_bound).sum::<usize>();
    assert!(bytes.len() <= bound, "{} > {bound}", bytes.len());
    bytes
}

/// The same without the size, whose bound holds for paired calls only.
#[track_caller]
fn check_form(tools: &[Value], messages: &[Message]) -> Vec<u8> {
    let bytes = body(tools, messages);
    check::check_body(&bytes);
    bytes
}
