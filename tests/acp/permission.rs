//! Who may let a tool act.

use agent_client_protocol::v1::schema::StopReason;
use serde_json::json;

use crate::acp::host::{agent, hosting, nothing_dangles, statuses};
use crate::acp::scene::{Scene, calls, says};
use crate::model_server::Answer;

fn makes(file: &'static str) -> Answer {
    calls(
        "c",
        "exec_shell",
        json!({"command": format!("touch {file}")}),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_acts_is_asked_for_and_runs_when_it_may() {
    let scene = Scene::new([makes("made"), says("Done.")]);
    hosting(agent(&scene, &[]), Some("allow"), async |host| {
        host.initialize().await;
        let id = host.session(scene.project.path()).await;
        host.expect(&id, "make it", StopReason::EndTurn).await;
        let asked = host.asked();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0]["sessionId"], id.to_string());
        assert_eq!(asked[0]["toolCall"]["rawInput"]["command"], "touch made");
        let kinds: Vec<&str> = asked[0]["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|option| option["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
        let call = asked[0]["toolCall"]["toolCallId"].as_str().unwrap();
        let updates = host.updates(&id);
        assert_eq!(
            statuses(&updates, call),
            ["in_progress", "in_progress", "completed"]
        );
    })
    .await;
    assert!(scene.project.path().join("made").exists());
}

/// Attack 35: a refusal, a cancelled question and an answer that nobody offered are all a no.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_no_yes_is_a_no() {
    for answer in [Some("reject"), Some("allow_everything"), None] {
        let scene = Scene::new([makes("made"), says("I may not.")]);
        hosting(agent(&scene, &[]), answer, async |host| {
            host.initialize().await;
            let id = host.session(scene.project.path()).await;
            host.expect(&id, "make it", StopReason::EndTurn).await;
            assert_eq!(host.asked().len(), 1, "{answer:?}");
            nothing_dangles(&host.updates(&id));
            let done = host.of_kind(&id, "tool_call_update").pop().unwrap();
            assert_eq!(done["status"], "failed", "{done}");
        })
        .await;
        assert!(!scene.project.path().join("made").exists(), "{answer:?}");
        assert!(scene.sent(1).contains("did not allow"));
    }
}

/// Attack 35: always is for the same arguments, to the byte.
#[tokio::test(flavor = "multi_thread")]
async fn always_is_for_exactly_this() {
    let scene = Scene::new([makes("a"), makes("a"), makes("b"), says("Done.")]);
    hosting(agent(&scene, &[]), Some("always"), async |host| {
        host.initialize().await;
        let id = host.session(scene.project.path()).await;
        host.expect(&id, "make them", StopReason::EndTurn).await;
        assert_eq!(host.asked().len(), 2);
    })
    .await;
    assert!(scene.project.path().join("b").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_decides_first() {
    let scene = Scene::new([makes("made"), says("I may not.")]);
    let denied = json!({"toolPolicy": {"deniedTools": ["exec_shell"]}});
    let folder = scene.home.path().join(".config/contexture");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("contexture.json"), denied.to_string()).unwrap();
    hosting(agent(&scene, &[]), Some("allow"), async |host| {
        host.initialize().await;
        let id = host.session(scene.project.path()).await;
        host.expect(&id, "make it", StopReason::EndTurn).await;
        assert!(host.asked().is_empty());
    })
    .await;
    assert!(!scene.project.path().join("made").exists());
}
