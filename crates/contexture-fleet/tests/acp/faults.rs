//! Agents that die, lie and flood: an error that says so, and nothing that hangs or grows.

use contexture_fleet::acp::{AcpError, Answer};
use serde_json::json;

use crate::acp::common::*;

async fn error(way: &str) -> String {
    let error = Scene::new(way).once("x").await.unwrap_err();
    assert!(matches!(error, AcpError::Ended { .. }), "{error}");
    error.to_string()
}

/// Attack 41: what it said last may hold a key.
#[tokio::test]
async fn an_agent_that_dies_in_the_middle() {
    let error = error("dies").await;
    assert!(error.contains("exit status: 3"), "{error}");
    assert!(error.contains("it said: out of memory"), "{error}");
    assert!(!error.contains("abcdefghijklmnop"), "{error}");
}

#[tokio::test]
async fn an_agent_that_is_killed() {
    let scene = Scene::new("waits").with(|launch| launch.supervisor = None);
    let (connection, id) = scene.started().await;
    let prompt = connection.prompt(&id, text_blocks("x"));
    let kill = async {
        until("it works", || scene.host.said() == "working").await;
        let pid = rustix::process::Pid::from_raw(started_in(&scene)).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    };
    let (ended, ()) = within(async { tokio::join!(prompt, kill) }).await;
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("signal: 9"), "{error}");
    assert!(connection.is_ended());
}

#[tokio::test]
async fn an_agent_that_closes_its_output_or_its_input() {
    // A supervisor holds both open for as long as the agent lives.
    let alone = |way: &str| Scene::new(way).with(|launch| launch.supervisor = None);
    let error = alone("closes").once("x").await.unwrap_err().to_string();
    assert!(error.contains("it closed its output"), "{error}");

    // Nothing is said to one that does not read: that is found out when something is.
    let scene = alone("closes_input");
    let (connection, id) = scene.started().await;
    let prompt = connection.prompt(&id, text_blocks("x"));
    let again = async {
        while !connection.is_ended() {
            connection.cancel(&id);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let (ended, ()) = within(async { tokio::join!(prompt, again) }).await;
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("it closed its input"), "{error}");
}

/// Attack 36.
#[tokio::test]
async fn lines_without_an_end_and_messages_of_too_many_parts() {
    let before = most_memory();
    let error_long = error("long_line").await;
    assert!(
        error_long.contains("a line is longer than 8 MiB"),
        "{error_long}"
    );
    let error_crowded = error("crowded").await;
    assert!(
        error_crowded.contains("more than 32 MiB of memory"),
        "{error_crowded}"
    );
    let error_deep = error("deep").await;
    assert!(error_deep.contains("cannot be read"), "{error_deep}");
    let more = most_memory().saturating_sub(before);
    assert!(more < 64 << 20, "{more} bytes more");
}

#[tokio::test]
async fn what_is_not_the_protocol() {
    let error = error("babble").await;
    assert!(
        error.contains("what it prints is not the protocol: this is no protocol"),
        "{error}"
    );
}

/// Attack 40: answers that nobody asked for, sessions of others, and words between the messages.
#[tokio::test]
async fn noise_is_passed_over() {
    let scene = Scene::new("noise");
    let (connection, id) = scene.started().await;
    for _ in 0..2 {
        let ended = within(connection.prompt(&id, text_blocks("x")))
            .await
            .unwrap();
        assert_eq!(ended.stop_reason, "end_turn");
    }
    assert_eq!(scene.host.said(), "finefine");
}

#[tokio::test]
async fn half_a_gigabyte_of_updates() {
    let scene = Scene::new("floods");
    let (connection, id) = scene.started().await;
    let host = scene.host.clone();
    // A host that forgets: only the connection could grow.
    let forget = async {
        loop {
            host.updates.lock().unwrap().clear();
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    let before = most_memory();
    tokio::select! {
        ended = within(connection.prompt(&id, text_blocks("x"))) => {
            assert_eq!(ended.unwrap().stop_reason, "end_turn");
        }
        () = forget => {}
    }
    let more = most_memory().saturating_sub(before);
    assert!(more < 128 << 20, "{more} bytes more");
}

/// Only so many questions are open at a time; the rest are refused, and none hangs.
#[tokio::test]
async fn a_flood_of_questions() {
    let scene = Scene::new("floods_requests");
    let (connection, id) = scene.started().await;
    let prompt = connection.prompt(&id, text_blocks("x"));
    let call_off = async {
        // They wait for an answer until the turn is called off; those behind are not even asked.
        until("it asks", || scene.host.asks.lock().unwrap().len() == 64).await;
        connection.cancel(&id);
    };
    let (ended, ()) = within(async { tokio::join!(prompt, call_off) }).await;
    ended.unwrap();
    let told = &scene.host.told()[0];
    let (answered, refused) = (
        told["answered"].as_u64().unwrap(),
        told["refused"].as_u64().unwrap(),
    );
    assert_eq!(answered + refused, 300);
    assert!(answered >= 64, "{told}");
}

#[tokio::test]
async fn an_id_that_is_used_twice() {
    let scene = Scene::new("same_id");
    let (connection, id) = scene.started().await;
    let prompt = connection.prompt(&id, text_blocks("x"));
    let call_off = async {
        until("the second is refused", || !scene.host.chunks().is_empty()).await;
        connection.cancel(&id);
    };
    let (ended, ()) = within(async { tokio::join!(prompt, call_off) }).await;
    ended.unwrap();
    let told = scene.host.told();
    assert_eq!(told[0]["message"], "the id is in use");
    assert_eq!(told[1], json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(scene.host.asks.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_not_offered_is_refused() {
    let scene = Scene::new("asks")
        .answering(Answer::Cancelled)
        .with(|launch| {
            launch.policy.fs_write = false;
            launch.policy.terminal = false;
        });
    scene.write("a.txt", "alpha");
    let a = scene.workspace().join("a.txt");
    let asks = json!([
        ["fs/write_text_file", {"path": a, "content": "beta"}],
        ["terminal/create", {"command": "true"}],
        ["terminal/output", {"terminalId": "term-1"}],
        ["session/unheard_of", {}],
        ["fs/read_text_file", {"path": a}, "of-somebody-else"],
        ["fs/read_text_file", {"path": a}],
    ]);
    scene.once(asks).await.unwrap();
    let told = scene.host.told();
    let codes: Vec<i64> = told[..5]
        .iter()
        .map(|error| error["code"].as_i64().unwrap())
        .collect();
    assert_eq!(codes, [-32601, -32601, -32601, -32601, -32602]);
    assert_eq!(told[5], json!({"content": "alpha"}));
}
