//! The connection to a NATS server, which comes back by itself.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{ContextBuilder, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, stream};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::NatsOptions;
use super::subject::Subjects;
use super::url::Address;
use crate::hub::recent::REMEMBERED;
use crate::hub::{HubError, MOST_BYTES};

/// How long one thing may take before the hub counts as away.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How long the server may take for one answer. Shorter, so that what went down with a server is said again to
/// the next one.
pub(super) const ANSWER: Duration = Duration::from_secs(2);
/// How long we wait before we try again.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How many messages wait on a subscription: of what is not kept, slow readers miss the rest.
const WAITING: usize = 1_000;
/// How many messages a module may have waiting, as many as in a process, and how many there may be in all.
const MOST_OF_ONE: i64 = 10_000;
const MOST_OF_ALL: i64 = 1_000_000;

/// A connection.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) jetstream: jetstream::Context,
    pub(super) subjects: Subjects,
    /// How long a module may be silent, and a message be with a reader of whom nothing is heard.
    pub(super) patience: Duration,
    /// Since when the server is there.
    up: watch::Sender<Option<Instant>>,
    complaint: Complaint,
}

/// What the server last said that it forbids. It does not say to which request it belongs.
type Complaint = Arc<Mutex<Option<(Instant, String)>>>;

impl Link {
    /// Connects. Only the first time can fail: afterwards it connects again for ever.
    pub(super) async fn connect(options: NatsOptions) -> Result<Self, HubError> {
        let address = Address::parse(&options.url)?;
        let shown = address.shown();
        let connecting = Self::connect_to(options, address);
        match timeout(PATIENCE, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(HubError::Away {
                why: format!("{shown} did not answer within {} s", PATIENCE.as_secs()),
            }),
        }
    }

    async fn connect_to(options: NatsOptions, address: Address) -> Result<Self, HubError> {
        // The one that all of Contexture uses. An error says that there is one already.
        let _ = async_nats::rustls::crypto::ring::default_provider().install_default();
        let up = watch::Sender::new(None);
        let complaint = Complaint::default();
        let (told, heard) = (up.clone(), Arc::clone(&complaint));
        let mut settings = ConnectOptions::new()
            .name("contexture")
            .connection_timeout(PATIENCE / 2)
            .request_timeout(Some(ANSWER))
            .subscription_capacity(WAITING)
            // A server that hangs is noticed after three pings, before silent modules count as gone.
            .ping_interval((options.beat / 2).clamp(Duration::from_millis(100), PATIENCE))
            .reconnect_delay_callback(|attempts| {
                let doubled = Duration::from_millis(1 << attempts.min(10));
                doubled.min(LONGEST_PAUSE)
            })
            .event_callback(move |event| {
                notice(&event, &told, &heard);
                std::future::ready(())
            });
        if let Some(file) = &options.credentials {
            settings =
                settings
                    .credentials_file(file)
                    .await
                    .map_err(|error| HubError::Refused {
                        why: format!("the credentials cannot be read: {error}"),
                    })?;
        }
        let shown = address.shown();
        let client = address
            .identify(settings)
            .connect(address.server)
            .await
            .map_err(|error| refused(&shown, &error))?;
        let jetstream = ContextBuilder::new().timeout(ANSWER).build(client.clone());
        let link = Self {
            client,
            jetstream,
            subjects: Subjects(options.namespace),
            patience: options.patience,
            up,
            complaint,
        };
        let start = Instant::now();
        match link.prepare().await {
            Ok(()) => Ok(link),
            Err(error) => Err(link.explain(start, error)),
        }
    }

    /// Makes what is missing on the server: after it lost its memory, too.
    pub(super) async fn prepare(&self) -> Result<(), HubError> {
        self.ensure(&self.stream()).await?;
        self.ensure(&self.cards()).await
    }

