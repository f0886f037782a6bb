//! The consumer on the server that takes a module's messages for one inbox.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, ReplayPolicy, pull};
use serde_json::{Value, json};

use super::link::{Failure, Link, away};
use crate::hub::HubError;

/// How many messages may be with a reader. They are in memory, and may be a megabyte each.
pub(super) const IN_HAND: usize = 64;
/// How long a request for messages lasts, and how often the server says meanwhile that it still knows of it.
const REQUEST: Duration = Duration::from_secs(20);
pub(super) const STILL_HERE: Duration = Duration::from_secs(2);
/// When a consumer goes that nobody uses. Its messages stay.
const UNUSED: Duration = Duration::from_secs(24 * 60 * 60);
/// The server's word that somebody else has a consumer for this module.
pub(super) const NOT_UNIQUE: u64 = 10_100;

/// The consumer of one inbox.
#[derive(Clone)]
pub(super) struct Consumer {
    pub(super) token: String,
    name: String,
    stream: String,
    /// Where what it asks for comes.
    pub(super) inbox: String,
}

impl Consumer {
    pub(super) fn new(link: &Link, token: String) -> Result<Self, HubError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(away)?;
        Ok(Self {
            name: format!("{token}-{:016x}", u64::from_le_bytes(random)),
            token,
            stream: link.subjects.stream(),
            inbox: link.client.new_inbox(),
        })
    }

    /// Makes it. Making it again is no error.
    pub(super) async fn make(&self, link: &Link) -> Result<(), Failure> {
        let filter = link.subjects.to(&self.token);
        let config = pull::Config {
            durable_name: Some(self.name.clone()),
            filter_subject: filter.clone(),
            deliver_policy: DeliverPolicy::All,
            replay_policy: ReplayPolicy::Instant,
            ack_policy: AckPolicy::Explicit,
            ack_wait: link.patience,
            max_deliver: -1,
            max_ack_pending: i64::try_from(IN_HAND).unwrap_or(i64::MAX),
            inactive_threshold: UNUSED,
            ..pull::Config::default()
        };
        let what = format!("CONSUMER.CREATE.{}.{}.{filter}", self.stream, self.name);
        let with = json!({"stream_name": self.stream, "config": config});
        link.call(what, &with).await.map(|_| ())
    }

    /// Makes it in the place of whoever is there.
    pub(super) async fn take_over(&self, link: &Link) -> Result<(), HubError> {
        match self.make(link).await {
            Ok(()) => Ok(()),
            Err(Failure::Said {
                code: NOT_UNIQUE,
                words,
                ..
            }) => {
                for name in self.others(link).await? {
                    self.remove(link, &name).await;
                }
                match self.make(link).await {
                    Ok(()) => Ok(()),
                    // The other one was faster: it learns soon that it is not alone.
                    Err(Failure::Said {
                        code: NOT_UNIQUE, ..
                    }) => Err(away(words)),
                    Err(failure) => Err(failure.into_error()),
                }
            }
            Err(Failure::Said { status: 404, .. }) => {
                link.prepare().await?;
                Err(away("the server had lost its stream"))
            }
            Err(failure) => Err(failure.into_error()),
        }
    }

    /// The other consumers of this module.
    async fn others(&self, link: &Link) -> Result<Vec<String>, HubError> {
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            let (what, from) = (
                format!("CONSUMER.NAMES.{}", self.stream),
                json!({"offset": offset}),
            );
            let page = link.call(what, &from).await.map_err(Failure::into_error)?;
            let some = page.get("consumers").and_then(Value::as_array);
            let some = some.map(Vec::as_slice).unwrap_or_default();
            offset += some.len();
            let ours = some.iter().filter_map(Value::as_str).filter(|name| {
                let module = name.rsplit_once('-').map(|(module, _)| module);
                module == Some(&self.token) && *name != self.name
            });
            names.extend(ours.map(str::to_owned));
            let total = page.get("total").and_then(Value::as_u64).unwrap_or(0);
            if some.is_empty() || offset as u64 >= total {
                return Ok(names);
            }
        }
    }

    /// Removes it. Its messages stay.
    pub(super) async fn end(&self, link: &Link) {
        self.remove(link, &self.name).await;
    }

    async fn remove(&self, link: &Link, name: &str) {
        let what = format!("CONSUMER.DELETE.{}.{name}", self.stream);
        if let Err(failure) = link.call(what, &json!({})).await {
            tracing::debug!(?failure, "a consumer was not removed");
        }
    }

    /// Asks for messages.
    pub(super) async fn request(&self, link: &Link) -> Result<(), async_nats::PublishError> {
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", self.stream, self.name);
        let with = json!({
            "batch": IN_HAND,
            "expires": nanoseconds(REQUEST),
            "idle_heartbeat": nanoseconds(STILL_HERE),
        });
        let (inbox, with) = (self.inbox.clone(), with.to_string().into());
        link.client.publish_with_reply(subject, inbox, with).await
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
