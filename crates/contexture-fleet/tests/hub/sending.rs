//! The promises on what is sent.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use contexture_fleet::hub::HubError;
use tokio::time::timeout;

use crate::hub::home::{A_WHILE, Home, ended, name, sent, silent, taken};

pub async fn to_one(home: Home) {
    let (hub, other) = (home.hub().await, home.hub().await);
    let mut a = hub.open(&name("a")).await.unwrap();
    let mut b = other.open(&name("b")).await.unwrap();
    other.send(&name("a"), "1", "for a".into()).await.unwrap();
    assert_eq!(taken(&mut a).await, "for a");
    silent(&mut b).await;
    assert!(a.try_next().is_none());
}

pub async fn kept(home: Home) {
    let hub = home.hub().await;
    for n in 0..3 {
        let text = format!("{n}");
        hub.send(&name("late"), &text, text.clone()).await.unwrap();
    }
    drop(hub);
    let hub = home.hub().await;
    let mut inbox = hub.open(&name("late")).await.unwrap();
    for n in 0..3 {
        assert_eq!(taken(&mut inbox).await, n.to_string());
    }
}

pub async fn again(home: Home) {
    let hub = home.hub().await;
    let mut inbox = hub.open(&name("a")).await.unwrap();
    hub.send(&name("a"), "1", "again".into()).await.unwrap();
    let start = Instant::now();
    for _ in 0..2 {
        let dropped = sent(&mut inbox).await;
        assert_eq!(dropped.text, "again");
    }
    assert!(start.elapsed() > Duration::from_millis(500), "it spins");
    assert_eq!(taken(&mut inbox).await, "again");
    // Longer than the time after which it would come again.
    assert!(timeout(Duration::from_secs(3), inbox.next()).await.is_err());
    drop(inbox);
    let mut inbox = hub.open(&name("a")).await.unwrap();
    silent(&mut inbox).await;
}

pub async fn held(home: Home) {
    let hub = home.hub().await;
    let mut inbox = hub.open(&name("a")).await.unwrap();
    hub.send(&name("a"), "1", "long work".into()).await.unwrap();
    let work = sent(&mut inbox).await;
    hub.send(&name("a"), "2", "next".into()).await.unwrap();
    assert_eq!(taken(&mut inbox).await, "next");
    // Longer than a reader may be silent.
    assert!(timeout(Duration::from_secs(5), inbox.next()).await.is_err());
    work.ack().await.unwrap();
    assert!(timeout(Duration::from_secs(3), inbox.next()).await.is_err());
}

pub async fn same_id(home: Home) {
    let (hub, other) = (home.hub().await, home.hub().await);
    let mut a = hub.open(&name("a")).await.unwrap();
    let mut b = hub.open(&name("b")).await.unwrap();
    hub.send(&name("a"), "id", "first".into()).await.unwrap();
    other.send(&name("a"), "id", "second".into()).await.unwrap();
    assert_eq!(taken(&mut a).await, "first");
    // Also when the first has been taken already, and not for another module.
    hub.send(&name("a"), "id", "third".into()).await.unwrap();
    hub.send(&name("b"), "id", "for b".into()).await.unwrap();
    assert_eq!(taken(&mut b).await, "for b");
    silent(&mut a).await;
}

pub async fn in_order(home: Home) {
    let hub = home.hub().await;
    let mut inbox = hub.open(&name("a")).await.unwrap();
    let sender = home.hub().await;
    let sending = tokio::spawn(async move {
        for n in 0..200 {
            let text = n.to_string();
            sender.send(&name("a"), &text, text.clone()).await.unwrap();
        }
    });
    for n in 0..200 {
        assert_eq!(taken(&mut inbox).await, n.to_string());
    }
    sending.await.unwrap();
}