    /// Makes a stream, or gives the one that is there the age that is meant now.
    async fn ensure(&self, stream: &stream::Config) -> Result<(), HubError> {
        let name = &stream.name;
        let made = match self.call(format!("STREAM.INFO.{name}"), &()).await {
            Ok(found) => {
                let age = found.pointer("/config/max_age").and_then(Value::as_u64);
                if age.map(Duration::from_nanos) == Some(stream.max_age) {
                    return Ok(());
                }
                self.call(format!("STREAM.UPDATE.{name}"), stream).await
            }
            Err(Failure::Said { status: 404, .. }) => {
                self.call(format!("STREAM.CREATE.{name}"), stream).await
            }
            Err(failure) => Err(failure),
        };
        made.map(|_| ()).map_err(Failure::into_error)
    }

    fn stream(&self) -> stream::Config {
        stream::Config {
            name: self.subjects.stream(),
            subjects: vec![self.subjects.sent()],
            retention: stream::RetentionPolicy::WorkQueue,
            storage: stream::StorageType::File,
            discard: stream::DiscardPolicy::New,
            discard_new_per_subject: true,
            max_messages: MOST_OF_ALL,
            max_messages_per_subject: MOST_OF_ONE,
            // With the headers, which are ours and short.
            max_message_size: i32::try_from(MOST_BYTES + 1_000).unwrap_or(i32::MAX),
            duplicate_window: REMEMBERED,
            num_replicas: 1,
            max_bytes: -1,
            max_consumers: -1,
            ..stream::Config::default()
        }
    }

    /// The stream behind the bucket of who is here. The client's own way of making one asks the server for what
    /// 2.9 does not say.
    fn cards(&self) -> stream::Config {
        stream::Config {
            name: format!("KV_{}", self.subjects.stream()),
            subjects: vec![self.subjects.card(">")],
            storage: stream::StorageType::File,
            discard: stream::DiscardPolicy::New,
            max_messages_per_subject: 1,
            max_age: self.patience,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            num_replicas: 1,
            max_messages: -1,
            max_bytes: -1,
            max_consumers: -1,
            ..stream::Config::default()
        }
    }

