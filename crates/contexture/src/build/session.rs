//! The incremental session: the one place where a request is made.
//!
//! A fresh build is a session that is fed all at once, so there is no second way to build a request
//! that could differ from the first.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::account::apportion;
use super::assemble::{Body, Head, frame_bytes};
use super::cache::Cache;
use super::compact::Compactor;
use super::compact::ladder::Load;
use super::hidden;
use super::item::{Item, Pricing, Source};
use super::normalize::{Pieces, Touched, Weave};
use super::{Built, ContextConfig, Turn, join_sections};
use crate::entry::{Change, Payload, RequestRecord};
use crate::tokens::{Bpe, Tokenizer, count};
use crate::{ContextError, Entry, EntryId, Message, View, Wire};

/// How a session builds its requests.
#[derive(Clone)]
pub struct Settings {
    /// The limits.
    pub config: ContextConfig,
    /// What counts tokens.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// What writes summaries, tried in this order until one writes a summary that is accepted;
    /// without any, the rung is skipped. One that may fail is followed by one that does not:
    /// [`Extract`](super::Extract).
    pub compactors: Vec<Arc<dyn Compactor>>,
    /// The form of the body.
    pub wire: Wire,
    /// The model that the body names.
    pub model: Option<String>,
    /// The configured system prompt (`prompt.system`), for a call that brings none, over a log that has none of its own.
    pub system_prompt: Option<String>,
    /// Parameters of the request. In a chat body all go out as they are; in others, those that the
    /// form has a place for, which may be under another name.
    pub params: Map<String, Value>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config: ContextConfig::default(),
            tokenizer: Arc::new(Bpe::O200k),
            compactors: vec![Arc::new(super::Extract)],
            wire: Wire::default(),
            model: None,
            system_prompt: None,
            params: Map::new(),
        }
    }
}

/// A session's log and all that was worked out from it, so that a turn costs what the turn adds.
pub struct Session {
    pub(super) settings: Settings,
    pub(super) view: View,
    pub(super) weave: Weave,
    pub(super) body: Body,
    pub(super) head: Head,
    pub(super) cache: Cache,
    /// The tools as they are sent, with nothing hidden in them: those that `tool_tokens`,
    /// `frame_bytes` and the body are for.
    pub(super) tools: Arc<Vec<Value>>,
    /// How many hidden characters were made visible in each.
    pub(super) hidden: Vec<usize>,
    /// The same as they were logged.
    logged_tools: Arc<Vec<Value>>,
    pub(super) tool_tokens: usize,
    pub(super) frame_bytes: usize,
    pub(super) pricing: Pricing,
    pieces: Pieces,
    /// The view changed in a way that the weave has not followed yet.
    stale: bool,
    /// What the provider counted for a request that began with these many items.
    anchor: Option<(usize, usize)>,
}

/// An Anthropic body must say how long the answer may be.
const DEFAULT_MAX_TOKENS: usize = 4_096;

impl Session {
    /// An empty session.
    pub fn new(settings: Settings) -> Result<Self, ContextError> {
        settings.config.validate()?;
        let pricing = Pricing {
            tokenizer: Arc::clone(&settings.tokenizer),
            wire: settings.wire,
            reveals: true,
        };
        let head = Head {
            model: settings.model.clone(),
            params: settings.params.clone(),
            max_tokens: match settings.config.reserved_output {
                0 => DEFAULT_MAX_TOKENS,
                reserved => reserved,
            },
        };
        let frame_bytes = frame_bytes(settings.wire, &head, &[]);
        let tool_tokens = settings.tokenizer.tools(&[]);
        Ok(Self {
            settings,
            view: View::default(),
            weave: Weave::default(),
            body: Body::default(),
            head,
            cache: Cache::default(),
            tools: Arc::default(),
            hidden: Vec::new(),
            logged_tools: Arc::default(),
            tool_tokens,
            frame_bytes,
            pricing,
            pieces: Pieces::default(),
            stale: false,
            anchor: None,
        })
    }

    /// A session with this log.
    pub fn open<E: Into<Arc<Entry>>>(
        settings: Settings,
        entries: impl IntoIterator<Item = E>,
    ) -> Result<Self, ContextError> {
        let mut session = Self::new(settings)?;
        session.append(entries)?;
        Ok(session)
    }

    /// How it builds.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The log and its fold.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The log and its fold, when the session is over.
    pub fn into_view(self) -> View {
        self.view
    }

    /// Makes the next bodies as the one of this record was: for its model, with its parameters.
    pub fn address(&mut self, record: &RequestRecord) {
        let head = Head {
            model: record.model.clone(),
            params: match &record.params {
                Some(params) => params.clone(),
                None => self.head.params.clone(),
            },
            max_tokens: record.max_tokens.unwrap_or(self.head.max_tokens),
        };
        if self.head != head {
            self.head = head;
            self.frame_bytes = frame_bytes(self.settings.wire, &self.head, &self.tools);
            self.body.clear();
        }
    }

