use serde::Serialize;
use serde_json::{Map, Value};

use super::held::Told;
use super::receipt::Receipt;
use super::session::Session;
use crate::message::openai;
use crate::prompt::Section;
use crate::{Entry, Message, Payload};

/// A request, as the session holds it. Looking at it costs nothing; the receipt is written when it
/// is asked for.
pub struct Built<'a> {
    session: &'a Session,
    before: usize,
    made_room: bool,
}

/// What a build comes to, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The request's tokens; an upper bound where the tokenizer is an estimate.
    pub input_tokens: usize,
    /// Its messages.
    pub message_count: usize,
    /// Messages of the history that are not in it for want of room.
    pub dropped_messages_count: usize,
}

impl<'a> Built<'a> {
    pub(super) fn new(session: &'a Session, before: usize, made_room: bool) -> Self {
        Self {
            session,
            before,
            made_room,
        }
    }

    /// The body's exact bytes.
    pub fn body(&self) -> &'a [u8] {
        self.session.body.bytes()
    }

    /// `sha256:` of the body's bytes.
    pub fn digest(&self) -> &'a str {
        self.session.body.digest()
    }

    /// The messages, in canonical form.
    pub fn messages(&self) -> impl Iterator<Item = &'a Message> + Clone {
        self.session
            .weave
            .items
            .iter()
            .map(|item| &*item.piece.message)
    }

    /// The tools, in the caller's order, as they are sent.
    pub fn tools(&self) -> &'a [Value] {
        &self.session.tools
    }

    /// The messages with the bytes of each.
    pub(crate) fn sized(&self) -> impl Iterator<Item = (&'a Message, usize)> {
        let items = self.session.weave.items.iter();
        items.map(|item| (&*item.piece.message, item.piece.bytes))
    }

    /// The stable sections, which are the first message where there are any.
    pub(crate) fn sections(&self) -> &'a [Section] {
        self.session.view.sections()
    }

    /// The model that the body names.
    pub fn model(&self) -> Option<&'a str> {
        self.session.head.model.as_deref()
    }

    /// The parameters as they were given.
    pub fn params(&self) -> &'a Map<String, Value> {
        &self.session.head.params
    }

    /// How many entries the log has, this build's own included.
    pub fn log_len(&self) -> usize {
        self.session.view.log().len()
    }

    /// Whether this build made room by compaction: never without a compactor, however much is dropped.
    pub fn compacted(&self) -> bool {
        let settings = &self.session.settings;
        self.made_room && settings.config.enable_compaction && !settings.compactors.is_empty()
    }

    /// Whether this build masked, summarised, dropped or cut anything.
    pub fn made_room(&self) -> bool {
        self.made_room
    }

    /// What the caller must log for the next build to see what this one saw, in order.
    pub fn entries_to_append(&self) -> impl Iterator<Item = &'a Entry> {
        self.session.view.log()[self.before..]
            .iter()
            .map(AsRef::as_ref)
    }

    /// The summary that this build made.
    pub fn summary_entry(&self) -> Option<&'a Entry> {
        self.last_compaction(|summary| !summary.is_empty())
    }

    /// The last entry of this build that drops messages without a summary.
    pub fn drop_entry(&self) -> Option<&'a Entry> {
        self.last_compaction(str::is_empty)
    }

    fn last_compaction(&self, wanted: impl Fn(&str) -> bool) -> Option<&'a Entry> {
        self.entries_to_append()
            .filter(|entry| match &entry.payload {
                Payload::CompactionSummary(compaction) => wanted(&compaction.summary),
                _ => false,
            })
            .last()
    }

    /// The numbers.
    pub fn stats(&self) -> Stats {
        Stats {
            input_tokens: self.session.tokens(),
            message_count: self.session.weave.items.len(),
            dropped_messages_count: self.session.view.covered_messages(),
        }
    }

    /// The tokens that this request and the one before it begin with, as the receipt has them.
    pub fn shared_prefix_tokens(&self) -> usize {
        self.session.shared_prefix()
    }

    /// The request, to be asked for its tokens; none where only the provider knows them.
    pub(crate) fn told(&self) -> Option<Told> {
        Told::of(self.session)
    }

    /// The account of the request.
    pub fn receipt(&self) -> Receipt {
        Receipt::of(self.session)
    }

    /// All of it, as `ctx build --json` prints it.
    pub fn to_result(&self) -> BuildResult {
        let tools = self.tools();
        BuildResult {
            model_messages: self.messages().map(openai::shown).collect(),
            model_tool_specs: (!tools.is_empty()).then(|| tools.to_vec()),
            compacted: self.compacted(),
            compaction_summary_entry: self.summary_entry().cloned(),
            drop_entry: self.drop_entry().cloned(),
            entries_to_append: self.entries_to_append().cloned().collect(),
            stats: self.stats(),
            receipt: self.receipt(),
        }
    }
}

/// Spec 002's `ContextBuildResult`, with the receipt.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildResult {
    /// The messages for the model.
    pub model_messages: Vec<Value>,
    /// The tools for the model, in the caller's order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_tool_specs: Option<Vec<Value>>,
    /// Whether anything was compacted.
    pub compacted: bool,
    /// The summary that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_summary_entry: Option<Entry>,
    /// The last entry that drops messages without a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_entry: Option<Entry>,
    /// What the caller must log.
    pub entries_to_append: Vec<Entry>,
    /// The numbers.
    pub stats: Stats,
    /// The account.
    pub receipt: Receipt,
}
