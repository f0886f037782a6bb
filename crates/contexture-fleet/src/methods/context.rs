//! `context.*`: the core's functions, for whoever is not written in Rust.

use std::sync::Arc;

use contexture::build::BuildInput;
use contexture::tokens::for_model;
use contexture::{ContextError, ContextManager, Message, Payload, Settings};
use serde_json::{Value, json};

use super::{Entry, answer, any_object, blocking, method, object};
use crate::fleet::Fleet;
use crate::{Answering, Call, RpcError, Who, Why};

pub(super) fn table() -> Vec<Entry> {
    let input = || any_object("as `ctx build` reads it");
    vec![
        method(
            "context.build",
            "Builds the request of a turn, with a receipt (spec 002)",
            Who::Owner,
            input(),
            any_object("as `ctx build --json` prints it"),
            build,
        ),
        method(
            "context.update",
            "What to append to a session that goes on (spec 002)",
            Who::Owner,
            input(),
            any_object("as `ctx update --json` prints it"),
            update,
        ),
        method(
            "context.estimateTokens",
            "Counts the tokens of a request",
            Who::Owner,
            input(),
            object(&[("tokens", json!({"type": "integer"}))]),
            estimate,
        ),
    ]
}

fn build(fleet: Arc<Fleet>, call: Call) -> Answering {
    Box::pin(blocking(move || {
        let (input, settings) = read(&fleet, &call.params)?;
        answer(ContextManager::new(settings)?.build_context(input)?)
    }))
}

fn update(fleet: Arc<Fleet>, call: Call) -> Answering {
    Box::pin(blocking(move || {
        let (input, settings) = read(&fleet, &call.params)?;
        answer(ContextManager::new(settings)?.compute_context_updates(input)?)
    }))
}

fn estimate(fleet: Arc<Fleet>, call: Call) -> Answering {
    Box::pin(blocking(move || {
        let (input, settings) = read(&fleet, &call.params)?;
        let logged = input.session_entries.into_iter();
        let logged = logged.filter_map(|entry| match entry.payload {
            Payload::Message { message } => Some(message),
            _ => None,
        });
        let messages: Vec<Message> = logged.chain(input.turn.messages).collect();
        let tokens = ContextManager::new(settings)?.estimate_tokens(&messages);
        Ok(json!({"tokens": tokens}))
    }))
}

/// Reads the input, and the settings for it: the project's, which count as the input's model does. The manager puts
/// what the input says of itself on top.
fn read(fleet: &Fleet, params: &Value) -> Result<(BuildInput, Settings), RpcError> {
    let input = BuildInput::read(params.to_string().as_bytes())?;
    let mut settings = fleet.settings.clone();
    if let Some(model) = &input.model {
        settings.tokenizer = for_model(Some(model));
    }
    Ok((input, settings))
}

impl From<ContextError> for RpcError {
    fn from(error: ContextError) -> Self {
        let why = match &error {
            ContextError::InvalidInput { .. } => Why::Invalid,
            ContextError::Overflow(_) => Why::TooLarge,
            _ => Why::Failed,
        };
        RpcError::new(why, error.to_string()).hint(error.hint())
    }
}
