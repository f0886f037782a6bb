use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::message::words::{is_blank, is_blank_char};

/// One block of a turn, as it is sent.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    ToolUse {
        id: String,
        name: String,
        input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "Answer::is_empty")]
        content: Answer<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// Where an image or a document is.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 {
        media_type: &'static str,
        data: Cow<'a, str>,
    },
    Url {
        url: &'a str,
    },
    File {
        file_id: &'a str,
    },
    Text {
        media_type: &'static str,
        data: String,
    },
}

/// What a tool gave back.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer<'a> {
    /// Nothing: the API takes a result without content, but none with blank text.
    Empty,
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// A block or a tool, which may end a stretch that the API is asked to cache.
#[derive(Serialize)]
pub(super) struct Marked<T> {
    #[serde(flatten)]
    pub inner: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// What a mark adds to a block.
pub(super) const CACHE_MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

impl<'a> Block<'a> {
    /// A text block, unless the text is blank: the API takes no blank ones.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Option<Self> {
        let text = text.into();
        (!is_blank(&text)).then_some(Self::Text { text })
    }

    /// Whether it may carry a mark.
    pub fn is_markable(&self) -> bool {
        match self {
            Self::Thinking { .. } | Self::RedactedThinking { .. } => false,
            Self::ToolResult { content, .. } => !content.is_empty(),
            Self::Text { .. }
            | Self::Image { .. }
            | Self::Document { .. }
            | Self::ToolUse { .. } => true,
        }
    }

    /// Takes the blank end off a text block.
    pub fn trim_end(&mut self) {
        if let Self::Text { text } = self {
            let end = text.trim_end_matches(is_blank_char).len();
            match text {
                Cow::Borrowed(text) => *text = &text[..end],
                Cow::Owned(text) => text.truncate(end),
            }
        }
    }
}

impl Answer<'_> {
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }
}

impl<T> Marked<T> {
    pub fn mark(&mut self) {
        self.cache_control = Some(CacheControl::Ephemeral);
    }
}

impl<T> From<T> for Marked<T> {
    fn from(inner: T) -> Self {
        Self {
            inner,
            cache_control: None,
        }
    }
}
