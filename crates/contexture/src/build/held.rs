//! What a model that runs in this process still holds: the last request and its own reply to it.
//!
//! Such a model reads of the next request only what does not begin as that did, so what it reuses is
//! known to the token. For all others the items that two requests begin with are the measure.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::Session;
use super::item::Piece;
use crate::tokens::Tokenizer;
use crate::{Entry, EntryId, Message, Payload, Role};

impl Session {
    /// The tokens that this request shares with the last one that went out.
    pub(super) fn shared_prefix(&self) -> usize {
        match self.prompt(None) {
            Some(ids) => self.held().map_or(0, |held| common(&held, &ids)),
            None if self.cache.has_tools(&self.tools) => {
                let behind = self.tokens_behind(self.cache.items);
                self.tokens().saturating_sub(behind)
            }
            None => 0,
        }
    }

    /// The ids of what the model reads for this request and, where there is one, for its reply.
    fn prompt(&self, reply: Option<&Message>) -> Option<Vec<u32>> {
        let items = self.weave.items.iter().map(|item| &*item.piece.message);
        let tokenizer = &self.settings.tokenizer;
        tokenizer.prompt(&mut items.chain(reply), &self.tools)
    }

    /// The ids of the last request and the reply to it.
    fn held(&self) -> Option<Vec<u32>> {
        let log = self.view.log();
        let at = self.cache.record?;
        let Payload::Request(record) = &log[at].payload else {
            return None;
        };
        // Another model holds nothing of what this one is told.
        if record.model != self.head.model {
            return None;
        }
        let reply = reply(log, at);
        let made_at = record.at.as_ref().and_then(|id| self.view.position(id));
        if let Some(made_at) = made_at {
            // Others wrote to the log before it was recorded: it was made without that.
            let then = log[..=made_at].iter().cloned();
            let mut then = Self::open(self.settings.clone(), then).ok()?;
            then.refresh().ok()?;
            return then.prompt(reply);
        }
        let shared = self.weave.items[..self.cache.items].iter();
        let pieces = shared.map(|item| &item.piece).chain(self.cache.lost());
        let messages = pieces.map(|piece| &*piece.message);
        let tokenizer = &self.settings.tokenizer;
        tokenizer.prompt(&mut messages.chain(reply), self.cache.tools())
    }
}

/// A request, kept to be asked for its tokens.
#[derive(Clone)]
pub(crate) struct Told {
    tokenizer: Arc<dyn Tokenizer>,
    pieces: Vec<Arc<Piece>>,
    tools: Arc<Vec<Value>>,
    ids: Vec<u32>,
}

impl Told {
    /// The request that the session holds; none where only the provider knows its tokens.
    pub(super) fn of(session: &Session) -> Option<Self> {
        let ids = session.prompt(None)?;
        let items = session.weave.items.iter();
        Some(Self {
            tokenizer: Arc::clone(&session.settings.tokenizer),
            pieces: items.map(|item| Arc::clone(&item.piece)).collect(),
            tools: Arc::clone(&session.tools),
            ids,
        })
    }

    /// The tokens that a model need not read again for this request, when the last that it was told is
    /// `before`, and `reply` is what it said to that.
    pub(crate) fn shared_with(&self, before: &Self, reply: Option<&Message>) -> usize {
        let messages = before.pieces.iter().map(|piece| &*piece.message);
        let tokenizer = &before.tokenizer;
        let held = tokenizer.prompt(&mut messages.chain(reply), &before.tools);
        held.map_or(0, |held| common(&held, &self.ids))
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Told").field(&self.ids).finish()
    }
}

/// What the model said to the request whose record stands at `record`: the message behind it, as it
/// was logged.
pub(crate) fn reply(log: &[Arc<Entry>], record: usize) -> Option<&Message> {
    let behind = log.get(record + 1)?;
    let follows = |parent: &EntryId| *parent == log[record].id;
    match &behind.payload {
        Payload::Message { message }
            if message.role == Role::Assistant && behind.parent_id.as_ref().is_none_or(follows) =>
        {
            Some(message)
        }
        _ => None,
    }
}

/// How many tokens the two begin with.
fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
