use serde_json::{Map, Value};

/// A piece of a message's content. Unknown fields of each are kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Unknown fields.
        extra: Map<String, Value>,
    },
    /// An image, by address or as a `data:` address.
    Image {
        /// The `image_url` object: `url`, and `detail` where given.
        image_url: Map<String, Value>,
        /// Unknown fields.
        extra: Map<String, Value>,
    },
    /// A file, by id or by its data.
    File {
        /// The `file` object: `file_id`, or `filename` and `file_data`.
        file: Map<String, Value>,
        /// Unknown fields.
        extra: Map<String, Value>,
    },
    /// What a model thought before it spoke.
    Thinking {
        /// The thought.
        thinking: String,
        /// The provider's seal on it, without which it may not be sent back.
        signature: Option<String>,
        /// Unknown fields.
        extra: Map<String, Value>,
    },
    /// A part of a type that we do not know: passed through.
    Other(Map<String, Value>),
}

impl Part {
    /// A text part.
    pub fn text_part(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            extra: Map::new(),
        }
    }

    /// The text of a text part.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether it is thinking, readable or not.
    pub fn is_thinking(&self) -> bool {
        match self {
            Self::Thinking { .. } => true,
            // Anthropic's form of a thought that nobody but the provider may read.
            Self::Other(map) => map
                .get("type")
                .is_some_and(|tag| tag == "redacted_thinking"),
            Self::Text { .. } | Self::Image { .. } | Self::File { .. } => false,
        }
    }

    /// Whether it shows the model nothing.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text { text, .. } => text.trim().is_empty(),
            Self::Thinking { .. } => true,
            Self::Image { .. } | Self::File { .. } => false,
            Self::Other(_) => self.is_thinking(),
        }
    }
}
