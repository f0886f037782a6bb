//! What a message says, as items.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::item::{Bit, Item, Words};
use super::told::Told;
use crate::message::data_url::{DataUrl, Picture};
use crate::message::names::ID_MAX;
use crate::message::words::{ORPHAN, flat, is_blank, label, speaker, string, words};
use crate::message::{Content, Message, Part, Role, ToolCall};

/// The items of a message, with the ids and names that it is told to have.
pub(super) fn items<'a>(message: &'a Message, told: &Told<'_>) -> Vec<Item<'a>> {
    match message.role {
        Role::System | Role::Developer => {
            // Nothing but text instructs.
            let text = Words::signed(flat(message), message);
            text.into_iter().map(|text| says(message, text)).collect()
        }
        Role::User => said(message)
            .into_iter()
            .map(|words| says(message, words))
            .collect(),
        Role::Assistant => reply(message, told),
        Role::Tool => match &told.answer {
            Some(answer) => vec![answer.output(given_back(message))],
            None => orphan(message).into_iter().collect(),
        },
    }
}

fn says<'a>(message: &Message, content: Words<'a>) -> Item<'a> {
    let role = message.role.as_str();
    Item::Message { role, content }
}

/// What an assistant thought, said and called, in order.
///
/// A thought without something of the same message behind it would be refused, so it waits for
/// that, and goes with it or not at all.
fn reply<'a>(message: &'a Message, told: &Told<'_>) -> Vec<Item<'a>> {
    let mut reply = Reply {
        items: Vec::new(),
        thoughts: Vec::new(),
        speaker: speaker(message),
    };
    match &message.content {
        Content::Null => {}
        Content::Text(text) => reply.say(text.into()),
        Content::Parts(parts) => {
            let mut text = Cow::Borrowed("");
            for part in parts {
                if let Some(thought) = thought(part, &told.known) {
                    reply.say(std::mem::take(&mut text));
                    reply.thoughts.push(thought);
                } else if let Part::Text { text: more, .. } = part {
                    // As the canonical text reads: nothing between its parts.
                    text += more.as_str();
                } else if let Some(more) = words(part) {
                    let gap = if is_blank(&text) { "" } else { "\n" };
                    text = format!("{text}{gap}{more}").into();
                }
            }
            reply.say(text);
        }
    }
    for (call, (id, name)) in message.tool_calls.iter().zip(&told.calls) {
        let call = called(call, id.clone(), name.clone());
        reply.items.append(&mut reply.thoughts);
        reply.items.push(call);
    }
    reply.items
}

struct Reply<'a> {
    items: Vec<Item<'a>>,
    /// Those that wait.
    thoughts: Vec<Item<'a>>,
    /// The name to put before the next text.
    speaker: Option<String>,
}

impl<'a> Reply<'a> {
    fn say(&mut self, text: Cow<'a, str>) {
        if is_blank(&text) {
            return;
        }
        let content = Words::Text(match self.speaker.take() {
            Some(speaker) => format!("{speaker} {text}").into(),
            None => text,
        });
        self.items.append(&mut self.thoughts);
        let role = Role::Assistant.as_str();
        self.items.push(Item::Message { role, content });
    }
}

fn called(call: &ToolCall, call_id: String, name: String) -> Item<'_> {
    if call.is_custom() {
        let input = &call.arguments;
        return Item::CustomToolCall {
            call_id,
            name,
            input,
        };
    }
    let arguments = if is_blank(&call.arguments) {
        "{}".into()
    } else if call.arguments_object().is_none() {
        serde_json::json!({ "_raw": call.arguments })
            .to_string()
            .into()
    } else {
        call.arguments.as_str().into()
    };
    Item::FunctionCall {
        call_id,
        name,
        arguments,
    }
}

/// A thought that OpenAI can take back: one that it sealed. The seal is for the thought's id, so it
/// goes with that or not at all; and it goes once, for an id that stands twice is refused.
fn thought<'a>(part: &'a Part, known: &BTreeSet<&str>) -> Option<Item<'a>> {
    let Part::Thinking { extra, .. } = part else {
        return None;
    };
    let id = thought_id(part).filter(|id| !known.contains(id))?;
    let encrypted_content = string(extra, "encrypted_content")?;
    let summary = extra.get("summary").and_then(Value::as_array);
    let texts = summary.into_iter().flatten();
    Some(Item::Reasoning {
        id,
        summary: texts
            .filter_map(|text| text.get("text")?.as_str())
            .map(|text| Bit::SummaryText { text })
            .collect(),
        encrypted_content,
    })
}

