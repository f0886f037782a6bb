//! Turns: told in order, ended, called off.

use std::time::Duration;

use contexture_fleet::acp::{AcpError, Begin};
use serde_json::json;

use crate::acp::common::*;

#[tokio::test]
async fn a_turn_is_told_in_order_and_before_its_end() {
    let scene = Scene::new("good");
    let (connection, id) = scene.started().await;
    let ended = within(connection.prompt(&id, text_blocks("look")))
        .await
        .unwrap();
    assert_eq!(ended.stop_reason, "end_turn");
    assert_eq!(ended.usage.unwrap()["totalTokens"], 3);
    let updates = scene.host.updates.lock().unwrap();
    let kinds: Vec<&str> = updates
        .iter()
        .map(|(session, update)| {
            assert_eq!(session, "s-1");
            update["sessionUpdate"].as_str().unwrap()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "agent_thought_chunk",
            "agent_thought_chunk",
            "plan",
            "agent_message_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "tool_call_update",
            "agent_message_chunk",
        ]
    );
}

#[tokio::test]
async fn several_turns_of_a_session() {
    let scene = Scene::new("echo");
    let (connection, id) = scene.started().await;
    for text in ["one ", "two ", "three"] {
        within(connection.prompt(&id, text_blocks(text)))
            .await
            .unwrap();
    }
    assert_eq!(scene.host.said(), "one two three");
    let error = within(connection.prompt("s-2", text_blocks("x")))
        .await
        .unwrap_err();
    assert!(matches!(error, AcpError::NoSession { .. }), "{error}");
}

#[tokio::test]
async fn a_turn_that_is_called_off_ends_so() {
    let scene = Scene::new("waits");
    let (connection, id) = scene.started().await;
    let prompt = connection.prompt(&id, text_blocks("x"));
    let call_off = async {
        until("it works", || scene.host.said() == "working").await;
        let error = connection.prompt(&id, text_blocks("y")).await.unwrap_err();
        assert!(matches!(error, AcpError::Busy { .. }), "{error}");
        connection.cancel(&id);
    };
    let (ended, ()) = within(async { tokio::join!(prompt, call_off) }).await;
    assert_eq!(ended.unwrap().stop_reason, "cancelled");
}

#[tokio::test]
async fn a_prompt_that_is_dropped_is_called_off_and_the_next_waits_for_it() {
    let scene = Scene::new("waits");
    let (connection, id) = scene.started().await;
    for times in 1..=3 {
        let prompt = connection.prompt(&id, text_blocks("x"));
        let works = || scene.host.chunks().len() == times;
        tokio::select! {
            ended = prompt => panic!("it ended: {ended:?}"),
            () = until("it works", works) => {}
        }
    }
    let next = connection.prompt(&id, text_blocks("x"));
    let call_off = async {
        until("it works", || scene.host.chunks().len() == 4).await;
        connection.cancel(&id);
    };
    let (ended, ()) = within(async { tokio::join!(next, call_off) }).await;
    assert_eq!(ended.unwrap().stop_reason, "cancelled");
}

#[tokio::test]
async fn an_earlier_session_is_taken_up() {
    let scene = Scene::new("loads");
    let connection = scene.launch().await.unwrap();
    within(connection.load_session("old-1", Begin::default()))
        .await
        .unwrap();
    let updates = scene.host.updates.lock().unwrap().clone();
    assert_eq!(updates.len(), 2);
    assert!(updates.iter().all(|(session, _)| session == "old-1"));
    within(connection.prompt("old-1", text_blocks("x")))
        .await
        .unwrap();

    let scene = Scene::new("good");
    let connection = scene.launch().await.unwrap();
    let error = connection
        .load_session("old-1", Begin::default())
        .await
        .unwrap_err();
    assert!(matches!(error, AcpError::Lacks { .. }), "{error}");
}

#[tokio::test]
async fn what_the_agent_answers_instead_is_said() {
    let error = Scene::new("refuses").once("x").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent `python3` refused `session/prompt`: Internal error: the model is gone"
    );
    let error = Scene::new("no_reason").once("x").await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("without the reason why it stopped"),
        "{error}"
    );
}

/// An agent that does not listen is ended all the same, and so is what it started.
#[tokio::test]
async fn an_agent_that_does_not_listen_is_stopped() {
    let scene = Scene::new("deaf");
    let (connection, id) = scene.started().await;
    let prompt = connection.prompt(&id, text_blocks("x"));
    let stop = async {
        until("it works", || scene.host.said() == "working").await;
        connection.cancel(&id);
        connection.stop().await;
    };
    let (ended, ()) = within(async { tokio::join!(prompt, stop) }).await;
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("it was stopped"), "{error}");
    let error = connection.prompt(&id, text_blocks("x")).await.unwrap_err();
    assert!(matches!(error, AcpError::Ended { .. }), "{error}");
}

fn pid(said: &str) -> i32 {
    said.strip_prefix("pid ").unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_an_agent_started_ends_with_it() {
    // By stopping it, by dropping it.
    for stops in [true, false] {
        let scene = Scene::new("child");
        let (connection, id) = scene.started().await;
        let started = || !scene.host.said().is_empty();
        tokio::select! {
            ended = connection.prompt(&id, text_blocks("x")) => panic!("it ended: {ended:?}"),
            () = until("it started something", started) => {}
        }
        let pid = pid(&scene.host.said());
        assert!(runs(pid));
        if stops {
            within(connection.stop()).await;
            assert!(!runs(pid));
        } else {
            drop(connection);
            until("it ended", || !runs(pid)).await;
        }
    }
}

/// Without a supervisor, its group ends with it.
#[tokio::test]
async fn without_a_supervisor_it_works_as_well() {
    let scene = Scene::new("echo").with(|launch| launch.supervisor = None);
    scene.once("here").await.unwrap();
    assert_eq!(scene.host.said(), "here");
}

#[tokio::test]
async fn a_host_that_cannot_keep_up_slows_the_agent_down() {
    let scene = Scene::new("floods");
    *scene.host.slow.lock().unwrap() = Duration::from_millis(200);
    let (connection, id) = scene.started().await;
    let before = most_memory();
    let prompt = connection.prompt(&id, text_blocks("x"));
    // Half a gigabyte is said. Of that, what the pipe holds and what was taken is all that there is.
    let ended = tokio::time::timeout(Duration::from_secs(3), prompt).await;
    assert!(ended.is_err(), "it was not slowed down");
    let taken = scene.host.updates.lock().unwrap().len();
    assert!((2..=16).contains(&taken), "{taken}");
    let more = most_memory().saturating_sub(before);
    assert!(more < 64 << 20, "{more} bytes more");
    within(connection.stop()).await;
}

#[tokio::test]
async fn the_log_of_a_launch_has_no_secrets() {
    let scene = Scene::new("good").with(|launch| {
        launch
            .env
            .insert("A_KEY".to_owned(), "hunter2hunter2".to_owned());
        launch.args.push("--key=hunter3hunter3".to_owned());
    });
    let shown = format!("{:?}", scene.launch);
    assert!(
        shown.contains("A_KEY") && !shown.contains("hunter"),
        "{shown}"
    );
    assert_eq!(json!(scene.launch.program), "python3");
}
