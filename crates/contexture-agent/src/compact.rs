//! Making room before there is none left, because a person says so.

use contexture::Turn;

use crate::agent::blocking;
use crate::{Agent, AgentError, Chat, Event, clock};

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    /// The request's tokens before, by our count.
    pub tokens_before: usize,
    /// And after: the same where there was nothing to leave out.
    pub tokens_after: usize,
    /// What was done, as a run would tell it.
    pub events: Vec<Event>,
}

impl Agent {
    /// Compacts the conversation now, as if a provider had found it too long. What is decided is
    /// durable when this returns.
    pub fn compact(&self, chat: &mut Chat) -> Result<Compacted, AgentError> {
        blocking(|| {
            chat.refresh()?;
            let tokens_before = tokens(chat)?;
            let turn = Turn {
                overflow: true,
                now: Some(clock::now()),
                ..Turn::default()
            };
            let events = chat.prepare(&turn)?.events;
            Ok(Compacted {
                tokens_before,
                tokens_after: tokens(chat)?,
                events,
            })
        })
    }
}

fn tokens(chat: &mut Chat) -> Result<usize, AgentError> {
    Ok(chat.session().current()?.stats().input_tokens)
}
