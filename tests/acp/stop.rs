//! Runs that are stopped, by the host's word or by its end.

use std::time::{Duration, Instant};

use agent_client_protocol::v1::schema::StopReason;
use serde_json::json;

use crate::acp::host::{agent, hosting, nothing_dangles};
use crate::acp::scene::{Scene, calls, says};
use crate::model_server::{Answer, Piece};

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_stopped_in_the_middle_and_what_arrived_is_kept() {
    let stalls = Answer::Stalls(vec![Piece::Text("The beginning of a long answer")], 2);
    let scene = Scene::new([stalls, says("Yes?")]);
    let id = hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        let id = host.session(scene.project.path()).await;
        let waiting = tokio::spawn(host.expect(&id, "tell me", StopReason::Cancelled));
        host.sees_kind("agent_message_chunk").await;
        let began = Instant::now();
        host.cancel(&id);
        waiting.await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(30));
        host.expect(&id, "are you there?", StopReason::EndTurn)
            .await;
        id.to_string()
    })
    .await;
    assert!(
        scene.sent(1).contains("The beginning o"),
        "{}",
        scene.sent(1)
    );
    scene.ctx(&["replay", &id, "--verify"]).success();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_stopped_and_nothing_dangles() {
    let scene = Scene::new([
        Answer::Says(vec![
            Piece::Call(
                "c1",
                "exec_shell",
                json!({"command": "touch began; sleep 600"}),
            ),
            Piece::Call("c2", "exec_shell", json!({"command": "touch never"})),
        ]),
        says("Stopped."),
    ]);
    let project = scene.project.path();
    hosting(agent(&scene, &["--allow-all"]), None, async |host| {
        host.initialize().await;
        let id = host.session(project).await;
        let waiting = tokio::spawn(host.expect(&id, "work", StopReason::Cancelled));
        host.sees_kind("tool_call").await;
        while !project.join("began").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        host.cancel(&id);
        waiting.await.unwrap();
        let updates = host.updates(&id);
        nothing_dangles(&updates);
        assert_eq!(host.of_kind(&id, "tool_call").len(), 1);
        host.expect(&id, "and?", StopReason::EndTurn).await;
    })
    .await;
    assert!(!project.join("never").exists());
}

/// A cancellation right behind its prompt, before anything happened.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_right_behind_the_prompt_is_heard() {
    let stalls = || Answer::Stalls(vec![Piece::Text("never")], 0);
    let scene = Scene::new([stalls(), stalls(), stalls()]);
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        let id = host.session(scene.project.path()).await;
        // Nothing to stop is no error.
        host.cancel(&id);
        for _ in 0..3 {
            let waiting =
                host.cx
                    .send_request(agent_client_protocol::v1::schema::PromptRequest::new(
                        id.clone(),
                        vec!["hello".into()],
                    ));
            host.cancel(&id);
            let response = waiting.block_task().await.unwrap();
            assert_eq!(response.stop_reason, StopReason::Cancelled);
        }
    })
    .await;
}

/// A host that dies in the middle of a run leaves a whole log and no process behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_dies_ends_everything() {
    let scene = Scene::new([
        calls(
            "c1",
            "exec_shell",
            json!({"command": "echo $$ > pid; sleep 600"}),
        ),
        says("never said"),
    ]);
    let project = scene.project.path();
    // When this ends, so does its side of both pipes, as with a process that is killed.
    let id = hosting(agent(&scene, &["--allow-all"]), None, async |host| {
        host.initialize().await;
        let id = host.session(project).await;
        tokio::spawn(host.expect(&id, "work", StopReason::Cancelled));
        let pid = project.join("pid");
        while std::fs::read_to_string(&pid).is_ok_and(|pid| pid.is_empty()) || !pid.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        id.to_string()
    })
    .await;
    assert_eq!(scene.server.left(), 1, "no request after the end");
    scene.ctx(&["replay", &id, "--verify"]).success();
    let entries = scene.project.entries(&id);
    let results = entries.iter().filter(|entry| {
        entry["type"] == "message" && entry["payload"]["message"]["role"] == "tool"
    });
    assert_eq!(results.count(), 1, "the call has its result");
    let processes = std::process::Command::new("ps")
        .args(["-eo", "args"])
        .output()
        .unwrap();
    let folder = project.display().to_string();
    assert!(!String::from_utf8_lossy(&processes.stdout).contains(&folder));
}