    /// The record of the request as it was last built: what it takes to make it again, beside the
    /// log.
    pub fn record(&self) -> RequestRecord {
        let wire = self.settings.wire;
        RequestRecord {
            digest: self.body.digest().to_owned(),
            model: self.head.model.clone(),
            input_tokens: self.tokens(),
            max_input_tokens: Some(self.settings.config.max_input_tokens),
            wire: Some(wire).filter(|wire| *wire != Wire::default()),
            params: Some(self.head.params.clone()).filter(|params| !params.is_empty()),
            max_tokens: (wire == Wire::Anthropic).then(|| self.head.anthropic().max_tokens()),
            ..RequestRecord::default()
        }
    }

    /// Adds entries that were logged.
    pub fn append<E: Into<Arc<Entry>>>(
        &mut self,
        entries: impl IntoIterator<Item = E>,
    ) -> Result<(), ContextError> {
        let entries = entries.into_iter();
        self.view.reserve(entries.size_hint().0);
        for entry in entries {
            let entry: Arc<Entry> = entry.into();
            let sent = match &entry.payload {
                // One that others wrote behind was counted without what they wrote; and another model
                // counts in another way.
                Payload::Request(record)
                    if record.at.is_some() || record.model != self.head.model =>
                {
                    Some(None)
                }
                Payload::Request(record) => Some(record.reported_input()),
                _ => None,
            };
            let before = self.view.log().len();
            if let Err(error) = self.push_unfolded(entry) {
                self.view.fold_up();
                return Err(error);
            }
            // One that came twice was sent once.
            if let Some(reported) = sent
                && self.view.log().len() > before
            {
                self.view.fold_up();
                self.sent(reported)?;
            }
        }
        self.view.fold_up();
        Ok(())
    }

