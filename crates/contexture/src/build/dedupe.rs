//! Step 2: nothing is said twice.
//!
//! Entries are told apart by id and injections by fingerprint when the log is folded. What is left
//! are messages without an id: a call message that was logged twice, and input that the session has
//! already.

use super::item::{Item, Kind, Source};
use crate::{Entry, Message, Payload};

/// Whether `message` is the call message that the items end with, logged once more.
///
/// Only when nothing has answered it yet: a model may well make the same call again after it has
/// seen the result.
pub(crate) fn repeats_call(items: &[Item], message: &Message) -> bool {
    if Kind::of(message) != Kind::Call {
        return false;
    }
    let placeholders = items
        .iter()
        .rev()
        .take_while(|item| matches!(item.source, Source::Aborted(_)))
        .count();
    let Some(at) = items.len().checked_sub(placeholders + 1) else {
        return false;
    };
    let last = &items[at];
    last.kind == Kind::Call
        && placeholders == last.piece.message.tool_calls.len()
        && last.piece.message.tool_calls == message.tool_calls
        && last.piece.message.content == message.content
}

/// How many of the input messages the session ends with already.
///
/// A turn that is tried again brings its input again. Messages with an id are told apart by it; the
/// others count as present only when the session's last messages are exactly the input.
pub(crate) fn present<'a>(
    log: impl DoubleEndedIterator<Item = &'a Entry>,
    input: &[Message],
) -> bool {
    let mut last = log.rev().filter_map(|entry| match &entry.payload {
        Payload::Message { message } => Some(message),
        _ => None,
    });
    !input.is_empty()
        && input
            .iter()
            .rev()
            .all(|message| last.next() == Some(message))
}
