//! Attack 39: an executor that claims capabilities it lacks, replays a result, or answers another's task.

use std::time::Duration;

use contexture::task::State;
use contexture_fleet::Event;
use contexture_fleet::work::DISPATCHER;
use contexture_fleet::work::seal::HubKey;
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
        if let Some(contexture_fleet::hub::Presence::Here { module, card }) = watch.next().await
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

both!(
    nobody_answers_for_another,
    a_result_counts_once,
    what_a_guest_claims_makes_nothing_true,
    an_old_card_keeps_nobody_alive,
);
