//! Attack 39: an executor that claims capabilities it lacks, replays a result, or answers another's task.

use std::time::{Duration, Instant};

use contexture::pool::Change;
use contexture::task::{Board, State};
use contexture_agent::Cancel;
use contexture_fleet::Event;
use contexture_fleet::hub::{HubError, Presence};
use contexture_fleet::work::DISPATCHER;
use contexture_fleet::work::seal::{HubKey, Voice};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::work::{Scene, name, resource};

/// A result, as a worker reports it.
fn report(task: &str, attempt: u32, instance: &str) -> String {
    json!({
        "taskId": task, "attempt": attempt, "instance": instance, "tokens": 0, "costMicros": 0,
        "came": {"done": "forged"},
    })
    .to_string()
}

/// Sends something to the dispatcher, and gives why it does not count.
async fn refused(scene: &Scene, id: &str, text: String) -> String {
    let mut events = scene.bus.subscribe(None);
    scene.hub.send(&name(DISPATCHER), id, text).await.unwrap();
    let heard = async {
        while let Some(happened) = events.next().await {
            if let Event::WordRefused { why, .. } = &happened.event {
                return why.clone();
            }
        }
        String::new()
    };
    timeout(Duration::from_secs(10), heard).await.unwrap()
}

async fn nobody_answers_for_another(scene: Scene) {
    let _a = scene.worker("a", &["web_search"]);
    scene.add(resource("b", &["file_ops"])).await;
    let id = scene.create("wait", &["web_search"]).await;
    let task = scene.until(&id, State::Running).await;
    let instance = task.instance().unwrap().to_owned();
    let b = scene.key.seat(&name("b"), false);
    let own = report(&id, 1, &instance);
    assert_eq!(
        refused(&scene, "1", b.seal(own.clone())).await,
        "it was not handed to `b`"
    );
    let stranger = HubKey::fresh().unwrap().seat(&name("a"), true);
    assert_eq!(
        refused(&scene, "2", stranger.seal(own.clone())).await,
        "its seal does not fit"
    );
    assert_eq!(
        refused(&scene, "3", own.clone()).await,
        "its seal does not fit"
    );
    let mut forged: Value = serde_json::from_str(&b.seal(own)).unwrap();
    forged["from"] = json!("a");
    assert_eq!(
        refused(&scene, "4", forged.to_string()).await,
        "its seal does not fit"
    );
    // With its own key, of another attempt, another process, another task.
    let a = scene.key.seat(&name("a"), true);
    let said = async |id: &str, text: String| refused(&scene, id, a.seal(text)).await;
    assert_eq!(
        said("5", report(&id, 2, &instance)).await,
        "it speaks of attempt 2, and the task is at attempt 1"
    );
    assert_eq!(
        said("6", report(&id, 1, "other")).await,
        "another process of the executor has it"
    );
    assert_eq!(
        said("7", report("task-99", 1, &instance)).await,
        "there is no such task"
    );
    assert_eq!(said("8", "{}".into()).await, "it cannot be read");
    assert_eq!(
        scene.task(&id).await.state(),
        State::Running,
        "nothing of it changed anything"
    );
}

async fn a_result_counts_once(scene: Scene) {
    let _a = scene.worker("a", &[]);
    let id = scene.create("search", &[]).await;
    let task = scene.until(&id, State::Done).await;
    let a = scene.key.seat(&name("a"), true);
    let why = refused(&scene, "1", a.seal(report(&id, 1, "any"))).await;
    assert_eq!(why, "the task is done");
    assert_eq!(scene.task(&id).await.result(), task.result());
}

async fn what_a_guest_claims_makes_nothing_true(scene: Scene) {
    // One that nobody knows, with a key that somebody gave it.
    let _stranger = scene.worker_as(&scene.key, "stranger", &["shell_exec"], false);
    // One that is known for less than it claims.
    scene.add(resource("known", &["file_ops"])).await;
    let _known = scene.worker_as(&scene.key, "known", &["file_ops", "shell_exec"], false);
    // One with a key of its own making.
    let own = HubKey::fresh().unwrap();
    let _forger = scene.worker_as(&own, "forger", &["shell_exec"], true);
    let can = scene.create("x", &["file_ops"]).await;
    scene.until(&can, State::Done).await;
    let cannot = scene.create("x", &["shell_exec"]).await;
    scene.until(&cannot, State::Blocked).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        scene.task(&cannot).await.why(),
        Some("`shell_exec`: nobody declares it")
    );
    let known: Vec<String> = scene.statuses().await.into_keys().collect();
    assert_eq!(known, ["known"]);
}

