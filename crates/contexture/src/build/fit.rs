//! Step 3: cuts inside a message.
//!
//! A cut is the last means and touches only what a model can do without: the middle of a tool
//! result, then of what the model itself wrote around its last calls. Never a user's words, never
//! the system side, never a pin. It is logged as a mask that keeps some bytes, so that the next
//! request shows the same cut.

use std::borrow::Cow;

use serde_json::Value;

use super::item::{Item, Kind, Piece, Pricing, Rule};
use super::marks;
use crate::entry::Live;
use crate::{Content, Message, Part, Role, json};

/// The message as its marks in the log want it shown.
pub(crate) fn shown<'a>(
    message: &'a Message,
    live: Live<'_>,
    entry: &str,
) -> (Cow<'a, Message>, Rule) {
    if live.redacted {
        let mut redacted = message.saying(marks::REDACTED);
        // Fields that we do not know may quote it.
        redacted.extra.clear();
        return (Cow::Owned(redacted), Rule::Redacted);
    }
    match live.mask {
        Some(None) if message.role == Role::Tool => {
            (Cow::Owned(masked(message, entry)), Rule::Masked)
        }
        Some(Some(keep)) => match cut(message, keep) {
            Some(cut) => (Cow::Owned(cut), Rule::Truncated),
            None => (Cow::Borrowed(message), Rule::Kept),
        },
        _ => (Cow::Borrowed(message), Rule::Kept),
    }
}

/// A tool result with nothing left but a mark.
pub(crate) fn masked(message: &Message, entry: &str) -> Message {
    message.saying(marks::masked(message.text().len(), entry))
}

/// The message with about `keep` bytes of its texts; nothing when it has no more than that.
pub(crate) fn cut(message: &Message, keep: usize) -> Option<Message> {
    let text = message.text();
    let arguments: usize = message
        .tool_calls
        .iter()
        .map(|call| call.arguments.len())
        .sum();
    let total = text.len() + arguments;
    let others = match &message.content {
        Content::Parts(parts) => parts
            .iter()
            .filter(|p| !matches!(p, Part::Text { .. }))
            .count(),
        _ => 0,
    };
    if total <= keep && others == 0 {
        return None;
    }
    let share = |len: usize| scale(len, keep.min(total), total);
    let mut out = message.clone();
    let mut shorter = cut_text(&text, share(text.len())).into_owned();
    if others > 0 {
        shorter.push_str(&marks::parts(others));
    }
    out.content = if text.is_empty() && others == 0 {
        Content::Null
    } else {
        Content::Text(shorter)
    };
    for call in &mut out.tool_calls {
        call.arguments = cut_arguments(&call.arguments, share(call.arguments.len()));
    }
    Some(out)
}

/// Keeps the ends of a text and marks the gap.
fn cut_text(text: &str, keep: usize) -> Cow<'_, str> {
    if text.len() <= keep {
        return Cow::Borrowed(text);
    }
    let head = text.floor_char_boundary(keep / 2);
    let tail = text.ceil_char_boundary(text.len() - (keep - keep / 2));
    let mark = marks::cut(tail - head);
    Cow::Owned(format!("{}{mark}{}", &text[..head], &text[tail..]))
}

/// Arguments stay a JSON object: long strings in it are cut, or, where that is not enough, it
/// becomes an object that holds the ends of its text.
fn cut_arguments(arguments: &str, keep: usize) -> String {
    if arguments.len() <= keep {
        return arguments.to_owned();
    }
    if let Ok(mut value) = json::from_text::<Value>(arguments) {
        cut_strings(&mut value, keep, arguments.len());
        let shorter = value.to_string();
        if shorter.len() <= keep {
            return shorter;
        }
    }
    let ends = cut_text(arguments, keep / 2);
    serde_json::json!({ "_cut": ends }).to_string()
}

fn cut_strings(value: &mut Value, keep: usize, total: usize) {
    const SHORT: usize = 64;
    match value {
        Value::String(text) if text.len() > SHORT => {
            // Half of its share: escapes and marks take room too.
            let shorter = cut_text(text, scale(text.len(), keep, total) / 2).into_owned();
            *text = shorter;
        }
        Value::Array(values) => values.iter_mut().for_each(|v| cut_strings(v, keep, total)),
        Value::Object(map) => map.values_mut().for_each(|v| cut_strings(v, keep, total)),
        _ => {}
    }
}

fn scale(len: usize, keep: usize, total: usize) -> usize {
    let (len, keep, total) = (len as u128, keep as u128, total.max(1) as u128);
    usize::try_from(len * keep / total).unwrap_or(usize::MAX)
}

/// Which items to cut, and how many bytes each keeps, so that `excess` leaves the request.
///
/// `cost` is what is over: tokens or bytes. The largest give first, down to a common height, as
/// water finds its level. Results are cut before what the model wrote.
pub(crate) fn cuts(
    items: &[Item],
    may_cut: impl Fn(&Item) -> bool,
    excess: usize,
    cost: impl Fn(&Piece) -> usize,
    pricing: &Pricing,
) -> Vec<(usize, usize)> {
    let mut left = excess;
    let mut cuts = Vec::new();
    for kinds in [&[Kind::Result][..], &[Kind::Call, Kind::Assistant]] {
        if left == 0 {
            break;
        }
        let candidates: Vec<usize> = (0..items.len())
            .filter(|&i| kinds.contains(&items[i].kind) && !items[i].pinned && may_cut(&items[i]))
            .collect();
        let sizes: Vec<usize> = candidates.iter().map(|&i| cost(&items[i].piece)).collect();
        let total: usize = sizes.iter().sum();
        let level = level(&sizes, total.saturating_sub(left));
        for (&i, &size) in candidates.iter().zip(&sizes) {
            if size <= level {
                continue;
            }
            let message = &items[i].piece.message;
            let (keep, after) = keep_for(message, level, size, &cost, pricing);
            // A mark can be longer than what it stands for.
            if after < size {
                left = left.saturating_sub(size - after);
                cuts.push((i, keep));
            }
        }
    }
    cuts
}

/// The height at which sizes must be cut off for their sum to be at most `room`.
fn level(sizes: &[usize], room: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut room = room;
    let mut left = sorted.len();
    for size in sorted {
        if size * left > room {
            return room / left;
        }
        room -= size;
        left -= 1;
    }
    usize::MAX
}

/// How many bytes of the message to keep for its cost to be at most `level`, and that cost.
fn keep_for(
    message: &Message,
    level: usize,
    size: usize,
    cost: impl Fn(&Piece) -> usize,
    pricing: &Pricing,
) -> (usize, usize) {
    let total = message.text().len()
        + message
            .tool_calls
            .iter()
            .map(|call| call.arguments.len())
            .sum::<usize>();
    let mut keep = scale(total, level, size);
    loop {
        let after = cut(message, keep).map_or(size, |cut| cost(&pricing.piece(cut)));
        if after <= level || keep == 0 {
            return (keep, after);
        }
        keep = keep * 7 / 8;
    }
}
