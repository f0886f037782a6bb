//! A module's inbox: a consumer of its own on the server, which lives as long as the inbox does.
//!
//! The server lets only one consumer take from a module's messages. So whoever opens the inbox removes the
//! consumer that is there, and makes one with a name of its own: all that was not acknowledged comes to the new
//! one, in order, and an acknowledgement of the old one finds nobody. An inbox that has lost its consumer makes
//! it again; it learns then whether somebody else has one, and ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{HeaderMap, Message, StatusCode, Subscriber};
use contexture::pool::Name;
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::consumer::{Consumer, IN_HAND, NOT_UNIQUE, STILL_HERE};
use super::held::Held;
use super::link::{Failure, Link, PATIENCE, PAUSE, away};
use super::subject::token;
use crate::hub::recent::Recent;
use crate::hub::{Asked, Delivery, HubError, Inbox, MOST_BYTES};

/// How many questions and broadcasts wait in line with them.
const PASSING: usize = 64;
/// How long an inbox whose consumer was removed waits before it makes it again: longer than whoever removed it
/// takes to make another.
const REMOVED: Duration = Duration::from_millis(500);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// What an answer that is none says of itself.
pub(super) const ANSWER_HEADER: &str = "Ctx-Answer";

/// Opens an inbox, and takes over from whoever had it.
pub(super) async fn open(
    link: Arc<Link>,
    module: &Name,
    recent: Arc<Mutex<Recent>>,
) -> Result<(Inbox, Arc<Held>), HubError> {
    let consumer = Consumer::new(&link, token(module))?;
    let consumer = &consumer;
    // Before the consumer, on the same connection: when it is there, all of them are.
    let listening = link.again(PATIENCE, || Listening::start(&link, consumer));
    let listening = listening.await?;
    link.again(PATIENCE, || consumer.take_over(&link)).await?;
    // Room for one: what waits in here is with nobody.
    let (reader, receiver) = mpsc::channel(1);
    let held = Held::new(Arc::clone(&link), module.clone(), recent);
    let pump = Pump {
        consumer: consumer.clone(),
        held: Arc::clone(&held),
        queue: VecDeque::new(),
        passing: 0,
        requested: 0,
        heard: Instant::now(),
        repair: None,
        pause: PAUSE,
        link,
    };
    tokio::spawn(pump.run(listening, reader));
    Ok((Inbox(receiver), held))
}

/// What an inbox listens to. The client listens again by itself after an outage.
struct Listening {
    messages: Subscriber,
    questions: Subscriber,
    broadcasts: Subscriber,
}

impl Listening {
    async fn start(link: &Link, consumer: &Consumer) -> Result<Self, HubError> {
        let (client, subjects) = (&link.client, &link.subjects);
        // Whoever has just been taken over may listen for a moment more: one of the two is asked.
        let asked = client.queue_subscribe(subjects.ask(&consumer.token), "inbox".to_owned());
        Ok(Self {
            messages: client
                .subscribe(consumer.inbox.clone())
                .await
                .map_err(away)?,
            questions: asked.await.map_err(away)?,
            broadcasts: client.subscribe(subjects.everybody()).await.map_err(away)?,
        })
    }
}

/// Brings what comes to a reader until it has gone, or somebody else reads.
struct Pump {
    link: Arc<Link>,
    consumer: Consumer,
    held: Arc<Held>,
    queue: VecDeque<Delivery>,
    /// How many in the queue are not kept by the server.
    passing: usize,
    /// How many messages the server still owes us.
    requested: usize,
    /// When the server last said something.
    heard: Instant,
    /// When the consumer is to be made again.
    repair: Option<Instant>,
    pause: Duration,
}

impl Pump {
    async fn run(mut self, mut listening: Listening, reader: mpsc::Sender<Delivery>) {
        let mut changes = self.link.changes();
        let mut tick = interval((self.link.patience / 4).clamp(PAUSE / 2, STILL_HERE));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.request().await;
        while !self.held.is_over() {
            let repair = self.repair;
            tokio::select! {
                room = reader.reserve(), if !self.queue.is_empty() => match room {
                    Ok(room) => if let Some(delivery) = self.next_in_line() { room.send(delivery) },
                    Err(_) => break,
                },
                () = reader.closed() => break,
                () = self.held.changed() => {}
                Some(message) = listening.messages.next() => self.take(message).await,
                Some(message) = listening.questions.next(), if self.passing < PASSING => self.ask(&message),
                Some(message) = listening.broadcasts.next(), if self.passing < PASSING => {
                    self.pass(Delivery::Told(text(&message)));
                }
                _ = tick.tick() => {
                    self.held.keep();
                    // A server does not answer a request to a consumer that it does not know.
                    if self.heard.elapsed() > STILL_HERE * 2 {
                        self.repair().await;
                    }
                }
                Ok(()) = changes.changed() => self.repair().await,
                () = until(repair) => self.repair().await,
            }
        }
        drop(listening);
        drop(reader);
        self.finish().await;
    }

