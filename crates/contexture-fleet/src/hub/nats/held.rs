//! The messages that are with a reader: until they are acknowledged, the server is told that they are in hand.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::AckKind;
use async_nats::{Request, RequestErrorKind, Subject};
use contexture::pool::Name;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::link::{ANSWER, Link, PATIENCE, away};
use crate::hub::recent::Recent;
use crate::hub::{HubError, Sent, taken_over};

/// How long a message that was dropped stays away, so that nobody spins.
const AGAIN: Duration = Duration::from_secs(1);

/// What one inbox has handed out.
pub(super) struct Held {
    link: Arc<Link>,
    module: Name,
    /// What was acknowledged lately. A server that was killed can forget an acknowledgement, and a sender that did
    /// not hear of its own message says it again: such a message is not handed out a second time.
    recent: Arc<Mutex<Recent>>,
    /// Where to acknowledge each message that is with the reader, by what it is known by.
    messages: Mutex<HashMap<String, Subject>>,
    over: AtomicBool,
    changed: Notify,
}

impl Held {
    pub(super) fn new(link: Arc<Link>, module: Name, recent: Arc<Mutex<Recent>>) -> Arc<Self> {
        Arc::new(Self {
            link,
            module,
            recent,
            messages: Mutex::default(),
            over: AtomicBool::new(false),
            changed: Notify::new(),
        })
    }

    /// Hands a message out, unless it is with the reader already or was acknowledged.
    pub(super) fn hand_out(
        self: &Arc<Self>,
        known_by: String,
        reply: Subject,
        text: String,
    ) -> Option<Sent> {
        {
            let mut messages = self.messages();
            if let Some(known) = messages.get_mut(&known_by) {
                // It came again because the server had not heard of it for too long.
                *known = reply;
                return None;
            }
            // Looked up behind the messages: whoever acknowledges one adds it here before it leaves there.
            if self.recent().has(&known_by, Instant::now()) {
                drop(messages);
                self.tell(reply, AckKind::Ack);
                return None;
            }
            messages.insert(known_by.clone(), reply);
        }
        let holding = Holding {
            held: Arc::clone(self),
            known_by,
        };
        Some(Sent {
            text,
            ack: Box::new(move || Box::pin(holding.acknowledge())),
        })
    }

    /// Tells the server that all of them are still in hand.
    pub(super) fn keep(&self) {
        if self.link.is_connected() {
            let replies: Vec<Subject> = self.messages().values().cloned().collect();
            for reply in replies {
                self.tell(reply, AckKind::Progress);
            }
        }
    }

    /// Somebody else reads: what is with this reader can no longer be acknowledged.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages().is_empty()
    }

    /// Waits until a message has left, or it is over.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn messages(&self) -> MutexGuard<'_, HashMap<String, Subject>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something of a message, in passing: the server acts by itself when it does not hear it.
    fn tell(&self, reply: Subject, what: AckKind) {
        let client = self.link.client.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { client.publish(reply, what.into()).await });
        }
    }
}

/// A message that is with the reader. Dropped, it comes again.
struct Holding {
    held: Arc<Held>,
    known_by: String,
}

impl Holding {
    async fn acknowledge(self) -> Result<(), HubError> {
        let acknowledged = self.held.link.again(PATIENCE, || self.try_acknowledge());
        acknowledged.await?;
        self.held.recent().add(&self.known_by, Instant::now());
        self.held.messages().remove(&self.known_by);
        Ok(())
    }

    async fn try_acknowledge(&self) -> Result<(), HubError> {
        if self.held.is_over() {
            return Err(taken_over(&self.held.module));
        }
        let Some(reply) = self.held.messages().get(&self.known_by).cloned() else {
            return Ok(());
        };
        // Not the client's own way: that one takes the word that nobody listens for an answer.
        let request = Request::new()
            .payload(AckKind::Ack.into())
            .timeout(Some(ANSWER));
        match self.held.link.client.send_request(reply, request).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                Err(away("the server does not know this inbox yet"))
            }
            Err(error) => Err(away(error)),
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let left = self.held.messages().remove(&self.known_by);
        if let Some(reply) = left
            && !self.held.is_over()
        {
            self.held.tell(reply, AckKind::Nak(Some(AGAIN)));
        }
        self.held.changed.notify_one();
    }
}
