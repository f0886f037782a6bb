//! What a server answered, as a model reads it.

use contexture::{Content, Part};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value};

use crate::Outcome;

/// The most bytes of text.
const MOST_TEXT: usize = 1 << 20;
/// The most bytes of one picture, in base64.
const MOST_PICTURE: usize = 5 << 20;
/// The most pictures.
const MOST_PICTURES: usize = 8;
/// What every provider shows to a model.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What came of a call.
pub(super) fn outcome(result: CallToolResult) -> Outcome {
    let failed = result.is_error == Some(true);
    let mut answer = Answer::default();
    for block in result.content {
        answer.block(block);
    }
    let mut structured = false;
    if let (false, Some(value)) = (answer.any_text, result.structured_content) {
        structured = true;
        answer.text(&value.to_string());
    }
    answer.finish(failed, structured)
}

/// What a resource holds.
pub(super) fn resource(contents: Vec<ResourceContents>) -> Outcome {
    let mut answer = Answer::default();
    for content in contents {
        answer.resource(content);
    }
    answer.finish(false, false)
}

/// What a block of a prompt says.
pub(super) fn plain(block: ContentBlock) -> Content {
    let mut answer = Answer::default();
    answer.block(block);
    answer.finish(false, false).content
}

#[derive(Default)]
struct Answer {
    parts: Vec<Part>,
    pictures: usize,
    any_text: bool,
}

impl Answer {
    fn block(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.text(&text.text),
            ContentBlock::Image(image) => self.picture(&image.mime_type, &image.data),
            ContentBlock::Audio(audio) => {
                self.left_out("audio", &audio.mime_type, audio.data.len());
            }
            ContentBlock::Resource(embedded) => self.resource(embedded.resource),
            ContentBlock::ResourceLink(link) => {
                let about = link.description.unwrap_or_default();
                self.text(&format!("{}: {} {about}", link.name, link.uri));
            }
            _ => self.left_out("content", "unknown", 0),
        }
    }

    fn resource(&mut self, resource: ResourceContents) {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.text(&format!("{uri}\n{text}"));
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => {
                let kind = mime_type.unwrap_or_default();
                self.text(&uri);
                match PICTURES.contains(&kind.as_str()) {
                    true => self.picture(&kind, &blob),
                    false => self.left_out("data", &kind, blob.len()),
                }
            }
            _ => self.left_out("content", "unknown", 0),
        }
    }

    fn text(&mut self, text: &str) {
        self.any_text |= !text.is_empty();
        self.parts.push(Part::text_part(text));
    }

    /// A picture that a provider would refuse would spoil every later request, so it is left out.
    fn picture(&mut self, kind: &str, data: &str) {
        let digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        let good = PICTURES.contains(&kind)
            && (1..=MOST_PICTURE).contains(&data.len())
            && data.len().is_multiple_of(4)
            && data.bytes().all(digit)
            && self.pictures < MOST_PICTURES;
        if !good {
            return self.left_out("a picture", kind, data.len());
        }
        self.pictures += 1;
        let url = Value::String(format!("data:{kind};base64,{data}"));
        self.parts.push(Part::Image {
            image_url: Map::from_iter([("url".to_owned(), url)]),
            extra: Map::new(),
        });
    }

    fn left_out(&mut self, what: &str, kind: &str, bytes: usize) {
        let kind = super::bounded(kind, 100);
        self.parts.push(Part::text_part(format!(
            "[{what} of type {kind}, {bytes} bytes, left out]"
        )));
    }

    fn finish(self, failed: bool, structured: bool) -> Outcome {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::text).collect();
        let text = match texts.join("\n") {
            text if text.is_empty() && self.pictures == 0 => "(no output)".to_owned(),
            text => cut_middle(text),
        };
        let summary = match structured || looks_like_json(&text) {
            true => format!("a structured result of {} characters", text.chars().count()),
            false if text.is_empty() => format!("{} pictures", self.pictures),
            false => text.clone(),
        };
        let outcome = match failed {
            true => Outcome::failed(text),
            false => Outcome::done(text),
        };
        let mut outcome = outcome.saying(summary);
        if self.pictures > 0 {
            let said = match std::mem::take(&mut outcome.content) {
                Content::Text(text) if !text.is_empty() => Some(Part::text_part(text)),
                _ => None,
            };
            let pictures = self.parts.into_iter().filter(|part| part.text().is_none());
            outcome.content = Content::Parts(said.into_iter().chain(pictures).collect());
        }
        outcome
    }
}

/// Both ends of a text that is too long, with a mark between them.
fn cut_middle(text: String) -> String {
    if text.len() <= MOST_TEXT {
        return text;
    }
    let half = MOST_TEXT / 2;
    let head = (0..=half)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let tail = text.len() - half;
    let tail = (tail..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let (head, left_out, tail) = (&text[..head], tail - head, &text[tail..]);
    format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
}

/// People are never shown raw JSON.
fn looks_like_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> Outcome {
        outcome(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn all_kinds_of_content() {
        let said = of(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "image", "data": "AA A", "mimeType": "image/png" },
            { "type": "image", "data": "AAAA", "mimeType": "image/svg+xml" },
            { "type": "audio", "data": "AAAA", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "a://b", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "a://c", "blob": "AAAA" } },
            { "type": "resource_link", "uri": "a://d", "name": "link" },
        ]}));
        let Content::Parts(parts) = &said.content else {
            panic!("{said:?}")
        };
        assert_eq!(parts.len(), 2);
        let text = parts[0].text().unwrap();
        for needle in [
            "one",
            "a://b\ninside",
            "a://c",
            "audio of type audio/wav",
            "link: a://d",
        ] {
            assert!(text.contains(needle), "{needle} in {text}");
        }
        assert_eq!(text.matches("a picture of type").count(), 2);
        assert!(
            matches!(&parts[1], Part::Image { image_url, .. } if image_url["url"] == "data:image/png;base64,AAAA")
        );
    }

    #[test]
    fn structured_content_only_without_text() {
        let both = of(
            json!({ "content": [{ "type": "text", "text": "t" }], "structuredContent": { "a": 1 } }),
        );
        assert_eq!(both.content, Content::Text("t".into()));
        let alone = of(json!({ "content": [], "structuredContent": { "a": 1 }, "isError": true }));
        assert_eq!(alone.content, Content::Text("{\"a\":1}".into()));
        assert!(alone.failed);
        assert!(!alone.summary.contains('{'), "{}", alone.summary);
        assert_eq!(
            of(json!({ "content": [] })).content,
            Content::Text("(no output)".into())
        );
    }

    #[test]
    fn a_long_text_loses_its_middle() {
        let long = format!("begin{}end", "ß".repeat(MOST_TEXT));
        let Content::Text(text) =
            of(json!({ "content": [{ "type": "text", "text": long }] })).content
        else {
            panic!()
        };
        assert!(text.len() < MOST_TEXT + 100);
        assert!(
            text.starts_with("begin") && text.ends_with("end") && text.contains("bytes left out")
        );
    }
}
