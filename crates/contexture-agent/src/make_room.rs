//! Making room before there is none left, because a person says so.

use contexture::{Payload, Turn};

use crate::work::blocking;
use crate::{Agent, AgentError, Cancel, Chat, Event, clock, ids};

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
    /// durable when this returns. When it is cancelled, no model is asked any more.
    pub fn compact(&self, chat: &mut Chat, cancel: &Cancel) -> Result<Compacted, AgentError> {
        if let Some(compactor) = &self.compactor {
            compactor.attach(cancel);
        }
        blocking(|| {
            chat.refresh()?;
            let tokens_before = tokens(chat)?;
            let turn = Turn {
                overflow: true,
                now: Some(clock::now()),
                ..Turn::default()
            };
            let prepared = chat.prepare(&turn);
            if let Some(compactor) = &self.compactor {
                let (calls, _) = compactor.take_calls();
                let records: Vec<Payload> = calls.into_iter().map(Payload::Custom).collect();
                chat.log_all(&ids::run_id(), &records)?;
            }
            Ok(Compacted {
                tokens_before,
                events: prepared?.events,
                tokens_after: tokens(chat)?,
            })
        })
    }
}

fn tokens(chat: &mut Chat) -> Result<usize, AgentError> {
    Ok(chat.session().current()?.stats().input_tokens)
}
