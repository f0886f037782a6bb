//! The daemon's hub, from another process of the owner's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::pool::Name;
use contexture_fleet::hub::{Doing, Hub, HubError, Inbox, Watch, inbox};
use contexture_fleet::{RpcError, Why, delivered, hub_error};
use contexture_server::{Client, ClientError, Fault};
use serde_json::{Value, json};

/// A hub that is reached through the daemon.
pub struct RemoteHub {
    client: Arc<Client>,
    since: Instant,
}

impl RemoteHub {
    /// The hub of this daemon.
    pub fn new(client: Client) -> Self {
        Self {
            client: Arc::new(client),
            since: Instant::now(),
        }
    }

    fn call(&self, method: &'static str, params: Value) -> Doing<'_, Value> {
        Box::pin(async move { self.client.call(method, params).await.map_err(failed) })
    }
}

impl Hub for RemoteHub {
    fn send<'a>(&'a self, to: &'a Name, id: &'a str, text: String) -> Doing<'a, ()> {
        Box::pin(async move {
            let said = json!({"to": to, "id": id, "text": text});
            self.call("hub.send", said).await.map(|_| ())
        })
    }

    fn ask<'a>(&'a self, to: &'a Name, text: String, patience: Duration) -> Doing<'a, String> {
        Box::pin(async move {
            let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
            let asked = json!({"to": to, "text": text, "patienceMs": patience_ms});
            let answer = self.call("hub.ask", asked).await?;
            let text = answer["text"].as_str();
            Ok(text.unwrap_or_default().to_owned())
        })
    }

    fn broadcast(&self, _: String) -> Doing<'_, ()> {
        Box::pin(async { Err(only_the_daemon()) })
    }

    fn open<'a>(&'a self, module: &'a Name) -> Doing<'a, Inbox> {
        Box::pin(async move {
            let (deliver, inbox) = inbox();
            let (client, module) = (Arc::clone(&self.client), module.clone());
            tokio::spawn(async move {
                let (updates, mut news) = tokio::sync::mpsc::unbounded_channel();
                let params = json!({"module": module});
                let receiving = client.stream("hub.receive", params, move |update| {
                    let _ = updates.send(update);
                });
                tokio::pin!(receiving);
                loop {
                    let update = tokio::select! {
                        biased;
                        () = deliver.closed() => return,
                        Some(update) = news.recv() => update,
                        // Another took the place, or the daemon has ended.
                        _ = &mut receiving => return,
                    };
                    let Some((n, text)) = delivered(&update) else {
                        continue;
                    };
                    let client = Arc::clone(&client);
                    let taken = match n {
                        None => deliver.tell(text).await,
                        Some(n) => {
                            let ack = move || -> Doing<'static, ()> {
                                Box::pin(async move {
                                    let acked = client.call("hub.ack", json!({"n": n})).await;
                                    acked.map(|_| ()).map_err(failed)
                                })
                            };
                            deliver.send(text, Box::new(ack)).await
                        }
                    };
                    if !taken {
                        return;
                    }
                }
            });
            Ok(inbox)
        })
    }

    fn beat<'a>(&'a self, module: &'a Name, card: String) -> Doing<'a, ()> {
        Box::pin(async move {
            let said = json!({"module": module, "card": card});
            self.call("hub.beat", said).await.map(|_| ())
        })
    }

    fn leave<'a>(&'a self, module: &'a Name) -> Doing<'a, ()> {
        Box::pin(async move {
            let said = json!({"module": module});
            self.call("hub.leave", said).await.map(|_| ())
        })
    }

    fn watch(&self) -> Doing<'_, Watch> {
        Box::pin(async { Err(only_the_daemon()) })
    }

    fn there_for(&self) -> Option<Duration> {
        Some(self.since.elapsed())
    }
}

fn only_the_daemon() -> HubError {
    HubError::Refused {
        why: "only the daemon does that".to_owned(),
    }
}

fn failed(error: ClientError) -> HubError {
    match error.why {
        Fault::Said(why) => hub_error(&RpcError::new(why, error.message)),
        Fault::Unauthorized => hub_error(&RpcError::new(Why::NotAllowed, error.message)),
        Fault::Refused | Fault::Unreachable | Fault::Broken => {
            HubError::Away { why: error.message }
        }
    }
}