    /// The reader has gone. What it took with it can still be acknowledged, and nothing new comes.
    async fn finish(mut self) {
        self.queue.clear();
        while !self.held.is_over() && !self.held.is_empty() {
            tokio::select! {
                () = self.held.changed() => {}
                () = sleep(self.link.patience / 4) => self.held.keep(),
            }
        }
        if !self.held.is_over() {
            // So that its messages need not wait for the one who opens it next.
            self.consumer.end(&self.link).await;
        }
    }

    fn next_in_line(&mut self) -> Option<Delivery> {
        let delivery = self.queue.pop_front();
        if matches!(delivery, Some(Delivery::Asked(_) | Delivery::Told(_))) {
            self.passing -= 1;
        }
        delivery
    }

    fn pass(&mut self, delivery: Delivery) {
        self.passing += 1;
        self.queue.push_back(delivery);
    }

    fn ask(&mut self, message: &Message) {
        let Some(reply) = message.reply.clone() else {
            return;
        };
        let (answer, answered) = oneshot::channel::<String>();
        let text = text(message);
        let client = self.link.client.clone();
        tokio::spawn(async move {
            let none = |said: String| {
                let mut headers = HeaderMap::new();
                headers.insert(ANSWER_HEADER, said.as_str());
                headers
            };
            let sent = match answered.await {
                Ok(answer) if answer.len() <= MOST_BYTES => {
                    client.publish(reply, answer.into()).await
                }
                Ok(answer) => {
                    let headers = none(answer.len().to_string());
                    client.publish_with_headers(reply, headers, "".into()).await
                }
                Err(_) => {
                    let headers = none("none".to_owned());
                    client.publish_with_headers(reply, headers, "".into()).await
                }
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "an answer was not sent");
            }
        });
        self.pass(Delivery::Asked(Asked { text, answer }));
    }

    /// A message, or a word of the server on our request.
    async fn take(&mut self, message: Message) {
        self.heard = Instant::now();
        match message.status {
            None | Some(StatusCode::OK) => {
                self.pause = PAUSE;
                self.message(message);
                self.requested = self.requested.saturating_sub(1);
                if self.requested == 0 {
                    self.request().await;
                }
            }
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            // The request has ended: without a message, or because it lasted too long.
            Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => self.request().await,
            Some(status) => {
                let why = message.description.unwrap_or_default();
                tracing::debug!(%status, why, "no messages");
                let removed = why.to_ascii_lowercase().contains("deleted");
                self.repair_after(if removed { REMOVED } else { self.pause });
            }
        }
    }

    fn message(&mut self, message: Message) {
        let text = text(&message);
        let Some(reply) = message.reply else {
            return;
        };
        let id = message.headers.as_ref();
        let id = id.and_then(|headers| headers.get(async_nats::header::NATS_MESSAGE_ID));
        // What has no id was not sent by a hub.
        let known_by = id.map_or_else(|| reply.to_string(), |id| id.as_str().to_owned());
        if let Some(sent) = self.held.hand_out(known_by, reply, text) {
            self.queue.push_back(Delivery::Sent(sent));
        }
    }

    async fn request(&mut self) {
        self.heard = Instant::now();
        match self.consumer.request(&self.link).await {
            Ok(()) => self.requested = IN_HAND,
            Err(_) => self.repair_after(self.pause),
        }
    }

    fn repair_after(&mut self, pause: Duration) {
        self.repair = Some(Instant::now() + pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Makes the consumer again, if nobody else has one.
    async fn repair(&mut self) {
        (self.repair, self.heard) = (None, Instant::now());
        if !self.link.is_connected() {
            // The change to connected repairs it.
            return;
        }
        match self.consumer.make(&self.link).await {
            Ok(()) => self.request().await,
            Err(Failure::Said {
                code: NOT_UNIQUE, ..
            }) => self.held.end(),
            Err(Failure::Said { status: 404, .. }) => {
                let _ = self.link.prepare().await;
                self.repair_after(self.pause);
            }
            Err(failure) => {
                tracing::debug!(?failure, "the inbox is away");
                self.repair_after(self.pause);
            }
        }
    }
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// What a message says. No hub sends more than it takes: what is longer is nothing that can be read.
fn text(message: &Message) -> String {
    match message.payload.len() <= MOST_BYTES {
        true => String::from_utf8_lossy(&message.payload).into_owned(),
        false => String::new(),
    }
}
