//! Fault F12: the broker goes away and comes back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use contexture_fleet::hub::{Delivery, Hub, HubError};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::hub::home::{Home, SOON, asked, here, left, name, taken, told, word};
use crate::nats_server::NatsServer;

/// Says it until the hub has it, as whoever may not lose it does.
async fn insist(hub: &dyn Hub, to: &str, text: &str) {
    loop {
        match hub.send(&name(to), text, text.to_owned()).await {
            Ok(()) => return,
            Err(error) => assert!(error.may_pass(), "{error:?}"),
        }
    }
}

// needs: nats
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_again_and_again_loses_no_message_and_none_counts_twice() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    let home = Home::nats(&server.url());
    // How often each message was acknowledged. One that came and whose acknowledgement got no answer stays at zero: the
    // server may have acted on it before it was killed, and then it rightly does not come again.
    let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let hub = home.hub().await;
    let mut inbox = hub.open(&name("a")).await.unwrap();
    let seen = Arc::clone(&counts);
    let reading = tokio::spawn(async move {
        let mut acknowledging = JoinSet::new();
        // It ends when nothing has come for longer than anything takes to come again.
        while let Ok(delivery) = timeout(Duration::from_secs(8), inbox.next()).await {
            let Some(Delivery::Sent(sent)) = delivery else {
                panic!("{delivery:?}");
            };
            let seen = Arc::clone(&seen);
            seen.lock().unwrap().entry(sent.text.clone()).or_default();
            acknowledging.spawn(async move {
                let text = sent.text.clone();
                match sent.ack().await {
                    Ok(()) => *seen.lock().unwrap().entry(text).or_default() += 1,
                    Err(error) => assert!(error.may_pass(), "{error:?}"),
                }
            });
        }
        acknowledging.join_all().await;
    });
    let mut sending = JoinSet::new();
    for s in 0..10 {
        let hub = home.hub().await;
        sending.spawn(async move {
            for n in 0..100 {
                insist(&*hub, "a", &format!("{s}-{n}")).await;
            }
        });
    }
    for after in [100, 300, 500, 700, 900] {
        while counts.lock().unwrap().len() < after {
            sleep(Duration::from_millis(1)).await;
        }
        server.stop();
        sleep(Duration::from_millis(300)).await;
        server.restart();
    }
    timeout(SOON * 2, sending.join_all()).await.unwrap();
    reading.await.unwrap();
    let counts = counts.lock().unwrap();
    assert_eq!(counts.len(), 1_000);
    assert!(counts.values().all(|&times| times <= 1), "{counts:?}");
    let unanswered = counts.values().filter(|&&times| times == 0).count();
    assert!(
        unanswered <= 5 * 64,
        "{unanswered} acknowledgements were not answered"
    );
}

// needs: nats
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_all_goes_on_without_help() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    goes_on(&server, || {
        server.stop();
    })
    .await;
}

// needs: nats
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_broker_lost_its_disk_all_goes_on_without_help() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    goes_on(&server, || {
        server.stop();
        server.forget();
    })
    .await;
}

