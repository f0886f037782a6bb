//! Carries what modules tell each other (spec 003's hub): in this process, or over NATS.
//!
//! A module is whoever has a name and an inbox: an executor, or the desk that hands out tasks. Four things can be
//! said. What is *sent* to a module (the spec's `sendToModule`) is kept until the module took it, and comes again
//! until it did. What is *asked* has an answer, or the patience ends. What is *broadcast* reaches those who listen
//! now. A *beat* says that a module is here.
//!
//! A hub decides nothing and trusts nobody: what counts is decided at the desk, from what the log says.

mod error;
mod local;
mod nats;
mod recent;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use contexture::pool::Name;
use tokio::sync::{mpsc, oneshot};

pub use error::HubError;
pub use local::LocalHub;
pub use nats::{NatsHub, NatsOptions};

/// Something under way. Dropping it calls it off.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, HubError>> + Send + 'a>>;

/// The longest message, in bytes: what a NATS server takes unless it is told otherwise, less its headers.
pub const MOST_BYTES: usize = 1_000_000;

/// Between modules.
pub trait Hub: Send + Sync + 'static {
    /// Sends a text to a module. When it returns, the hub has it for good: the module gets it, now or when it
    /// comes, until it has acknowledged it. Two with the same id within minutes are one.
    fn send<'a>(&'a self, to: &'a Name, id: &'a str, text: String) -> Doing<'a, ()>;

    /// Asks a module, and waits this long for its answer.
    fn ask<'a>(&'a self, to: &'a Name, text: String, patience: Duration) -> Doing<'a, String>;

    /// Tells everybody who has an inbox now.
    fn broadcast(&self, text: String) -> Doing<'_, ()>;

    /// Opens a module's inbox. Whoever opens it again takes over: the earlier one ends, and what was not
    /// acknowledged comes to the new one.
    fn open<'a>(&'a self, module: &'a Name) -> Doing<'a, Inbox>;

    /// Says that a module is here. Its card is what it says of itself.
    fn beat<'a>(&'a self, module: &'a Name, card: String) -> Doing<'a, ()>;

    /// Says that a module goes.
    fn leave<'a>(&'a self, module: &'a Name) -> Doing<'a, ()>;

    /// Who is here, then each beat and each leave as it comes.
    fn watch(&self) -> Doing<'_, Watch>;

    /// How long the hub has been there without a break; nothing while it is away. Whoever did not beat while
    /// nobody could hear it is not gone.
    fn there_for(&self) -> Option<Duration>;
}

/// Whether a message can be so long.
fn fits(bytes: usize) -> Result<(), HubError> {
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(HubError::TooLong {
        bytes,
        most: MOST_BYTES,
    })
}

/// What whoever acknowledges too late is told: the message has gone to the one who reads now.
fn taken_over(module: &Name) -> HubError {
    HubError::Refused {
        why: format!("somebody else has opened the inbox of `{module}`"),
    }
}

/// What comes to a module.
pub struct Inbox(pub(crate) mpsc::Receiver<Delivery>);

impl Inbox {
    /// The next delivery; nothing when somebody else has opened the inbox, or the hub has ended.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.0.recv().await
    }

    /// One that is there already.
    pub fn try_next(&mut self) -> Option<Delivery> {
        self.0.try_recv().ok()
    }
}

/// An inbox, and what fills it: for hubs.
pub fn inbox() -> (Deliver, Inbox) {
    let (deliver, inbox) = mpsc::channel(64);
    (Deliver(deliver), Inbox(inbox))
}

/// Fills an inbox.
#[derive(Clone)]
pub struct Deliver(mpsc::Sender<Delivery>);

impl Deliver {
    /// Delivers what was sent. Whether somebody takes it.
    pub async fn send(&self, text: String, ack: Ack) -> bool {
        self.0
            .send(Delivery::Sent(Sent { text, ack }))
            .await
            .is_ok()
    }

    /// Delivers what everybody is told. Whether somebody takes it.
    pub async fn tell(&self, text: String) -> bool {
        self.0.send(Delivery::Told(text)).await.is_ok()
    }

    /// Whether nobody takes anything any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until nobody takes anything any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Acknowledges a message.
pub type Ack = Box<dyn FnOnce() -> Doing<'static, ()> + Send>;

/// Something that came.
#[derive(Debug)]
pub enum Delivery {
    /// It was sent.
    Sent(Sent),
    /// It was asked.
    Asked(Asked),
    /// It was told to everybody.
    Told(String),
}

/// A message that waits to be acknowledged. One that is dropped comes again.
pub struct Sent {
    /// What was sent.
    pub text: String,
    pub(crate) ack: Ack,
}

impl Sent {
    /// It was taken: it comes no more. Returns once the hub knows.
    pub async fn ack(self) -> Result<(), HubError> {
        (self.ack)().await
    }
}

impl std::fmt::Debug for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sent").field(&self.text).finish()
    }
}

/// A question.
#[derive(Debug)]
pub struct Asked {
    /// What was asked.
    pub text: String,
    pub(crate) answer: oneshot::Sender<String>,
}

impl Asked {
    /// Answers it, if somebody still waits.
    pub fn answer(self, text: String) {
        let _ = self.answer.send(text);
    }
}

/// Who is here.
pub struct Watch(pub(crate) mpsc::Receiver<Presence>);

impl Watch {
    /// The next word; nothing when the hub has ended.
    pub async fn next(&mut self) -> Option<Presence> {
        self.0.recv().await
    }

    /// One that is there already.
    pub fn try_next(&mut self) -> Option<Presence> {
        self.0.try_recv().ok()
    }
}

/// A word on who is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It beat.
    Here {
        /// Who.
        module: Name,
        /// What it says of itself.
        card: String,
    },
    /// It said that it goes.
    Left {
        /// Who.
        module: Name,
    },
}
