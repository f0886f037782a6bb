//! The daemon's hub, from another process of the owner's.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contexture::pool::Name;
use contexture_fleet::hub::{Deliver, Doing, Hub, HubError, Inbox, Watch, inbox};
use contexture_fleet::{RpcError, Why, delivered, hub_error};
use contexture_server::{Client, ClientError, Daemon, Fault};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::config::Config;
use crate::error::CliError;
use crate::state;

/// A hub that is reached through the daemon, also one that was started again. Clones are the same.
#[derive(Clone)]
pub struct RemoteHub {
    client: Arc<Mutex<Arc<Client>>>,
    /// Where the daemon says how to reach it.
    state: PathBuf,
    since: Instant,
}

/// How long to wait before the daemon is looked for again.
const WAIT: Duration = Duration::from_secs(1);

impl RemoteHub {
    /// The hub of this project's daemon.
    pub fn new(client: Client, config: &Config) -> Result<Self, CliError> {
        Ok(Self {
            client: Arc::new(Mutex::new(Arc::new(client))),
            state: state::folder(config)?.to_owned(),
            since: Instant::now(),
        })
    }

    fn client(&self) -> Arc<Client> {
        Arc::clone(&self.client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another daemon may be there by now, elsewhere and with another secret.
    fn look_again(&self) {
        if let Ok(Some(daemon)) = Daemon::find(&self.state)
            && let Ok(client) = Client::new(&daemon.url, &daemon.secret)
        {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(client);
        }
    }

    async fn call(&self, method: &'static str, params: Value) -> Result<Value, HubError> {
        let called = self.client().call(method, params).await;
        called.map_err(|error| {
            if !matches!(error.why, Fault::Said(_)) {
                self.look_again();
            }
            failed(error)
        })
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
            let (hub, module) = (self.clone(), module.clone());
            tokio::spawn(async move {
                // It ends by itself when another has taken the place.
                while !deliver.is_closed() && hub.receive(&deliver, &module).await.is_err() {
                    sleep(WAIT).await;
                    hub.look_again();
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

impl RemoteHub {
    /// Delivers what comes to a module, until nobody takes it or another opens its inbox.
    async fn receive(&self, deliver: &Deliver, module: &Name) -> Result<(), ClientError> {
        let client = self.client();
        let (updates, mut news) = mpsc::unbounded_channel();
        let receiving = client.stream("hub.receive", json!({"module": module}), move |update| {
            let _ = updates.send(update);
        });
        tokio::pin!(receiving);
        loop {
            let update = tokio::select! {
                biased;
                () = deliver.closed() => return Ok(()),
                Some(update) = news.recv() => update,
                ended = &mut receiving => return ended.map(|_| ()),
            };
            let taken = match delivered(&update) {
                None => continue,
                Some((None, text)) => deliver.tell(text).await,
                Some((Some(n), text)) => {
                    let client = Arc::clone(&client);
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
                return Ok(());
            }
        }
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
