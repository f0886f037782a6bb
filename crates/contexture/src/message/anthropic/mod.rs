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
mod tools;
mod turns;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Message;
use super::names::ToolNames;
use super::params::{self, TOOL_CHOICE};
use super::size::size;
use super::tool_choice::ToolChoice;
use block::{Block, CACHE_MARK, Marked};
use turns::{OPENING, Turn, Turns};

/// The longest tool name that the API takes.
const NAME_MAX: usize = 128;

/// What stands before the conversation in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// The model, where the body names it: some gateways take it from the address.
    pub model: Option<&'a str>,
    /// The most tokens that the reply may have, unless the parameters say it.
    pub max_tokens: usize,
    /// The caller's parameters, under Anthropic's names or the chat form's. Those that have no
    /// place in the body are left out.
    pub params: Option<&'a Map<String, Value>>,
}

impl Head<'_> {
    /// The most tokens that the reply may have, as the body says it.
    pub fn max_tokens(&self) -> usize {
        let params = self.params.map(params::anthropic).unwrap_or_default();
        let given = params.get("max_tokens").and_then(Value::as_u64);
        given.map_or(self.max_tokens, |given| {
            usize::try_from(given).unwrap_or(usize::MAX)
        })
    }
}

/// Appends the whole body, as compact JSON.
///
/// The messages are expected as the build leaves them: each tool result behind its call's message,
/// each call answered. Where they are not, an unanswered call gets an empty result and a result
/// without a call becomes the user's text, so that the body is valid all the same.
pub fn write_body(head: &Head<'_>, tools: &[Value], messages: &[&Message], out: &mut Vec<u8>) {
    let mut names = ToolNames::new(NAME_MAX);
    let mut tools = tools::specs(tools, &mut names);
    if let Some(last) = tools.last_mut() {
        last.mark();
    }
    let mut params = head.params.map(params::anthropic).unwrap_or_default();
    params.shift_remove("max_tokens");
    if let Some(choice) = params.shift_remove(TOOL_CHOICE) {
        let choice = || ToolChoice::read(&choice, &names)?.for_anthropic();
        // Without tools there is nothing to choose, and the API says so.
        let choice = (!tools.is_empty()).then(choice).flatten();
        params.extend(choice.map(|choice| (TOOL_CHOICE.to_owned(), choice)));
    }
    let Turns { system, turns } = Turns::of(messages, &mut names);
    let body = Body {
        model: head.model,
        max_tokens: head.max_tokens(),
        params,
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
    let mut names = ToolNames::new(NAME_MAX);
    tools::specs(tools, &mut names);
    names.into_sent()
}

/// In the order of what changes least, which is also the order in which the API caches.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    max_tokens: usize,
    #[serde(flatten)]
    params: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Marked<Map<String, Value>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<Block<'a>>>,
    messages: Vec<Turn<'a>>,
}