    /// Builds the request for a turn. On an error nothing of the turn stays in the session.
    pub fn build(&mut self, turn: Turn) -> Result<Built<'_>, ContextError> {
        let before = self.view.log().len();
        match self.take_turn(turn) {
            Ok(compacted) => Ok(Built::new(self, before, compacted)),
            Err(error) => {
                self.rewind(before)?;
                Err(error)
            }
        }
    }

    /// Takes back every entry from log position `len` on.
    pub(super) fn rewind(&mut self, len: usize) -> Result<(), ContextError> {
        self.view.truncate(len);
        self.stale = true;
        self.refresh()
    }

    /// The request that the log stands for as it is, without compacting anything further.
    pub fn current(&mut self) -> Result<Built<'_>, ContextError> {
        self.refresh()?;
        self.write();
        let end = self.view.log().len();
        Ok(Built::new(self, end, false))
    }

    pub(super) fn push(&mut self, entry: impl Into<Arc<Entry>>) -> Result<(), ContextError> {
        let pushed = self.push_unfolded(entry);
        self.view.fold_up();
        pushed
    }

    /// The same for one of many: see [`View::push_unfolded`].
    fn push_unfolded(&mut self, entry: impl Into<Arc<Entry>>) -> Result<(), ContextError> {
        match self.view.push_unfolded(entry)? {
            Change::None => {}
            Change::Rewritten => self.stale = true,
            Change::Appended if self.stale => {}
            Change::Appended => {
                let last = self.view.live(self.view.live_len() - 1).next();
                if let Some(last) = last {
                    self.weave
                        .push(&self.view, last, &self.pricing, &mut self.pieces)?;
                }
                if let Some(Touched { at, gone, piece }) = self.weave.touched.take() {
                    self.body.cut(at);
                    let end = self.cache.items.max(at);
                    let items = &self.weave.items;
                    let shifted = items[at + 1..=gone].iter().map(|item| &item.piece);
                    let after = items[gone + 1..].iter().map(|item| &item.piece);
                    let old: Vec<_> = shifted
                        .chain([&piece])
                        .chain(after)
                        .take(end - at)
                        .collect();
                    self.cache.lose(at, old.into_iter());
                }
                self.cache.regain(&self.weave.items);
            }
        }
        Ok(())
    }

    pub(super) fn log(&mut self, now: &str, payload: Payload) -> Result<EntryId, ContextError> {
        let mut entry = Entry::derived(self.view.tail(), now, payload);
        entry.meta = Some(Map::from_iter([("by".to_owned(), json!("build"))]));
        let id = entry.id.clone();
        self.push(entry)?;
        Ok(id)
    }

    /// Weaves anew when the view changed behind the end, and finds out from where.
    pub(super) fn refresh(&mut self) -> Result<(), ContextError> {
        if !std::mem::take(&mut self.stale) {
            self.weave.settle(&self.pricing);
            return Ok(());
        }
        let weave = Weave::of(&self.view, &self.pricing, &mut self.pieces)?;
        let old = std::mem::replace(&mut self.weave, weave);
        let same = old
            .items
            .iter()
            .zip(&self.weave.items)
            .take_while(|(a, b)| a.same(b))
            .count();
        if same < old.items.len() || same < self.weave.items.len() {
            self.body.cut(same);
            let lost = old.items.get(same..self.cache.items).unwrap_or_default();
            self.cache.lose(same, lost.iter().map(|item| &item.piece));
            self.cache.regain(&self.weave.items);
        }
        if self.view.tools() != self.logged_tools.as_slice() {
            self.logged_tools = Arc::new(self.view.tools().to_vec());
            (self.tools, self.hidden) = hidden::visible_specs(&self.logged_tools);
            self.tool_tokens = self.settings.tokenizer.tools(&self.tools);
            self.frame_bytes = frame_bytes(self.settings.wire, &self.head, &self.tools);
            self.body.clear();
        }
        // What is no longer shown need not be kept at hand; undoing prices it again.
        let shown: HashSet<usize> = self.view.live(0).map(|l| l.position).collect();
        let first = self.view.first_runtime_init();
        self.pieces
            .retain(|(position, _), _| shown.contains(position) || first == Some(*position));
        Ok(())
    }

    /// A request went out: the next one is compared with it.
    fn sent(&mut self, reported: Option<usize>) -> Result<(), ContextError> {
        self.refresh()?;
        let items = self.weave.items.len();
        self.anchor = match reported {
            Some(reported) => Some((items, reported)),
            // What was counted before still stands at the front.
            None => self.anchored(),
        };
        let record = self.view.log().len() - 1;
        self.cache = Cache::sent(record, items, &self.tools, self.view.sections());
        Ok(())
    }

    pub(super) fn write(&mut self) {
        self.body.write(
            self.settings.wire,
            &self.head,
            &self.tools,
            &self.weave.items,
        );
    }

    /// The tokens of the request. For an estimate an upper bound: what the provider counted for a
    /// request that this one begins with, and the bound for the rest.
    pub(super) fn tokens(&self) -> usize {
        match self.measured() {
            Some((items, reported)) => reported.saturating_add(self.tokens_behind(items)),
            None => self
                .whole()
                .unwrap_or_else(|| self.weave.tokens + self.tool_tokens + self.framing()),
        }
    }

    /// The tokens of all messages from the item on.
    pub(super) fn tokens_behind(&self, item: usize) -> usize {
        let behind = self.weave.items[item..].iter();
        behind.map(|item| item.piece.tokens).sum()
    }

    /// The tokens of the request as its model reads it, where that is known.
    pub(super) fn whole(&self) -> Option<usize> {
        let items = self.weave.items.iter();
        let mut messages = items.map(|item| &*item.piece.message);
        self.settings.tokenizer.request(&mut messages, &self.tools)
    }

    /// The number of leading items whose tokens a provider counted, and that count; none where ours is exact.
    pub(super) fn measured(&self) -> Option<(usize, usize)> {
        let estimates = !self.settings.tokenizer.exact();
        self.anchored().filter(|_| estimates)
    }

    /// The anchor, while the request begins as the one did that was counted.
    fn anchored(&self) -> Option<(usize, usize)> {
        self.anchor
            .filter(|(items, _)| *items <= self.cache.items && self.cache.has_tools(&self.tools))
    }

    /// The first thing in which this request differs from the last, where that did not simply grow.
    pub(super) fn first_change(&self) -> Option<String> {
        if self.cache.lost_tools(&self.tools) {
            return Some("tools".to_owned());
        }
        if !self.cache.lost_items() {
            return None;
        }
        // The stable sections are one message, the first.
        if self.cache.items == 0
            && let Some(name) = self.cache.lost_section(self.view.sections())
        {
            return Some(format!("section:{name}"));
        }
        Some(match self.weave.items.get(self.cache.items) {
            Some(item) => self.origin(item),
            None => "end".to_owned(),
        })
    }

    /// What the request costs beside its messages and tools.
    pub(super) fn framing(&self) -> usize {
        let first = self.weave.items.first();
        let first = first.map(|item| &*item.piece.message);
        let tokenizer = self.settings.tokenizer.as_ref();
        count::frame(tokenizer, first, !self.view.tools().is_empty())
    }

    pub(super) fn load(&self) -> Load {
        Load {
            tokens: self.tokens(),
            bytes: self.weave.bytes + self.frame_bytes,
            messages: self.weave.counted,
        }
    }

    pub(super) fn limit(&self) -> Load {
        let config = &self.settings.config;
        Load {
            tokens: config.max_input_tokens - config.reserved_output,
            bytes: config.max_bytes.unwrap_or(usize::MAX),
            messages: config.max_history_messages.unwrap_or(usize::MAX),
        }
    }

    /// What an item's origin is called.
    pub(super) fn origin(&self, item: &Item) -> String {
        match item.source {
            Source::Sections => "sections".to_owned(),
            Source::Entry(position) | Source::Aborted(position) => {
                format!("entry:{}", self.view.log()[position].id)
            }
        }
    }

    /// The share that each stable section has of their message's tokens, in order: what adding it to those before it
    /// adds.
    pub(super) fn section_tokens(&self, whole: usize) -> Vec<usize> {
        let sections = self.view.sections();
        let mut before = 0;
        let mut out: Vec<usize> = (1..=sections.len())
            .map(|n| {
                let text = join_sections(&sections[..n]);
                let tokens = self.settings.tokenizer.message(&Message::system(text));
                let added = tokens.saturating_sub(before);
                before = before.max(tokens);
                added
            })
            .collect();
        apportion(out.iter_mut(), whole);
        out
    }
}
