//! Anthropic's messages body, written.
//!
//! The API refuses a whole request for one block that it does not like, and a refused block that
//! is in the log is refused on every later turn. So whatever comes in, what goes out is valid:
//! turns alternate and begin with the user's, every call has its result in the turn that follows,
//! ids and names are legal and unique, and no text is blank. What has no place in Anthropic's form
//! is named in the text, never dropped in silence; thinking without its seal is the exception.
//!
//! A body depends on its messages only backwards: the blocks of a conversation are a prefix of
//! those of the same conversation, continued. That is what a prompt cache lives on.

mod block;
mod content;
mod data_url;
mod names;
mod tools;
mod turns;

use std::io;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Message;
use block::{Block, CACHE_MARK, Marked};
use names::ToolNames;
use turns::{OPENING, Turn, Turns};

/// What stands before the conversation in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// The model, where the body names it: some gateways take it from the address.
    pub model: Option<&'a str>,
    /// The most tokens that the reply may have.
    pub max_tokens: usize,
}

/// Appends the whole body, as compact JSON.
///
/// The messages are expected as the build leaves them: each tool result behind its call's message,
/// each call answered. Where they are not, an unanswered call gets an empty result and a result
/// without a call becomes the user's text, so that the body is valid all the same.
pub fn write_body(head: &Head<'_>, tools: &[Value], messages: &[&Message], out: &mut Vec<u8>) {
    let Head { model, max_tokens } = *head;
    let mut names = ToolNames::default();
    let mut tools = tools::specs(tools, &mut names);
    if let Some(last) = tools.last_mut() {
        last.mark();
    }
    let Turns { system, turns } = Turns::of(messages, &mut names);
    let body = Body {
        model,
        max_tokens,
        tools,
        system,
        messages: turns,
    };
    let written = serde_json::to_writer(out, &body);
    // Writing to memory fails only when a map key is no string, and ours all are.
    debug_assert!(written.is_ok());
}

/// An upper bound on the bytes that `message` adds to a body, whatever stands around it, as long
/// as calls and results are paired.
pub fn size_bound(message: &Message) -> usize {
    let blocks = turns::alone(message);
    if blocks.is_empty() {
        return 0;
    }
    const TURN: usize = r#"{"role":"assistant","content":[]},"#.len();
    TURN + blocks.iter().map(|block| size(block) + 1).sum::<usize>()
}

/// An upper bound on the bytes of a body beyond its messages': the head, the tools, and what holds
/// it together.
pub fn frame_bound(head: &Head<'_>, tools: &[Value]) -> usize {
    const SYSTEM: usize = r#""system":[],"#.len();
    /// The empty body has the tools' and a user turn's; here are the system's and another turn's.
    const MARKS: usize = 2 * CACHE_MARK.len();
    let mut empty = Vec::new();
    write_body(head, tools, &[], &mut empty);
    empty.len() + SYSTEM + MARKS + size(&Turn::opening(OPENING)) + 1
}

/// The name under which each tool is sent, and its own: what a reply calls the former, the host
/// knows as the latter. They differ where a name is illegal or stands twice.
pub fn tool_names(tools: &[Value]) -> Vec<(String, String)> {
    let mut names = ToolNames::default();
    tools::specs(tools, &mut names);
    names.into_sent()
}

/// In the order of what changes least, which is also the order in which the API caches.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    max_tokens: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Marked<Map<String, Value>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<Block<'a>>>,
    messages: Vec<Turn<'a>>,
}

/// The bytes of `value` as JSON.
fn size(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    let counted = serde_json::to_writer(&mut count, value);
    debug_assert!(counted.is_ok());
    count.0
}
