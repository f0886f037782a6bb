//! The hub of many machines: a NATS server with JetStream.
//!
//! What is sent is in a stream on the server's disk until the one module it is for has acknowledged it. Who is
//! here is in a bucket whose cards fade. Questions and broadcasts pass through, and are not kept.

mod consumer;
mod held;
mod inbox;
mod link;
mod presence;
mod subject;
mod url;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::{Request, RequestErrorKind};
use contexture::pool::Name;
use tokio::time::{sleep, timeout};

use super::recent::{Recent, known_by};
use super::{Doing, Hub, HubError, Inbox, MOST_BYTES, Watch, fits};
use held::Held;
use inbox::ANSWER_HEADER;
use link::{Link, PATIENCE, PAUSE, away};
use subject::token;

/// Where the server is, and how modules keep time.
#[derive(Clone)]
pub struct NatsOptions {
    /// Its address: `nats://HOST:PORT` or `tls://HOST:PORT`, with a user and a password or with a token.
    pub url: String,
    /// What keeps this hub apart from others on the server: letters and digits.
    pub namespace: String,
    /// A file with credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// How often a module beats.
    pub beat: Duration,
    /// How long it may be silent. A message that is with a reader of whom nothing is heard comes again after as
    /// long.
    pub patience: Duration,
}

impl fmt::Debug for NatsOptions {
    /// Without the address, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsOptions")
            .field("namespace", &self.namespace)
            .field("credentials", &self.credentials)
            .field("beat", &self.beat)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// A hub on a NATS server. Clones share a connection.
#[derive(Clone)]
pub struct NatsHub {
    link: Arc<Link>,
    recent: Arc<Mutex<Recent>>,
    /// The inboxes of this process, so that one that is taken over ends at once.
    open: Arc<tokio::sync::Mutex<HashMap<Name, Arc<Held>>>>,
}

impl NatsHub {
    /// Connects. A server that is not there is an error now; later it is waited for.
    pub async fn connect(options: NatsOptions) -> Result<Self, HubError> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric();
        if options.namespace.is_empty()
            || options.namespace.len() > 64
            || !options.namespace.bytes().all(legal)
        {
            return Err(HubError::Refused {
                why: "a namespace is 1 to 64 letters and digits".to_owned(),
            });
        }
        Ok(Self {
            link: Arc::new(Link::connect(options).await?),
            recent: Arc::default(),
            open: Arc::default(),
        })
    }
}

impl Hub for NatsHub {
    fn send<'a>(&'a self, to: &'a Name, id: &'a str, text: String) -> Doing<'a, ()> {
        Box::pin(async move {
            fits(text.len())?;
            let subject = self.link.subjects.to(&token(to));
            let message = PublishMessage::build()
                .message_id(known_by(to, id))
                .payload(text.into());
            let sent = self.link.again(PATIENCE, || {
                self.link.publish(subject.clone(), message.clone())
            });
            sent.await
        })
    }

    fn ask<'a>(&'a self, to: &'a Name, text: String, patience: Duration) -> Doing<'a, String> {
        Box::pin(async move {
            fits(text.len())?;
            match timeout(patience, self.ask_until_asked(to, text)).await {
                Ok(answered) => answered,
                Err(_) if !self.link.is_connected() => Err(away("the connection is lost")),
                Err(_) => Err(no_answer(to)),
            }
        })
    }

    fn broadcast(&self, text: String) -> Doing<'_, ()> {
        Box::pin(async move {
            fits(text.len())?;
            let client = &self.link.client;
            let told = self.link.again(PATIENCE, || {
                let (subject, text) = (self.link.subjects.everybody(), text.clone().into());
                async move {
                    client.publish(subject, text).await.map_err(away)?;
                    client.flush().await.map_err(away)
                }
            });
            told.await
        })
    }

    fn open<'a>(&'a self, module: &'a Name) -> Doing<'a, Inbox> {
        Box::pin(async move {
            // One at a time: two of the same module would remove each other's consumer.
            let mut open = self.open.lock().await;
            open.retain(|_, held| Arc::strong_count(held) > 1);
            let (link, recent) = (Arc::clone(&self.link), Arc::clone(&self.recent));
            let (inbox, held) = inbox::open(link, module, recent).await?;
            if let Some(earlier) = open.insert(module.clone(), held) {
                earlier.end();
            }
            Ok(inbox)
        })
    }

    fn beat<'a>(&'a self, module: &'a Name, card: String) -> Doing<'a, ()> {
        Box::pin(async move {
            fits(card.len())?;
            presence::beat(&self.link, module, &card).await
        })
    }

    fn leave<'a>(&'a self, module: &'a Name) -> Doing<'a, ()> {
        Box::pin(presence::leave(&self.link, module))
    }

    fn watch(&self) -> Doing<'_, Watch> {
        Box::pin(presence::watch(Arc::clone(&self.link)))
    }

    fn there_for(&self) -> Option<Duration> {
        self.link.there_for()
    }
}

impl NatsHub {
    /// Asks until somebody is there to be asked, and waits for the answer for ever.
    async fn ask_until_asked(&self, to: &Name, text: String) -> Result<String, HubError> {
        let subject = self.link.subjects.ask(&token(to));
        loop {
            self.link.connected().await;
            let request = Request::new()
                .payload(text.clone().into())
                .inbox(self.link.client.new_inbox())
                .timeout(None);
            let asked = self.link.client.send_request(subject.clone(), request);
            let answer = match asked.await {
                Ok(answer) => answer,
                Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                    sleep(PAUSE / 2).await;
                    continue;
                }
                Err(error) => return Err(away(error)),
            };
            let none = answer.headers.as_ref();
            return match none.and_then(|headers| headers.get(ANSWER_HEADER)) {
                None => Ok(String::from_utf8_lossy(&answer.payload).into_owned()),
                Some(none) => Err(match none.as_str().parse() {
                    Ok(bytes) => HubError::TooLong {
                        bytes,
                        most: MOST_BYTES,
                    },
                    Err(_) => no_answer(to),
                }),
            };
        }
    }
}

fn no_answer(module: &Name) -> HubError {
    HubError::NoAnswer {
        module: module.to_string(),
    }
}
