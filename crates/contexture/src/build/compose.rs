//! Spec 004's context builder: a stored conversation and a few options, as messages.

use serde::Serialize;
use serde_json::Value;

use super::item::{Item, Kind, Pricing, Rule};
use super::normalize::{Pieces, Weave};
use crate::message::openai;
use crate::prompt::{ComposeOptions, system_prompt};
use crate::tokens::Bpe;
use crate::{ContextError, Entry, Message, View, Wire};

/// Spec 004's `ContextBuildResult`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Composed {
    /// The messages, the system prompt first.
    pub messages: Vec<Value>,
    /// What was done.
    pub metadata: Metadata,
}

/// What composing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Messages given.
    pub input_count: usize,
    /// Messages made, the system prompt among them.
    pub output_count: usize,
    /// Messages left out because they are not to be in the context.
    pub filtered_count: usize,
    /// Messages left out because there is nothing in them.
    pub empty_count: usize,
    /// Messages left out because they answer no call, came twice, or are more than `maxMessages`.
    pub dropped_count: usize,
    /// Whether there is a system prompt.
    pub system_prompt_included: bool,
    /// Its length in UTF-16 units, as the spec's language counts.
    pub system_prompt_length: usize,
}

/// Composes the messages.
///
/// Stored system messages are dropped, because the system prompt is made anew; summaries stay. Pairs
/// of calls and results come out whole, whatever went in.
pub fn compose(options: &ComposeOptions) -> Result<Composed, ContextError> {
    let mut messages = Vec::new();
    let mut system_prompt_length = 0;
    if options.settings.include_system_prompt {
        let text = system_prompt(options)?;
        system_prompt_length = text.encode_utf16().count();
        messages.push(openai::shown(&Message::system(text)));
    }
    let stored = options
        .messages
        .iter()
        .filter(|m| !m.role.is_system() || is_summary(m));
    let mut view = View::default();
    for message in stored.map(stripped) {
        let parent = view.tail().cloned();
        view.push(Entry::message(parent.as_ref(), "", message))?;
    }
    let pricing = Pricing {
        tokenizer: std::sync::Arc::new(Bpe::O200k),
        wire: Wire::OpenAi,
        reveals: true,
    };
    let weave = Weave::of(&view, &pricing, &mut Pieces::default())?;
    let excluded = |rule: Rule| {
        weave
            .excluded
            .iter()
            .filter(|(_, other)| *other == rule)
            .count()
    };
    let (filtered_count, empty_count) = (excluded(Rule::Filtered), excluded(Rule::Empty));
    let items = newest(&weave.items, options.settings.max_messages);
    messages.extend(items.iter().map(|item| openai::shown(&item.piece.message)));
    Ok(Composed {
        metadata: Metadata {
            input_count: options.messages.len(),
            output_count: messages.len(),
            filtered_count,
            empty_count,
            dropped_count: weave.excluded.len() - filtered_count - empty_count + weave.items.len()
                - items.len(),
            system_prompt_included: options.settings.include_system_prompt,
            system_prompt_length,
        },
        messages,
    })
}

/// A stored message without what is the user interface's: only role, content, calls and the call's
/// id go to a model.
fn stripped(message: &Message) -> Message {
    Message {
        name: None,
        id: None,
        pin: false,
        extra: serde_json::Map::new(),
        ..message.clone()
    }
}

/// Whether a stored system message is a summary of what came before it.
fn is_summary(message: &Message) -> bool {
    let named = |key: &str| message.extra.get(key).and_then(Value::as_str);
    ["type", "kind"]
        .into_iter()
        .filter_map(named)
        .any(|kind| kind.ends_with("summary"))
        || message.extra.get("isSummary") == Some(&Value::Bool(true))
}

/// The newest messages, at most `max`, tool groups whole.
fn newest(items: &[Item], max: Option<usize>) -> &[Item] {
    let Some(max) = max.filter(|max| items.len() > *max) else {
        return items;
    };
    let mut start = items.len() - max;
    while items
        .get(start)
        .is_some_and(|item| item.kind == Kind::Result)
    {
        start += 1;
    }
    &items[start..]
}