/// The id of a sealed thought, if it is one that OpenAI gave.
pub(super) fn thought_id(part: &Part) -> Option<&str> {
    let Part::Thinking { extra, .. } = part else {
        return None;
    };
    string(extra, "encrypted_content")?;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    string(extra, "id")
        .filter(|id| id.starts_with("rs_") && id.len() <= ID_MAX && id.chars().all(legal))
}

/// What a tool gave back. A tool's `name` is its call's and stands there.
fn given_back(message: &Message) -> Words<'_> {
    let bits = bits(message);
    if bits.iter().all(|bit| matches!(bit, Bit::InputText { .. })) {
        return Words::Text(flat(message));
    }
    Words::Bits(bits)
}

/// What a tool gave back, to no call that is known: the user tells it.
fn orphan(message: &Message) -> Option<Item<'_>> {
    let content = match given_back(message) {
        Words::Text(text) if is_blank(&text) => return None,
        Words::Text(text) => Words::Text(format!("{ORPHAN}\n{text}").into()),
        Words::Bits(mut bits) => {
            let text = ORPHAN.into();
            bits.insert(0, Bit::InputText { text });
            Words::Bits(bits)
        }
    };
    let role = Role::User.as_str();
    Some(Item::Message { role, content })
}

/// What a user says, their name before it.
fn said(message: &Message) -> Option<Words<'_>> {
    let Content::Parts(_) = message.content else {
        return Words::signed(message.text(), message);
    };
    let mut bits = bits(message);
    if bits.is_empty() {
        return None;
    }
    if let Some(speaker) = speaker(message) {
        let first = bits.iter_mut().find_map(|bit| match bit {
            Bit::InputText { text } => Some(text),
            _ => None,
        });
        match first {
            Some(text) => *text = format!("{speaker} {text}").into(),
            None => bits.insert(
                0,
                Bit::InputText {
                    text: speaker.into(),
                },
            ),
        }
    }
    Some(Words::Bits(bits))
}

impl<'a> Words<'a> {
    /// The text with its speaker's name before it; nothing where it is blank.
    fn signed(text: Cow<'a, str>, message: &Message) -> Option<Self> {
        if is_blank(&text) {
            return None;
        }
        Some(Self::Text(match speaker(message) {
            Some(speaker) => format!("{speaker} {text}").into(),
            None => text,
        }))
    }
}

/// The content's parts, as far as there is something in them.
fn bits(message: &Message) -> Vec<Bit<'_>> {
    match &message.content {
        Content::Null => Vec::new(),
        Content::Text(text) => vec![Bit::InputText { text: text.into() }],
        Content::Parts(parts) => parts
            .iter()
            .filter_map(|part| {
                media(part).or_else(|| words(part).map(|text| Bit::InputText { text }))
            })
            .collect(),
    }
}

/// The part as something to look at, where it is that and the API can show it.
fn media(part: &Part) -> Option<Bit<'_>> {
    match part {
        Part::Image { image_url, .. } => {
            let url = match Picture::at(string(image_url, "url")?)? {
                Picture::Url(url) => url.into(),
                Picture::Data { media_type, data } => {
                    format!("data:{media_type};base64,{data}").into()
                }
            };
            let detail = string(image_url, "detail")
                .filter(|detail| matches!(*detail, "low" | "high" | "auto" | "original"));
            Some(Bit::InputImage {
                image_url: url,
                detail: detail.unwrap_or("auto"),
            })
        }
        Part::File { file, .. } => {
            let data = string(file, "file_data").and_then(DataUrl::parse);
            if let Some(DataUrl { media, data }) = data.filter(|data| is_readable(&data.media)) {
                let name = string(file, "filename").map_or("unnamed".into(), label);
                return Some(Bit::InputFile {
                    file_id: None,
                    filename: Some(name),
                    file_data: Some(format!("data:{media};base64,{data}")),
                });
            }
            // Other providers give ids of other kinds.
            let file_id = string(file, "file_id").filter(|id| id.starts_with("file-"))?;
            Some(Bit::InputFile {
                file_id: Some(file_id),
                filename: None,
                file_data: None,
            })
        }
        Part::Text { .. } | Part::Thinking { .. } | Part::Other(_) => None,
    }
}

/// Whether the API reads files of this type: documents, sheets, slides, text and code.
fn is_readable(media: &str) -> bool {
    const TEXT: &str = "text/";
    const OFFICE: &str = "application/vnd.";
    media.starts_with(TEXT)
        || media.starts_with(OFFICE)
        || matches!(
            media,
            "application/pdf" | "application/json" | "application/msword" | "application/rtf"
        )
}
