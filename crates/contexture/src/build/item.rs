//! What a request is made of, priced.

use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;

use super::hidden;
use crate::message::{anthropic, openai, responses};
use crate::tokens::Tokenizer;
use crate::{Entry, Message, Payload, Role, Wire};

/// Why an item is in the request as it is, or why it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// As it was logged.
    Kept,
    /// As it was logged, because it may not leave.
    Pinned,
    /// Cut in the middle to fit.
    Truncated,
    /// Replaced by a mark.
    Masked,
    /// A summary of what it covers.
    Summary,
    /// Changed, or made, so that the request is valid.
    Repaired,
    /// Left out for room.
    Dropped,
    /// Left out because a summary stands for it.
    Summarised,
    /// Left out because it is there already.
    Duplicate,
    /// A tool result without its call.
    Orphan,
    /// Nothing in it.
    Empty,
    /// Left out because its owner said so.
    Filtered,
    /// Taken out.
    Redacted,
    /// Undone, or on another branch.
    Reverted,
}

impl Rule {
    /// The rule's name in the receipt.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Pinned => "pinned",
            Self::Truncated => "truncated",
            Self::Masked => "masked",
            Self::Summary => "summary",
            Self::Repaired => "repaired",
            Self::Dropped => "dropped",
            Self::Summarised => "summarised",
            Self::Duplicate => "duplicate",
            Self::Orphan => "orphan",
            Self::Empty => "empty",
            Self::Filtered => "filtered",
            Self::Redacted => "redacted",
            Self::Reverted => "reverted",
        }
    }
}

/// A message with its price. Shared: the same piece stands in many requests.
#[derive(Debug)]
pub(crate) struct Piece {
    pub message: Shown,
    pub tokens: usize,
    /// What it adds to the body, separator included; a bound where the form merges messages.
    pub bytes: usize,
    /// Its form on the wire, where that does not depend on its neighbours, or almost never does.
    pub wire: Vec<u8>,
    /// How many hidden characters were made visible in it.
    pub hidden: usize,
}

/// The message of a piece. Most are shown as they were logged, and then there is no copy.
#[derive(Debug)]
pub(crate) enum Shown {
    /// The message of this entry.
    Logged(Arc<Entry>),
    /// A message that the build made, or changed.
    Made(Message),
}

impl Deref for Shown {
    type Target = Message;

    fn deref(&self) -> &Message {
        match self {
            Self::Made(message) => message,
            Self::Logged(entry) => match &entry.payload {
                Payload::Message { message } => message,
                other => unreachable!("a {} is no message", other.type_name()),
            },
        }
    }
}

/// What a piece is to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The system side, at the front.
    System,
    /// System-side text that changed on the way: hints, volatile sections, later system messages.
    Note,
    /// A user's message.
    User,
    /// What the model said, without calls.
    Assistant,
    /// What the model said, with calls: opens a tool group.
    Call,
    /// A tool's result: belongs to the group before it.
    Result,
    /// A summary of a span.
    Summary,
}

/// Where an item comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The stable sections.
    Sections,
    /// An entry, by log position.
    Entry(usize),
    /// Made up for a call that got no answer; the log position of the call.
    Aborted(usize),
}

/// One message of the request.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub piece: Arc<Piece>,
    pub source: Source,
    pub rule: Rule,
    pub kind: Kind,
    /// Items of one unit stay or leave together.
    pub unit: usize,
    pub pinned: bool,
}

impl Item {
    pub(crate) fn position(&self) -> Option<usize> {
        match self.source {
            Source::Sections => None,
            Source::Entry(position) | Source::Aborted(position) => Some(position),
        }
    }

    /// What it adds to the message limit, which bounds the history: the system side, notes, summaries and answers that
    /// the build made up are not counted.
    pub(crate) fn counted(&self) -> usize {
        let is_history = matches!(
            self.kind,
            Kind::User | Kind::Assistant | Kind::Call | Kind::Result
        );
        usize::from(is_history && matches!(self.source, Source::Entry(_)))
    }

    /// Whether the two show a provider the same.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.piece.same(&other.piece)
    }
}

impl Piece {
    pub(crate) fn same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || self.message.shows_same(&other.message)
    }
}

/// Prices messages for one tokenizer and one form.
#[derive(Clone)]
pub(crate) struct Pricing {
    pub tokenizer: Arc<dyn Tokenizer>,
    pub wire: Wire,
    /// Whether what is hidden in tools' words is made visible: in all that goes to a model.
    pub reveals: bool,
}

impl Pricing {
    /// The piece of a message that the build made.
    pub(crate) fn piece(&self, message: Message) -> Arc<Piece> {
        self.priced(Shown::Made(message), 0)
    }

    /// A tool's result with nothing hidden in it, and how much was; nothing where nothing was, and
    /// for all that users and models say.
    pub(crate) fn revealed(&self, message: &Message) -> Option<(Message, usize)> {
        match self.reveals && message.role == Role::Tool {
            true => hidden::visible_message(message),
            false => None,
        }
    }

    pub(crate) fn priced(&self, message: Shown, hidden: usize) -> Arc<Piece> {
        let tokens = self.tokenizer.message(&message);
        let mut wire = Vec::new();
        if self.wire != Wire::Anthropic {
            // Room for the frame and a few escapes: a text rarely has to move as it is written.
            let text = message.text().len();
            wire.reserve(text + text / 16 + 128);
        }
        let bytes = match self.wire {
            Wire::OpenAi => {
                openai::write(&message, &mut wire);
                wire.len() + 1
            }
            Wire::Responses => {
                responses::write_alone(&message, &mut wire);
                match Kind::of(&message) {
                    // Its ids may be others in the body.
                    Kind::Call | Kind::Result => responses::size_bound(&message),
                    _ => wire.len() + 1,
                }
            }
            Wire::Anthropic => anthropic::size_bound(&message),
        };
        Arc::new(Piece {
            message,
            tokens,
            bytes,
            wire,
            hidden,
        })
    }
}

impl Kind {
    pub(crate) fn of(message: &Message) -> Self {
        match message.role {
            Role::System | Role::Developer => Self::Note,
            Role::User => Self::User,
            Role::Assistant if message.tool_calls.is_empty() => Self::Assistant,
            Role::Assistant => Self::Call,
            Role::Tool => Self::Result,
        }
    }
}
