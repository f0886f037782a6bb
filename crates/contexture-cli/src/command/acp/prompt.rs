//! What a host sends as a prompt, as a message of ours.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    BlobResourceContents, ContentBlock, EmbeddedResourceResource, ResourceLink,
    TextResourceContents,
};
use contexture::{Content, Message, Part};
use serde_json::{Map, json};

use super::refused;

/// The message that the blocks make. Text and links stand in their order; what is attached follows.
pub fn message(blocks: Vec<ContentBlock>, images: bool) -> Result<Message, Error> {
    let mut text = String::new();
    let mut attached = String::new();
    let mut pictures = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text(said) => text.push_str(&said.text),
            ContentBlock::ResourceLink(link) => text.push_str(&named(&link)),
            ContentBlock::Resource(embedded) => match embedded.resource {
                EmbeddedResourceResource::TextResourceContents(found) => {
                    attached.push_str(&quoted(&found));
                }
                EmbeddedResourceResource::BlobResourceContents(found) => {
                    pictures.push(picture_of(found, images)?);
                }
                _ => return Err(unknown("resource")),
            },
            ContentBlock::Image(image) if images => {
                pictures.push(picture(&image.mime_type, &image.data)?);
            }
            ContentBlock::Image(_) => return Err(blind()),
            ContentBlock::Audio(_) => {
                return Err(refused("this agent does not hear: audio is not taken"));
            }
            _ => return Err(unknown("block")),
        }
    }
    text.push_str(&attached);
    let said = text.trim();
    if said.is_empty() && pictures.is_empty() {
        return Err(refused("the prompt is empty"));
    }
    if pictures.is_empty() {
        return Ok(Message::user(said));
    }
    let words = (!said.is_empty()).then(|| Part::text_part(said));
    let parts = words.into_iter().chain(pictures).collect();
    Ok(Message {
        content: Content::Parts(parts),
        ..Message::user("")
    })
}

/// A link as people write it.
fn named(link: &ResourceLink) -> String {
    format!(
        "[{}]({})",
        link.title.as_ref().unwrap_or(&link.name),
        link.uri
    )
}

/// A text with its address, set off from what the user wrote.
fn quoted(found: &TextResourceContents) -> String {
    let uri = found.uri.replace(['"', '<', '>', '\n'], "");
    format!(
        "\n\n<attachment uri=\"{uri}\">\n{}\n</attachment>",
        found.text.trim_end()
    )
}

fn picture_of(found: BlobResourceContents, images: bool) -> Result<Part, Error> {
    let kind = found.mime_type.unwrap_or_default();
    match kind.starts_with("image/") {
        true if images => picture(&kind, &found.blob),
        true => Err(blind()),
        false => Err(refused(format!(
            "{} is neither text nor an image, and cannot be shown to the model",
            found.uri
        ))),
    }
}

fn picture(kind: &str, data: &str) -> Result<Part, Error> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "/+-.".contains(c);
    let base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    if !kind.starts_with("image/") || !kind.chars().all(legal) {
        return Err(refused("an image needs its type, such as image/png"));
    }
    if data.is_empty() || !data.chars().all(base64) {
        return Err(refused("the data of an image must be base64"));
    }
    let url = format!("data:{kind};base64,{data}");
    Ok(Part::Image {
        image_url: Map::from_iter([("url".to_owned(), json!(url))]),
        extra: Map::new(),
    })
}

fn blind() -> Error {
    refused("this model does not see: images are not taken")
}

fn unknown(what: &str) -> Error {
    refused(format!(
        "the prompt has a {what} of a kind that is not known here"
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use agent_client_protocol::v1::schema::{
        AudioContent, EmbeddedResource, ImageContent, TextContent,
    };

    use super::*;

    fn text(text: &str) -> ContentBlock {
        ContentBlock::Text(TextContent::new(text))
    }

    fn resource(uri: &str, text: &str) -> ContentBlock {
        let found = TextResourceContents::new(text, uri);
        ContentBlock::Resource(EmbeddedResource::new(
            EmbeddedResourceResource::TextResourceContents(found),
        ))
    }

    #[test]
    fn text_and_links_keep_their_order_and_attachments_follow() {
        let link = ContentBlock::ResourceLink(ResourceLink::new("a.rs", "file:///p/a.rs"));
        let blocks = vec![
            text("Look at "),
            link,
            resource("file:///p/b\">.rs", "fn b() {}\n"),
            text(", please."),
        ];
        let made = message(blocks, false).unwrap();
        assert_eq!(
            made.text(),
            "Look at [a.rs](file:///p/a.rs), please.\n\n<attachment uri=\"file:///p/b.rs\">\nfn b() {}\n</attachment>"
        );
    }

    #[test]
    fn an_image_goes_to_a_model_that_sees() {
        let image = || ContentBlock::Image(ImageContent::new("aGk=", "image/png"));
        let made = message(vec![text("What is it?"), image()], true).unwrap();
        let parts = made.parts();
        assert_eq!(parts.len(), 2);
        assert!(
            matches!(&parts[1], Part::Image { image_url, .. } if image_url["url"] == "data:image/png;base64,aGk=")
        );
        let error = message(vec![image()], false).unwrap_err();
        assert!(error.message.contains("does not see"));
    }

    #[test]
    fn what_cannot_be_shown_is_refused_in_words() {
        let audio = ContentBlock::Audio(AudioContent::new("aGk=", "audio/wav"));
        assert!(
            message(vec![audio], true)
                .unwrap_err()
                .message
                .contains("audio")
        );
        assert!(
            message(vec![text("  ")], true)
                .unwrap_err()
                .message
                .contains("empty")
        );
        for (kind, data) in [
            ("text/html", "aGk="),
            ("image/png", "<script>"),
            ("image/a;b", "aGk="),
        ] {
            let image = ContentBlock::Image(ImageContent::new(data, kind));
            assert!(message(vec![image], true).is_err(), "{kind} {data}");
        }
    }
}
