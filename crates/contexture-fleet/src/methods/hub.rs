//! `hub.*`: the hub of this process, for workers in other processes of the owner's.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use contexture::pool::Name;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Entry, method, object, params, streaming, text};
use crate::fleet::Fleet;
use crate::hub::{Delivery, HubError, Sent};
use crate::{Answering, Call, RpcError, Who, Why};

/// What was handed to workers over the wire, and waits to be acknowledged.
#[derive(Default)]
pub(crate) struct Pending {
    next: u64,
    sent: HashMap<u64, Sent>,
}

/// The most that waits.
const MOST: usize = 10_000;
/// The longest that somebody waits for an answer.
const LONGEST: u64 = 60_000;

pub(super) fn table() -> Vec<Entry> {
    let module = || ("module", text("the module's name"));
    let said = || ("text", text("what is said, sealed"));
    vec![
        method(
            "hub.send",
            "Sends a text to a module",
            Who::Owner,
            object(&[
                ("to", text("to whom")),
                ("id", text("the same twice is one message")),
                said(),
            ]),
            object(&[]),
            send,
        ),
        method(
            "hub.ask",
            "Asks a module, and waits for its answer",
            Who::Owner,
            object(&[
                ("to", text("whom")),
                said(),
                ("patienceMs", json!({"type": "integer"})),
            ]),
            object(&[said()]),
            ask,
        ),
        method(
            "hub.beat",
            "Says that a module is here",
            Who::Owner,
            object(&[module(), ("card", text("what it says of itself, sealed"))]),
            object(&[]),
            beat,
        ),
        method(
            "hub.leave",
            "Says that a module goes",
            Who::Owner,
            object(&[module()]),
            object(&[]),
            leave,
        ),
        streaming(method(
            "hub.receive",
            "Opens a module's inbox: what comes, comes before the answer",
            Who::Owner,
            object(&[module()]),
            object(&[]),
            receive,
        )),
        method(
            "hub.ack",
            "Acknowledges what came",
            Who::Owner,
            object(&[("n", json!({"type": "integer"}))]),
            object(&[]),
            ack,
        ),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Send {
    to: String,
    id: String,
    text: String,
}

fn send(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Send { to, id, text } = params(&mut call)?;
        let hub = fleet.dispatcher.hub();
        hub.send(&Name::new(&to)?, &id, text).await?;
        Ok(json!({}))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Ask {
    to: String,
    text: String,
    patience_ms: u64,
}

fn ask(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Ask {
            to,
            text,
            patience_ms,
        } = params(&mut call)?;
        let patience = Duration::from_millis(patience_ms.min(LONGEST));
        let hub = fleet.dispatcher.hub();
        Ok(json!({"text": hub.ask(&Name::new(&to)?, text, patience).await?}))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Beat {
    module: String,
    card: String,
}

fn beat(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Beat { module, card } = params(&mut call)?;
        fleet
            .dispatcher
            .hub()
            .beat(&Name::new(&module)?, card)
            .await?;
        Ok(json!({}))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Module {
    module: String,
}

fn leave(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Module { module } = params(&mut call)?;
        fleet.dispatcher.hub().leave(&Name::new(&module)?).await?;
        Ok(json!({}))
    })
}

fn receive(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Module { module } = params(&mut call)?;
        let Some(updates) = call.updates.take() else {
            let what = "hub.receive needs somebody who takes what comes";
            return Err(RpcError::new(Why::Invalid, what).hint("ask for a stream"));
        };
        let mut inbox = fleet.dispatcher.hub().open(&Name::new(&module)?).await?;
        // What this stream handed over and nobody acknowledged comes again with the next one.
        let mut handed = Handed {
            fleet: Arc::clone(&fleet),
            numbers: Vec::new(),
        };
        loop {
            let delivery = tokio::select! {
                () = updates.closed() => return Ok(json!({})),
                delivery = inbox.next() => delivery,
            };
            let update = match delivery {
                None => return Ok(json!({})),
                Some(Delivery::Sent(sent)) => {
                    let text = sent.text.clone();
                    json!({"type": "sent", "n": handed.keep(sent)?, "text": text})
                }
                Some(Delivery::Told(text)) => json!({"type": "told", "text": text}),
                // Nobody asks a worker.
                Some(Delivery::Asked(_)) => continue,
            };
            if updates.send(update).await.is_err() {
                return Ok(json!({}));
            }
        }
    })
}

/// What a stream handed over.
struct Handed {
    fleet: Arc<Fleet>,
    numbers: Vec<u64>,
}

impl Handed {
    fn keep(&mut self, sent: Sent) -> Result<u64, RpcError> {
        let mut pending = lock(&self.fleet);
        if pending.sent.len() >= MOST {
            return Err(RpcError::new(
                Why::Conflict,
                "too much waits to be acknowledged",
            ));
        }
        pending.next += 1;
        let n = pending.next;
        pending.sent.insert(n, sent);
        self.numbers.retain(|n| pending.sent.contains_key(n));
        self.numbers.push(n);
        Ok(n)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        let mut pending = lock(&self.fleet);
        for n in &self.numbers {
            pending.sent.remove(n);
        }
    }
}

fn lock(fleet: &Fleet) -> std::sync::MutexGuard<'_, Pending> {
    let pending: &Mutex<Pending> = &fleet.pending;
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ack {
    n: u64,
}

fn ack(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Ack { n } = params(&mut call)?;
        let sent = lock(&fleet).sent.remove(&n);
        match sent {
            Some(sent) => {
                sent.ack().await?;
                Ok(json!({}))
            }
            None => Err(RpcError::new(Why::NotFound, "nothing of this number waits")),
        }
    })
}

impl From<HubError> for RpcError {
    fn from(error: HubError) -> Self {
        let why = match &error {
            HubError::TooLong { .. } => Why::TooLarge,
            HubError::Refused { .. } | HubError::Revoked { .. } => Why::NotAllowed,
            _ => Why::Failed,
        };
        Self::new(why, error.to_string()).hint(error.hint())
    }
}

/// What an error of the hub was before it went over the wire.
pub fn hub_error(error: &RpcError) -> HubError {
    let why = error.message.clone();
    match error.why {
        Why::TooLarge => HubError::TooLong {
            bytes: 0,
            most: crate::hub::MOST_BYTES,
        },
        Why::Failed => HubError::Away { why },
        _ => HubError::Refused { why },
    }
}

/// The parameters of a delivery, as the wire has it.
pub fn delivered(update: &Value) -> Option<(Option<u64>, String)> {
    let text = update["text"].as_str()?.to_owned();
    match update["type"].as_str()? {
        "sent" => Some((Some(update["n"].as_u64()?), text)),
        "told" => Some((None, text)),
        _ => None,
    }
}