/// A card that is shown again keeps nobody alive.
async fn an_old_card_keeps_nobody_alive(scene: Scene) {
    let a = scene.worker("a", &[]);
    let id = scene.create("wait", &[]).await;
    scene.until(&id, State::Running).await;
    let mut watch = scene.hub.watch().await.unwrap();
    let card = loop {
        if let Some(Presence::Here { module, card }) = watch.next().await
            && module == name("a")
        {
            break card;
        }
    };
    a.abort();
    let until = async {
        loop {
            scene.hub.beat(&name("a"), card.clone()).await.unwrap();
            if scene.statuses().await["a"] == "error" {
                break;
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(Duration::from_secs(20), until).await.unwrap();
}

/// The last card of a module.
async fn card_of(scene: &Scene, module: &str) -> String {
    let mut watch = scene.hub.watch().await.unwrap();
    let looking = async {
        loop {
            // The first may be from before it had heard the dispatcher.
            if let Some(Presence::Here { module: who, card }) = watch.next().await
                && who == name(module)
                && card.contains(scene.dispatcher.process())
            {
                return card;
            }
        }
    };
    timeout(Duration::from_secs(20), looking).await.unwrap()
}

/// A card from before the dispatcher was started again keeps nobody alive, whoever shows it, and brings nobody back.
async fn a_card_from_before_a_restart_keeps_nobody_alive(mut scene: Scene) {
    let (busy, idle) = (scene.worker("busy", &["a"]), scene.worker("idle", &["b"]));
    let task = scene.create("wait", &["a"]).await;
    scene.until(&task, State::Running).await;
    let cards = [card_of(&scene, "busy").await, card_of(&scene, "idle").await];
    busy.abort();
    idle.abort();
    scene.restart().await;
    let show = async || {
        for (module, card) in ["busy", "idle"].into_iter().zip(&cards) {
            scene.hub.beat(&name(module), card.clone()).await.unwrap();
        }
        sleep(Duration::from_millis(100)).await;
        scene.statuses().await
    };
    let gone = async {
        loop {
            let statuses = show().await;
            if statuses["busy"] == "error" && statuses["idle"] == "released" {
                break;
            }
        }
    };
    timeout(Duration::from_secs(60), gone).await.unwrap();
    for _ in 0..10 {
        let statuses = show().await;
        assert_eq!(statuses["busy"], "error");
        assert_eq!(statuses["idle"], "released", "it takes no work");
    }
    // Who lives is back at once.
    let _idle = scene.worker("idle", &["b"]);
    let task = scene.create("x", &["b"]).await;
    scene.until(&task, State::Done).await;
}

async fn an_old_card_brings_back_nobody_who_went(scene: Scene) {
    let stop = Cancel::default();
    let working = scene.worker_in(scene.key.seat(&name("a"), true), &["x"], stop.clone());
    let card = card_of(&scene, "a").await;
    let task = scene.create("x", &["x"]).await;
    scene.until(&task, State::Done).await;
    stop.cancel();
    timeout(Duration::from_secs(20), working)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let begun = Instant::now();
    while scene.statuses().await.contains_key("a") {
        assert!(begun.elapsed() < Duration::from_secs(20));
        sleep(Duration::from_millis(50)).await;
    }
    for _ in 0..10 {
        scene.hub.beat(&name("a"), card.clone()).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        assert!(scene.statuses().await.is_empty());
    }
}

async fn a_revoked_key_ends_its_worker_and_nothing_with_it_counts(mut scene: Scene) {
    scene.add(resource("far", &["x"])).await;
    let seat = |n| scene.key.seat_of(&name("far"), Voice::Guest(n));
    let (old, next, again) = (seat(0), seat(1), seat(0));
    let mut events = scene.bus.subscribe(None);
    let working = scene.worker_in(old.clone(), &["x"], Cancel::default());
    let id = scene.create("wait", &["x"]).await;
    let task = scene.until(&id, State::Running).await;
    let instance = task.instance().unwrap().to_owned();
    let revoke = |board: &mut Board, now: &contexture::task::Now| {
        board.change(Change::KeyRevoked { id: name("far") }, &now.at)?;
        Ok(((), Vec::new()))
    };
    scene.dispatcher.change(revoke).await.unwrap();
    let ended = timeout(Duration::from_secs(10), working)
        .await
        .unwrap()
        .unwrap();
    let revoked = HubError::Revoked {
        module: "far".to_owned(),
    };
    assert_eq!(ended, Err(revoked.clone()));
    // Its task waits for another; what it says of it does not count.
    let why = refused(&scene, "1", old.seal(report(&id, 1, &instance))).await;
    assert_eq!(why, "its key was revoked");
    assert_ne!(scene.statuses().await["far"], "busy");
    let mut told = false;
    while let Some(Some(happened)) = events.next().now_or_never() {
        told |= happened.event
            == Event::KeyRevoked {
                resource: "far".to_owned(),
            };
    }
    assert!(told);
    // Also after a restart, and by whoever comes with the old key, who takes nothing from the next one.
    scene.restart().await;
    let new = scene.worker_in(next, &["x"], Cancel::default());
    scene.until(&id, State::Running).await;
    let late = scene.worker_in(again, &["x"], Cancel::default());
    let ended = timeout(Duration::from_secs(10), late)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended, Err(revoked));
    let done = scene.create("x", &["x"]).await;
    assert!(!new.is_finished());
    let recalls = move |board: &mut Board, now: &contexture::task::Now| {
        let recalls = board.cancel(&id, "enough", now)?;
        Ok(((), recalls))
    };
    scene.dispatcher.change(recalls).await.unwrap();
    scene.until(&done, State::Done).await;
}

both!(
    a_card_from_before_a_restart_keeps_nobody_alive,
    an_old_card_brings_back_nobody_who_went,
    a_revoked_key_ends_its_worker_and_nothing_with_it_counts,
    nobody_answers_for_another,
    a_result_counts_once,
    what_a_guest_claims_makes_nothing_true,
    an_old_card_keeps_nobody_alive,
);
