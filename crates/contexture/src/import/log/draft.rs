use crate::entry::{Compaction, SessionHeader, VERSION};
use crate::import::{Object, Source};
use crate::{EntryId, Message, Payload};

/// An entry before it has its place.
pub(in crate::import) struct Draft {
    /// The kind of line, as `kept` names it.
    pub kind: String,
    /// The source's id, and the field that held it.
    pub id: Option<(&'static str, String)>,
    pub parent: Parent,
    pub timestamp: String,
    pub payload: Payload,
    /// What our reader says of it.
    pub meta: Object,
    /// What is left of the line.
    pub rest: Object,
    /// Whether it is beside the conversation: what a helper said, on a line of its own.
    pub aside: bool,
}

/// What an entry follows.
pub(in crate::import) enum Parent {
    /// The conversation so far.
    Tip,
    /// Nothing: a conversation begins.
    Root,
    /// The entry there.
    At(usize),
    /// The entry that the source calls so; the field that says it.
    Named(&'static str, String),
}

impl Draft {
    /// At the end of the conversation, under an id that follows from the content.
    pub fn new(kind: impl Into<String>, payload: Payload) -> Self {
        Self {
            kind: kind.into(),
            id: None,
            parent: Parent::Tip,
            timestamp: String::new(),
            payload,
            meta: Object::new(),
            rest: Object::new(),
            aside: false,
        }
    }

    pub fn message(kind: impl Into<String>, message: Message) -> Self {
        Self::new(kind, Payload::Message { message })
    }

    /// A line that no entry type fits.
    pub fn custom(source: Source, kind: impl Into<String>, line: Object) -> Self {
        let payload = Object::from_iter([
            ("source".to_owned(), source.as_str().into()),
            ("line".to_owned(), line.into()),
        ]);
        Self::new(kind, Payload::Custom(payload))
    }

    /// An entry that no line has, where the log needs one.
    pub fn mark(source: Source, what: &str) -> Self {
        let payload = Object::from_iter([
            ("source".to_owned(), source.as_str().into()),
            ("mark".to_owned(), what.into()),
        ]);
        Self::new(what, Payload::Custom(payload))
    }

    /// The header that a log opens with.
    pub fn header(source: Source, cwd: Option<String>, extra: Object) -> Self {
        let payload = Payload::SessionHeader(SessionHeader {
            version: VERSION,
            chat_key: None,
            agent: Some(source.as_str().to_owned()),
            cwd,
            extra,
        });
        Self::new("session", payload)
    }
}

/// A summary by the tool, before it is known what it stands for.
pub(in crate::import) fn compaction(
    summary: String,
    before: Option<u64>,
    after: Option<u64>,
) -> Compaction {
    let tokens = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    Compaction {
        summary,
        first_kept_entry_id: EntryId::from(""),
        strategy: "model".to_owned(),
        tokens_before: tokens(before),
        tokens_after: tokens(after),
        first_covered_entry_id: None,
        refused: Vec::new(),
        kept_entry_ids: Vec::new(),
    }
}
