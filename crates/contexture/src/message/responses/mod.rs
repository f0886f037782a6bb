//! The body of OpenAI's responses API, written.
//!
//! The provider is asked to keep nothing, so each body holds the whole conversation: messages,
//! calls, results and sealed thoughts are items of one list, the system's messages among them. As
//! in Anthropic's form, whatever comes in, what goes out is valid: every call has its result, ids
//! and names are legal, no id stands twice, and a thought stands before what came of it. What has
//! no place is named in the text, never dropped in silence; a thought without OpenAI's id and seal is
//! the exception.
//!
//! The items of a message follow from it and from what is before it, so a body only grows at its
//! end. Almost always they follow from the message alone, and are written once.

mod content;
mod item;
mod told;
mod tools;

use serde_json::{Map, Value, json};

use super::Message;
use super::names::ToolNames;
use super::params::{self, TOOL_CHOICE};
use super::size::size;
use super::tool_choice::ToolChoice;
use item::{Item, Words};
use told::{Teller, Told};

/// The longest tool name that the API takes.
const NAME_MAX: usize = 64;

/// What stands before the conversation in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head<'a> {
    /// The model, where the body names it.
    pub model: Option<&'a str>,
    /// The caller's parameters, under the names of the responses API or the chat form's. Those that
    /// have no place in the body are left out.
    pub params: Option<&'a Map<String, Value>>,
}

/// Appends the whole body, as compact JSON.
///
/// The messages are expected as the build leaves them: each tool result behind its call's message,
/// each call answered. Where they are not, an unanswered call gets an empty result and a result
/// without a call becomes the user's text, so that the body is valid all the same.
pub fn write_body(head: &Head<'_>, tools: &[Value], messages: &[&Message], out: &mut Vec<u8>) {
    write_head(head, tools, out);
    let start = out.len();
    let mut writer = Writer::new(tools);
    for (at, message) in messages.iter().enumerate() {
        let end = out.len();
        if end > start {
            out.push(b',');
        }
        let begin = out.len();
        let following = messages.iter().skip(at + 1).copied();
        writer.write(message, following, None, out);
        if out.len() == begin {
            out.truncate(end);
        }
    }
    out.extend_from_slice(close(out.len() == start));
}

/// An upper bound on the bytes that `message` adds to a body, whatever stands around it, as long
/// as calls and results are paired.
pub fn size_bound(message: &Message) -> usize {
    let items = content::items(message, &Told::longest(message));
    items.iter().map(|item| size(item) + 1).sum()
}

/// An upper bound on the bytes of a body beyond its messages': the head, the tools, and what holds
/// it together.
pub fn frame_bound(head: &Head<'_>, tools: &[Value]) -> usize {
    let mut bytes = Vec::new();
    write_head(head, tools, &mut bytes);
    bytes.len() + close(true).len()
}

/// The name under which each tool is sent, and its own: what a reply calls the former, the host
/// knows as the latter. They differ where a name is illegal or stands twice.
pub fn tool_names(tools: &[Value]) -> Vec<(String, String)> {
    let mut names = ToolNames::new(NAME_MAX);
    tools::specs(tools, &mut names);
    names.into_sent()
}

/// Appends the items of a message as they are in almost every body, with commas between them.
pub(crate) fn write_alone(message: &Message, out: &mut Vec<u8>) {
    write_items(&content::items(message, &Told::own(message)), out);
}

/// Appends all that stands before the first item.
///
/// Unless the caller says otherwise nothing is stored, and a model that is asked to think is asked
/// for its thoughts, sealed: others refuse to be asked.
pub(crate) fn write_head(head: &Head<'_>, tools: &[Value], out: &mut Vec<u8>) {
    let mut names = ToolNames::new(NAME_MAX);
    let tools = tools::specs(tools, &mut names);
    let mut fields = Map::new();
    fields.extend(head.model.map(|model| ("model".to_owned(), model.into())));
    fields.extend(head.params.map(params::responses).unwrap_or_default());
    let choice = fields.shift_remove(TOOL_CHOICE);
    if tools.is_empty() {
        fields.shift_remove("parallel_tool_calls");
    } else {
        let choice = choice.and_then(|choice| ToolChoice::read(&choice, &names)?.for_responses());
        fields.extend(choice.map(|choice| (TOOL_CHOICE.to_owned(), choice)));
    }
    fields.entry("store").or_insert(json!(false));
    if fields.contains_key("reasoning") {
        let sealed = json!(["reasoning.encrypted_content"]);
        fields.entry("include").or_insert(sealed);
    }
    if !tools.is_empty() {
        let tools: Vec<_> = tools.into_iter().map(Value::Object).collect();
        fields.insert("tools".to_owned(), tools.into());
    }
    let mut text = Value::Object(fields).to_string();
    text.pop();
    text.push_str(",\"input\":[");
    out.extend_from_slice(text.as_bytes());
}

/// What ends a body. One without any item is refused, so it gets one.
pub(crate) fn close(empty: bool) -> &'static [u8] {
    if empty {
        br#"{"type":"message","role":"user","content":"(No message yet.)"}]}"#
    } else {
        b"]}"
    }
}

/// Writes the messages of a body one after another.
pub(crate) struct Writer(Teller);

impl Writer {
    pub(crate) fn new(tools: &[Value]) -> Self {
        let mut names = ToolNames::new(NAME_MAX);
        tools::specs(tools, &mut names);
        Self(Teller::new(names))
    }

    /// Passes over a message that is written already.
    pub(crate) fn skip<'a>(
        &mut self,
        message: &'a Message,
        following: impl Iterator<Item = &'a Message>,
    ) {
        self.0.tell(message, following);
    }

    /// Appends the items of a message, with commas between them, perhaps none. `alone` is what
    /// [`write_alone`] gave for it, where the caller has that.
    pub(crate) fn write<'a>(
        &mut self,
        message: &'a Message,
        following: impl Iterator<Item = &'a Message>,
        alone: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        let told = self.0.tell(message, following);
        if let Some(alone) = alone
            && told == Told::own(message)
        {
            out.extend_from_slice(alone);
            return;
        }
        let mut items = content::items(message, &told);
        let nothing = told.open.iter();
        items.extend(nothing.map(|call| call.output(Words::Text("".into()))));
        write_items(&items, out);
    }
}

fn write_items(items: &[Item<'_>], out: &mut Vec<u8>) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let written = serde_json::to_writer(&mut *out, item);
        // Writing to memory fails only when a map key is no string, and ours all are.
        debug_assert!(written.is_ok());
    }
}
