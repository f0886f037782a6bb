use std::sync::Arc;
use std::time::Duration;

use contexture::task::State;
use contexture_agent::Cancel;
use contexture_fleet::hub::Hub;
use contexture_store::{FileLog, FileOptions};
use tokio::time::sleep;

use crate::work::{Scene, name, resource};

both!(
    a_task_is_done,
    a_failure_is_written_down,
    who_is_silent_loses_its_task,
    who_starts_anew_loses_its_task,
    what_waits_begins_when_somebody_comes,
    what_is_called_off_stops,
    a_dispatcher_that_comes_back_goes_on,
    a_hundred_tasks_for_five,
);

async fn a_task_is_done(scene: Scene) {
    let _a = scene.worker("a", &["web_search"]);
    let id = scene.create("search", &["web_search"]).await;
    let task = scene.until(&id, State::Done).await;
    assert_eq!((task.result(), task.attempt()), (Some("search by a"), 1));
    assert_eq!((task.used().tokens, task.used().cost_micros), (10, 1));
    assert!(task.context().unwrap().contains(&format!("- ID: {id}")));
    assert_eq!(scene.statuses().await["a"], "available");
}

async fn a_failure_is_written_down(scene: Scene) {
    let _a = scene.worker("a", &[]);
    let id = scene.create("fail", &[]).await;
    let task = scene.until(&id, State::Failed).await;
    assert_eq!((task.why(), task.used().tokens), (Some("it says so"), 10));
}

async fn who_is_silent_loses_its_task(scene: Scene) {
    let a = scene.worker("a", &["web_search"]);
    let id = scene.create("wait", &["web_search"]).await;
    scene.until(&id, State::Running).await;
    a.abort();
    let blocked = scene.until(&id, State::Blocked).await;
    assert_eq!(blocked.missing(), [name("web_search")]);
    assert_eq!(scene.statuses().await["a"], "error");
    let _b = scene.worker("b", &["web_search"]);
    let task = scene.until(&id, State::Running).await;
    assert_eq!((task.executor(), task.attempt()), (Some(&name("b")), 2));
}

async fn who_starts_anew_loses_its_task(scene: Scene) {
    let a = scene.worker("a", &[]);
    let id = scene.create("wait", &[]).await;
    scene.until(&id, State::Running).await;
    a.abort();
    // Before it could be missed.
    let _again = scene.worker("a", &[]);
    for _ in 0..500 {
        if scene.task(&id).await.attempt() == 2 {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("{:?}", scene.task(&id).await);
}

async fn what_waits_begins_when_somebody_comes(scene: Scene) {
    let id = scene.create("search", &["web_search"]).await;
    let blocked = scene.until(&id, State::Blocked).await;
    assert_eq!(blocked.why(), Some("`web_search`: nobody declares it"));
    let _b = scene.worker("b", &["file_ops"]);
    sleep(Duration::from_millis(300)).await;
    assert_eq!(scene.task(&id).await.state(), State::Blocked);
    let _a = scene.worker("a", &["web_search"]);
    scene.until(&id, State::Done).await;
}

async fn what_is_called_off_stops(scene: Scene) {
    let _a = scene.worker("a", &[]);
    let id = scene.create("wait", &[]).await;
    scene.until(&id, State::Running).await;
    let off = id.clone();
    let cancel = scene
        .dispatcher
        .change(move |board, now| Ok(((), board.cancel(&off, "enough", now)?)));
    cancel.await.unwrap();
    // The worker is free for the next at once, because it has stopped.
    let next = scene.create("next", &[]).await;
    scene.until(&next, State::Done).await;
    assert_eq!(scene.task(&id).await.state(), State::Cancelled);
}

async fn a_dispatcher_that_comes_back_goes_on(mut scene: Scene) {
    let _a = scene.worker("a", &[]);
    let id = scene.create("wait", &[]).await;
    scene.until(&id, State::Running).await;
    let queued = scene.create("later", &[]).await;
    scene.restart().await;
    // Its worker is still at it, and says so.
    sleep(crate::work::PATIENCE * 2).await;
    let task = scene.task(&id).await;
    assert_eq!((task.state(), task.attempt()), (State::Running, 1));
    let cancel = scene
        .dispatcher
        .change(move |board, now| Ok(((), board.cancel(&id, "enough", now)?)));
    cancel.await.unwrap();
    scene.until(&queued, State::Done).await;
}

async fn a_hundred_tasks_for_five(scene: Scene) {
    let workers: Vec<_> = (0..5)
        .map(|n| scene.worker(&format!("w{n}"), &["work"]))
        .collect();
    let mut ids = Vec::new();
    for n in 0..100 {
        ids.push(scene.create(&format!("number {n}"), &["work"]).await);
    }
    for (n, id) in ids.iter().enumerate() {
        let task = scene.until(id, State::Done).await;
        assert!(
            task.result()
                .unwrap()
                .starts_with(&format!("number {n} by w"))
        );
        assert_eq!(task.attempt(), 1);
    }
    assert!(
        scene
            .statuses()
            .await
            .values()
            .all(|status| *status == "available")
    );
    drop(workers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_takes_work_before_it_has_come() {
    let scene = Scene::local().await;
    scene.add(resource("a", &["web_search"])).await;
    let id = scene.create("search", &["web_search"]).await;
    scene.until(&id, State::Blocked).await;
    assert_eq!(scene.statuses().await["a"], "released");
    let _a = scene.worker("a", &["web_search"]);
    scene.until(&id, State::Done).await;
}

/// Two dispatchers over one log, as on two machines over one database: the later hands out, the other stands by.
// needs: nats
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_dispatchers_one_hands_out_and_the_other_goes_on_without_it() {
    let Some(mut scene) = Scene::nats().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(FileLog::new(folder.path(), FileOptions::default()));
    let server = scene.nats.as_ref().unwrap();
    let other: Arc<dyn Hub> = Arc::new(crate::work::connect(server, &scene.key).await);
    let of = |hub: &Arc<dyn Hub>| {
        crate::work::dispatcher_over(Arc::clone(&log), hub, &scene.key, &scene.bus, true)
    };
    let (first, second) = (of(&scene.hub), of(&other));
    let stops = [Cancel::default(), Cancel::default()];
    scene.stop();
    tokio::spawn(Arc::clone(&first).run(stops[0].clone()));
    sleep(Duration::from_millis(300)).await;
    tokio::spawn(Arc::clone(&second).run(stops[1].clone()));
    let _a = scene.worker("a", &[]);
    // Whoever is asked, it is done once.
    for dispatcher in [&first, &second] {
        scene.dispatcher = Arc::clone(dispatcher);
        for _ in 0..5 {
            let id = scene.create("x", &[]).await;
            assert_eq!(scene.until(&id, State::Done).await.attempt(), 1);
        }
    }
    stops[1].cancel();
    scene.dispatcher = Arc::clone(&first);
    let id = scene.create("x", &[]).await;
    scene.until(&id, State::Done).await;
}