pub async fn take_over(home: Home) {
    let (hub, other) = (home.hub().await, home.hub().await);
    for n in 0..10 {
        let text = n.to_string();
        hub.send(&name("a"), &text, text.clone()).await.unwrap();
    }
    let mut first = hub.open(&name("a")).await.unwrap();
    assert_eq!(taken(&mut first).await, "0");
    let held = [sent(&mut first).await, sent(&mut first).await];
    // By the same process, then by another.
    for hub in [&hub, &other] {
        let mut second = hub.open(&name("a")).await.unwrap();
        ended(&mut first).await;
        let one = sent(&mut second).await;
        assert_eq!(one.text, "1");
        drop(one);
        first = second;
    }
    drop(held);
    let start = Instant::now();
    let mut third = other.open(&name("a")).await.unwrap();
    for n in 1..10 {
        assert_eq!(taken(&mut third).await, n.to_string());
    }
    // At once, and not only when the server gave up on the earlier one.
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    silent(&mut third).await;
    hub.send(&name("a"), "x", "x".into()).await.unwrap();
    assert_eq!(taken(&mut third).await, "x");
}

pub async fn fenced(home: Home) {
    let (hub, other) = (home.hub().await, home.hub().await);
    let mut first = hub.open(&name("a")).await.unwrap();
    hub.send(&name("a"), "1", "one".into()).await.unwrap();
    let late = sent(&mut first).await;
    let mut second = other.open(&name("a")).await.unwrap();
    ended(&mut first).await;
    let error = late.ack().await.unwrap_err();
    assert!(
        matches!(&error, HubError::Refused { why } if why.contains("`a`")),
        "{error:?}"
    );
    assert_eq!(taken(&mut second).await, "one");
    silent(&mut second).await;
}

pub async fn closed(home: Home) {
    let (hub, other) = (home.hub().await, home.hub().await);
    let mut first = hub.open(&name("a")).await.unwrap();
    for text in ["1", "2", "3"] {
        hub.send(&name("a"), text, text.into()).await.unwrap();
    }
    let held = sent(&mut first).await;
    drop(first);
    // What a reader took with it can still be acknowledged.
    tokio::time::sleep(A_WHILE).await;
    held.ack().await.unwrap();
    let mut second = other.open(&name("a")).await.unwrap();
    assert_eq!(taken(&mut second).await, "2");
    assert_eq!(taken(&mut second).await, "3");
    silent(&mut second).await;
}

pub async fn full(home: Home) {
    let hub = home.hub().await;
    let mut senders = Vec::new();
    for s in 0..20 {
        let hub = hub.clone();
        senders.push(tokio::spawn(async move {
            for n in 0..500 {
                let text = format!("{s}-{n}");
                hub.send(&name("full"), &text, text.clone()).await.unwrap();
            }
        }));
    }
    for sender in senders {
        sender.await.unwrap();
    }
    let error = hub
        .send(&name("full"), "more", "more".into())
        .await
        .unwrap_err();
    assert!(matches!(error, HubError::Refused { .. }), "{error:?}");
    hub.send(&name("other"), "1", "1".into()).await.unwrap();
    let mut inbox = hub.open(&name("full")).await.unwrap();
    for _ in 0..100 {
        taken(&mut inbox).await;
    }
    hub.send(&name("full"), "more", "more".into())
        .await
        .unwrap();
}

pub async fn many(home: Home) {
    let mut readers = Vec::new();
    for m in 0..5 {
        let hub = home.hub().await;
        let mut inbox = hub.open(&name(&format!("m{m}"))).await.unwrap();
        readers.push(tokio::spawn(async move {
            let mut texts = Vec::new();
            for n in 0..200 {
                // Now and then one is dropped, and comes again.
                if n % 50 == 7 {
                    drop(sent(&mut inbox).await);
                }
                texts.push(taken(&mut inbox).await);
            }
            if let Ok(more) = timeout(Duration::from_millis(1_500), inbox.next()).await {
                panic!("{more:?}");
            }
            texts
        }));
    }
    let mut senders = Vec::new();
    for s in 0..10 {
        let hub = home.hub().await;
        senders.push(tokio::spawn(async move {
            for n in 0..100 {
                let (to, text) = (name(&format!("m{}", n % 5)), format!("{s}-{n}"));
                hub.send(&to, &text, text.clone()).await.unwrap();
            }
        }));
    }
    for sender in senders {
        sender.await.unwrap();
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (m, reader) in readers.into_iter().enumerate() {
        for text in reader.await.unwrap() {
            let (_, n) = text.split_once('-').unwrap();
            assert_eq!(n.parse::<usize>().unwrap() % 5, m);
            *seen.entry(text).or_default() += 1;
        }
    }
    assert_eq!(seen.len(), 1_000);
    assert!(seen.values().all(|&times| times == 1));
}
