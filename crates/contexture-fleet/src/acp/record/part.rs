//! Blocks of content as parts of messages, and their lengths.

use contexture::message::Part;
use serde_json::{Map, Value, json};

/// Bytes that a part takes beside its text.
pub(super) const PART: usize = 256;

/// A block of content as a part of a message.
pub(super) fn part(block: &Value, thought: bool) -> Option<Part> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let said = match block["type"].as_str()? {
        "text" => text(&block["text"])?,
        "resource_link" => {
            let uri = text(&block["uri"])?;
            let name = text(&block["name"]).unwrap_or_else(|| uri.clone());
            format!("[{name}]({uri})")
        }
        "resource" => {
            let inside = &block["resource"];
            let uri = text(&inside["uri"]).unwrap_or_default();
            match text(&inside["text"]) {
                Some(text) => format!("{uri}:\n{text}"),
                None => format!("[{uri}]"),
            }
        }
        "image" => {
            let (kind, data) = (text(&block["mimeType"])?, text(&block["data"])?);
            let url = json!(format!("data:{kind};base64,{data}"));
            return Some(Part::Image {
                image_url: Map::from_iter([("url".to_owned(), url)]),
                extra: Map::new(),
            });
        }
        _ => return None,
    };
    if said.is_empty() {
        return None;
    }
    Some(match thought {
        true => Part::Thinking {
            thinking: said,
            signature: None,
            extra: Map::new(),
        },
        false => Part::text_part(said),
    })
}

pub(super) fn length(part: &Part) -> usize {
    match part {
        Part::Text { text, .. } => text.len(),
        Part::Thinking { thinking, .. } => thinking.len(),
        Part::Image { image_url, .. } => image_url
            .values()
            .filter_map(Value::as_str)
            .map(str::len)
            .sum(),
        Part::File { .. } | Part::Other(_) => 0,
    }
}

/// The beginning of a text, with a mark that says how much is missing.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let at = (0..=most).rev().find(|at| text.is_char_boundary(*at));
    let at = at.unwrap_or_default();
    format!("{}\n[{} bytes were cut]", &text[..at], text.len() - at)
}
