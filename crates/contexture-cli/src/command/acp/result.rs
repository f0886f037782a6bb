//! A tool's result as an editor shows it.

use agent_client_protocol::v1::schema::{
    Content as Shown, ContentBlock, ImageContent, ToolCallContent,
};
use contexture::{Content, Message, Part};
use serde_json::{Value, json};

/// The most bytes of a result that are shown; the model read all of it.
const MOST: usize = 64 << 10;

/// The result for people.
pub fn content(message: &Message) -> Vec<ToolCallContent> {
    let blocks = message.parts().into_iter().filter_map(|part| match part {
        Part::Text { text, .. } if !text.trim().is_empty() => Some(ContentBlock::from(cut(&text))),
        Part::Image { image_url, .. } => {
            let url = image_url.get("url")?.as_str()?;
            let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
            Some(ContentBlock::Image(ImageContent::new(data, kind)))
        }
        _ => None,
    });
    blocks
        .map(|block| ToolCallContent::Content(Shown::new(block)))
        .collect()
}

/// The result as it is.
pub fn raw(message: &Message) -> Value {
    match &message.content {
        Content::Null => Value::Null,
        Content::Text(text) => json!(cut(text)),
        Content::Parts(_) => json!(cut(&message.text())),
    }
}

/// The beginning of a text, with a mark where it was cut.
fn cut(text: &str) -> String {
    if text.len() <= MOST {
        return text.to_owned();
    }
    let mut end = MOST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n… and {} bytes more", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_is_cut_at_a_character() {
        let text = "é".repeat(MOST);
        let shown = cut(&text);
        assert!(shown.len() < MOST + 100 && shown.ends_with("bytes more"));
        assert_eq!(cut("é"), "é");
    }
}