    /// Asks the server itself.
    pub(super) async fn call(
        &self,
        what: String,
        with: &(impl Serialize + Sync),
    ) -> Result<Value, Failure> {
        use jetstream::context::RequestErrorKind;
        let answer: Result<Value, _> = self.jetstream.request(what, with).await;
        let answer = answer.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => Failure::Nobody,
            _ => Failure::Lost(error.to_string()),
        })?;
        let Some(error) = answer.get("error") else {
            return Ok(answer);
        };
        let number = |name: &str| error.get(name).and_then(Value::as_u64).unwrap_or_default();
        let words = error.get("description").and_then(Value::as_str);
        Err(Failure::Said {
            status: number("code"),
            code: number("err_code"),
            words: words.unwrap_or("an error without a word").to_owned(),
        })
    }

    /// Publishes what the server keeps, and waits until it has it.
    pub(super) async fn publish(
        &self,
        subject: String,
        message: PublishMessage,
    ) -> Result<(), HubError> {
        let asked = self.jetstream.send_publish(subject, message).await;
        let known = match asked {
            Ok(acknowledgement) => acknowledgement.await,
            Err(error) => Err(error),
        };
        let Err(error) = known else {
            return Ok(());
        };
        match error.kind() {
            PublishErrorKind::StreamNotFound => {
                self.prepare().await?;
                Err(away("the server had lost its stream"))
            }
            PublishErrorKind::MaxPayloadExceeded => Err(HubError::Refused {
                why: format!("{error}: `max_payload` of the server is too small"),
            }),
            PublishErrorKind::Other => {
                let said = std::error::Error::source(&error)
                    .and_then(|source| source.downcast_ref::<jetstream::Error>());
                match said {
                    Some(said) if said.code() < 500 || is_full(said) => {
                        let why = said.to_string();
                        Err(HubError::Refused { why })
                    }
                    _ => Err(away(error)),
                }
            }
            _ => Err(away(error)),
        }
    }

    /// Tries again what may pass, until the patience ends.
    pub(super) async fn again<T, F>(
        &self,
        patience: Duration,
        mut attempt: impl FnMut() -> F + Send,
    ) -> Result<T, HubError>
    where
        F: Future<Output = Result<T, HubError>> + Send,
    {
        let start = Instant::now();
        let end = start + patience;
        let mut why = away("the connection is lost");
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let tried = timeout(left, async {
                self.connected().await;
                attempt().await
            });
            match tried.await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) if !error.may_pass() => return Err(error),
                Ok(Err(error)) => why = error,
                Err(_) => return Err(self.explain(start, why)),
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits until there is a connection. Whoever speaks without one only fills a queue.
    pub(super) async fn connected(&self) {
        while !self.is_connected() {
            sleep(PAUSE / 4).await;
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Changes with each connection that is lost or made.
    pub(super) fn changes(&self) -> watch::Receiver<Option<Instant>> {
        self.up.subscribe()
    }

    /// How long the server has been there.
    pub(super) fn there_for(&self) -> Option<Duration> {
        if !self.is_connected() {
            return None;
        }
        let mut since = Instant::now();
        // The client knows before we are told, and may not tell us at all when it has too much to tell.
        self.up.send_if_modified(|up| {
            since = *up.get_or_insert(since);
            false
        });
        Some(since.elapsed())
    }

    /// What does not answer may be forbidden: then the server has complained meanwhile.
    pub(super) fn explain(&self, start: Instant, error: HubError) -> HubError {
        let complaint = self
            .complaint
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*complaint {
            Some((at, words)) if error.may_pass() && *at >= start => {
                HubError::Refused { why: words.clone() }
            }
            _ => error,
        }
    }
}

/// Why the server did not do it.
#[derive(Debug)]
pub(super) enum Failure {
    /// It does not know the request.
    Nobody,
    /// The request or its answer was lost.
    Lost(String),
    /// It said no.
    Said {
        status: u64,
        code: u64,
        words: String,
    },
}

impl Failure {
    pub(super) fn into_error(self) -> HubError {
        match self {
            Self::Nobody => {
                away("the server runs without JetStream: `nats-server -js` runs with it")
            }
            Self::Lost(words) => away(words),
            Self::Said {
                status: 500..,
                words,
                ..
            } => away(words),
            Self::Said { words, .. } => HubError::Refused { why: words },
        }
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "errors are mapped to it as they are"
)]
pub(super) fn away(why: impl ToString) -> HubError {
    HubError::Away {
        why: why.to_string(),
    }
}

/// Whether there is no room: the server calls it a failure of its store.
fn is_full(said: &jetstream::Error) -> bool {
    said.error_code() == jetstream::ErrorCode::STREAM_STORE_FAILED
        && said.to_string().contains("maximum")
}

fn notice(event: &Event, up: &watch::Sender<Option<Instant>>, complaint: &Complaint) {
    match event {
        Event::Connected => {
            up.send_replace(Some(Instant::now()));
        }
        Event::Disconnected | Event::Closed => {
            up.send_replace(None);
        }
        Event::ServerError(error) => {
            let words = error.to_string();
            tracing::warn!(words, "the hub's server complains");
            if words.to_ascii_lowercase().contains("permissions violation") {
                let mut complaint = complaint.lock().unwrap_or_else(PoisonError::into_inner);
                *complaint = Some((Instant::now(), words));
            }
        }
        _ => {}
    }
}

fn refused(shown: &str, error: &async_nats::ConnectError) -> HubError {
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            HubError::Refused {
                why: format!(
                    "{shown} does not accept this user, password or token: {}",
                    error.kind()
                ),
            }
        }
        _ => away(format!("{shown}: {error}")),
    }
}
