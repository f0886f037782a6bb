//! A hub to test, and what the tests say to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use contexture::pool::Name;
use contexture_fleet::hub::{
    Asked, Delivery, Hub, Inbox, LocalHub, NatsHub, NatsOptions, Presence, Sent, Watch,
};
use tokio::time::timeout;

/// How long something that must come may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(20);
/// How long we listen for what must not come.
pub const A_WHILE: Duration = Duration::from_millis(400);

/// Where a hub is. Each one it gives is another handle to the same: on NATS, another connection.
pub enum Home {
    Local(LocalHub),
    Nats(NatsOptions),
}

impl Home {
    pub fn local() -> Self {
        Self::Local(LocalHub::default())
    }

    pub fn nats(url: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self::Nats(options(
            url,
            &format!("{:04x}", NEXT.fetch_add(1, Ordering::Relaxed)),
        ))
    }

    pub async fn hub(&self) -> Arc<dyn Hub> {
        match self {
            Self::Local(hub) => Arc::new(hub.clone()),
            Self::Nats(options) => Arc::new(NatsHub::connect(options.clone()).await.unwrap()),
        }
    }
}

pub fn options(url: &str, namespace: &str) -> NatsOptions {
    NatsOptions {
        url: url.to_owned(),
        namespace: namespace.to_owned(),
        credentials: None,
        beat: Duration::from_millis(500),
        patience: Duration::from_secs(2),
    }
}

pub fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

pub async fn next(inbox: &mut Inbox) -> Delivery {
    timeout(SOON, inbox.next())
        .await
        .expect("something comes")
        .expect("the inbox is open")
}

pub async fn sent(inbox: &mut Inbox) -> Sent {
    match next(inbox).await {
        Delivery::Sent(sent) => sent,
        other => panic!("{other:?}"),
    }
}

/// Takes the next message, acknowledges it, and gives its text.
pub async fn taken(inbox: &mut Inbox) -> String {
    let sent = sent(inbox).await;
    let text = sent.text.clone();
    sent.ack().await.unwrap();
    text
}

pub async fn asked(inbox: &mut Inbox) -> Asked {
    match next(inbox).await {
        Delivery::Asked(asked) => asked,
        other => panic!("{other:?}"),
    }
}

pub async fn told(inbox: &mut Inbox) -> String {
    match next(inbox).await {
        Delivery::Told(text) => text,
        other => panic!("{other:?}"),
    }
}

pub async fn silent(inbox: &mut Inbox) {
    if let Ok(delivery) = timeout(A_WHILE, inbox.next()).await {
        panic!("{delivery:?}");
    }
}

/// Reads an inbox to its end. What was on its way to it may still come.
pub async fn ended(inbox: &mut Inbox) {
    while timeout(SOON, inbox.next())
        .await
        .expect("the inbox ends")
        .is_some()
    {}
}

pub async fn word(watch: &mut Watch) -> Presence {
    timeout(SOON, watch.next())
        .await
        .expect("a word comes")
        .expect("the hub is there")
}

pub fn here(module: &str, card: &str) -> Presence {
    Presence::Here {
        module: name(module),
        card: card.to_owned(),
    }
}

pub fn left(module: &str) -> Presence {
    Presence::Left {
        module: name(module),
    }
}
