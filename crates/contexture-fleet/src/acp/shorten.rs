//! What an agent says, as it is told to whoever listens.
//!
//! The whole of it goes to the session's log. Listeners have queues, and events are remembered, so each of them gets
//! at most as much at once as these have room for: long text in pieces, anything else shortened.

use contexture::json::held;
use serde_json::{Map, Value, json};

/// The most memory of what is told at once.
const MAX_TOLD_BYTES: usize = 64 << 10;
/// The most bytes of a piece of text.
const MAX_PIECE_BYTES: usize = 32 << 10;
/// The most bytes of a text in what is shortened.
const MAX_TEXT_BYTES: usize = 2 << 10;
/// The most fields of what is told of something that is too large even so.
const MAX_FIELDS: usize = 16;

/// An update as it is told: whole, in pieces, or shortened.
pub(crate) fn in_pieces(update: Value) -> Vec<Value> {
    if held(&update) <= MAX_TOLD_BYTES {
        return vec![update];
    }
    let content = &update["content"];
    match (update["sessionUpdate"].as_str(), content["text"].as_str()) {
        (Some(kind @ ("agent_message_chunk" | "agent_thought_chunk")), Some(text)) => pieces(text)
            .map(|text| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}))
            .collect(),
        _ => vec![shortened(update)],
    }
}

/// A value with its long texts cut; where that is not enough, no more than its first plain fields.
pub(crate) fn shortened(mut value: Value) -> Value {
    if held(&value) <= MAX_TOLD_BYTES {
        return value;
    }
    cut(&mut value);
    if held(&value) <= MAX_TOLD_BYTES {
        return value;
    }
    let Value::Object(all) = value else {
        return Value::Null;
    };
    let plain = all.into_iter().filter(|(key, value)| {
        key.len() <= MAX_TEXT_BYTES && !value.is_array() && !value.is_object()
    });
    let mut left: Map<String, Value> = plain.take(MAX_FIELDS).collect();
    left.insert("shortened".to_owned(), true.into());
    Value::Object(left)
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_TEXT_BYTES => {
            let at = text.floor_char_boundary(MAX_TEXT_BYTES);
            *text = format!("{}\n[{} bytes were cut]", &text[..at], text.len() - at);
        }
        Value::Array(all) => all.iter_mut().for_each(cut),
        Value::Object(all) => all.values_mut().for_each(cut),
        _ => {}
    }
}

fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(MAX_PIECE_BYTES));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_told_whole_in_pieces() {
        let text = "ß".repeat(1 << 20);
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        let told = in_pieces(update);
        assert!(told.iter().all(|piece| held(piece) <= MAX_TOLD_BYTES));
        let all: String = told
            .iter()
            .map(|piece| piece["content"]["text"].as_str().unwrap())
            .collect();
        assert_eq!(all, text);
    }

    #[test]
    fn anything_else_is_shortened() {
        let long = "x".repeat(1 << 20);
        let call =
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "rawInput": {"text": long}});
        let told = in_pieces(call).remove(0);
        assert_eq!(told["toolCallId"], "c");
        assert!(
            told["rawInput"]["text"]
                .as_str()
                .unwrap()
                .ends_with("bytes were cut]")
        );
        let many =
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "rawInput": vec![0; 1 << 20]});
        let told = shortened(many);
        assert_eq!(
            told,
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "shortened": true})
        );
        let short = json!({"sessionUpdate": "plan", "entries": []});
        assert_eq!(in_pieces(short.clone()), [short]);
    }
}