async fn goes_on(server: &NatsServer, stop: impl Fn()) {
    let home = Home::nats(&server.url());
    let (hub, other) = (home.hub().await, home.hub().await);
    let mut inbox = hub.open(&name("a")).await.unwrap();
    let mut watch = hub.watch().await.unwrap();
    other.beat(&name("a"), "before".into()).await.unwrap();
    assert_eq!(word(&mut watch).await, here("a", "before"));
    other.send(&name("a"), "1", "1".into()).await.unwrap();
    assert_eq!(taken(&mut inbox).await, "1");
    for round in 0..2 {
        stop();
        let start = Instant::now();
        while hub.there_for().is_some() {
            assert!(start.elapsed() < SOON);
            sleep(Duration::from_millis(10)).await;
        }
        let error = other
            .send(&name("a"), "lost", "lost".into())
            .await
            .unwrap_err();
        assert!(
            matches!(error, HubError::Away { .. }) && error.may_pass(),
            "{error:?}"
        );
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{:?}",
            start.elapsed()
        );
        let patience = Duration::from_millis(200);
        let error = other
            .ask(&name("a"), "?".into(), patience)
            .await
            .unwrap_err();
        assert!(matches!(error, HubError::Away { .. }), "{error:?}");
        let restarted = Instant::now();
        server.restart();
        while hub.there_for().is_none() || other.there_for().is_none() {
            assert!(restarted.elapsed() < SOON);
            sleep(Duration::from_millis(10)).await;
        }
        assert!(hub.there_for().unwrap() <= restarted.elapsed());
        let text = format!("after {round}");
        other.send(&name("a"), &text, text.clone()).await.unwrap();
        // What was given up may have been on its way.
        let mut came = taken(&mut inbox).await;
        if came == "lost" {
            came = taken(&mut inbox).await;
        }
        assert_eq!(came, text);
        other.broadcast(text.clone()).await.unwrap();
        assert_eq!(told(&mut inbox).await, text);
        let (asker, question) = (other.clone(), text.clone());
        let asking = tokio::spawn(async move { asker.ask(&name("a"), question, SOON).await });
        asked(&mut inbox).await.answer("yes".into());
        assert_eq!(asking.await.unwrap().unwrap(), "yes");
        other.beat(&name("a"), text.clone()).await.unwrap();
        while word(&mut watch).await != here("a", &text) {}
        other.leave(&name("a")).await.unwrap();
        assert_eq!(word(&mut watch).await, left("a"));
        println!(
            "round {round}: all goes on {:?} after the broker came back",
            restarted.elapsed()
        );
    }
}

// needs: nats
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_held_through_an_outage_is_acknowledged_once() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    let home = Home::nats(&server.url());
    let hub = home.hub().await;
    let mut inbox = hub.open(&name("a")).await.unwrap();
    hub.send(&name("a"), "1", "long work".into()).await.unwrap();
    let Some(Delivery::Sent(work)) = inbox.next().await else {
        panic!();
    };
    server.stop();
    // Longer than a reader may be silent.
    sleep(Duration::from_secs(3)).await;
    server.restart();
    assert!(timeout(Duration::from_secs(4), inbox.next()).await.is_err());
    work.ack().await.unwrap();
    assert!(timeout(Duration::from_secs(3), inbox.next()).await.is_err());
    drop(inbox);
    let mut inbox = home.hub().await.open(&name("a")).await.unwrap();
    assert!(timeout(Duration::from_secs(1), inbox.next()).await.is_err());
}

// needs: nats
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_taken_over_during_an_outage_learns_it_afterwards() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    let home = Home::nats(&server.url());
    let (hub, other) = (home.hub().await, home.hub().await);
    let mut first = hub.open(&name("a")).await.unwrap();
    hub.send(&name("a"), "1", "1".into()).await.unwrap();
    server.stop();
    while hub.there_for().is_some() || other.there_for().is_some() {
        sleep(Duration::from_millis(10)).await;
    }
    let opening = tokio::spawn(async move { other.open(&name("a")).await });
    server.restart();
    let mut second = opening.await.unwrap().unwrap();
    crate::hub::home::ended(&mut first).await;
    assert_eq!(taken(&mut second).await, "1");
}

// needs: nats
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_hangs_counts_as_away_before_silent_modules_do() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    let home = Home::nats(&server.url());
    let hub = home.hub().await;
    let mut inbox = hub.open(&name("a")).await.unwrap();
    let start = Instant::now();
    let mut hanging = server.hang(8).unwrap();
    while hub.there_for().is_some() {
        assert!(
            start.elapsed() < Duration::from_secs(6),
            "it was not noticed"
        );
        sleep(Duration::from_millis(10)).await;
    }
    println!("noticed after {:?}", start.elapsed());
    hanging.wait().unwrap();
    insist(&*hub, "a", "after").await;
    assert_eq!(taken(&mut inbox).await, "after");
    assert!(hub.there_for().unwrap() < start.elapsed());
}
