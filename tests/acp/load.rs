//! Sessions that are taken up again.

use agent_client_protocol::v1::schema::{
    CloseSessionRequest, ResumeSessionRequest, SessionId, StopReason,
};
use serde_json::json;

use crate::acp::host::{agent, hosting, nothing_dangles};
use crate::acp::scene::{Scene, calls, says};
use crate::model_server::{Answer, Piece};

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_told_again_after_a_restart_and_goes_on() {
    let scene = Scene::new([
        Answer::Says(vec![
            Piece::Text("I look."),
            Piece::Call("c1", "exec_shell", json!({"command": "cat note.txt"})),
        ]),
        says("It says hi."),
        says("As I said: hi."),
    ]);
    scene.project.write("note.txt", "hi from the note");
    let cwd = scene.project.path();
    let id: SessionId = hosting(agent(&scene, &["--allow-all"]), None, async |host| {
        host.initialize().await;
        let id = host.session(cwd).await;
        host.expect(&id, "what does it say?", StopReason::EndTurn)
            .await;
        id
    })
    .await;
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        host.load(&id.0, cwd).await.unwrap();
        let updates = host.updates(&id);
        let kinds: Vec<&str> = updates
            .iter()
            .map(|update| update["sessionUpdate"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "user_message_chunk",
                "agent_message_chunk",
                "tool_call",
                "tool_call_update",
                "agent_message_chunk"
            ]
        );
        assert_eq!(host.text(&id, "user_message_chunk"), "what does it say?");
        assert!(
            updates[3]["rawOutput"]
                .to_string()
                .contains("hi from the note")
        );
        nothing_dangles(&updates);
        host.expect(&id, "once more?", StopReason::EndTurn).await;
    })
    .await;
    assert!(scene.sent(2).contains("It says hi."));
    scene.ctx(&["replay", &id.0, "--verify"]).success();
}

/// A session of `ctx run` is as good as one of a host's.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_the_terminal_can_be_loaded() {
    let scene = Scene::new([says("Hello."), says("Hello again.")]);
    scene.run("openai:m", &["hello"]).success();
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        host.load("s", scene.project.path()).await.unwrap();
        assert_eq!(host.text(&"s".into(), "agent_message_chunk"), "Hello.");
        host.expect(&"s".into(), "again?", StopReason::EndTurn)
            .await;
    })
    .await;
    scene.verify();
}

/// A session that was begun is there, also before its first prompt and in another process.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_no_prompt_yet_can_be_loaded() {
    let scene = Scene::new([says("Hello.")]);
    let cwd = scene.project.path();
    let id: SessionId = hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        host.session(cwd).await
    })
    .await;
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        host.load(&id.0, cwd).await.unwrap();
        assert_eq!(host.updates(&id).len(), 0);
        host.expect(&id, "hello?", StopReason::EndTurn).await;
    })
    .await;
    scene.ctx(&["replay", &id.0, "--verify"]).success();
}

/// Attack 9: names that are none, and a session that is not there, are the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_not_there_is_not_made() {
    let scene = Scene::new([]);
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        for id in [
            "nobody",
            "../../etc",
            "/etc/passwd",
            "a/../b",
            "",
            "con",
            "x\0y",
        ] {
            let error = host.load(id, scene.project.path()).await.unwrap_err();
            assert_eq!(error.code.value(), -32002, "{id:?}: {error:?}");
        }
    })
    .await;
    let sessions = scene.ctx(&["sessions", "list", "--json"]).success();
    assert!(!sessions.contains("nobody"), "{sessions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_resumed_without_a_word_and_closed() {
    let scene = Scene::new([
        calls("c", "skills_list", json!({})),
        says("One."),
        says("Two."),
    ]);
    let cwd = scene.project.path();
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        let id = host.session(cwd).await;
        host.expect(&id, "count", StopReason::EndTurn).await;
        let close = CloseSessionRequest::new(id.clone());
        host.cx.send_request(close).block_task().await.unwrap();
        assert!(host.prompt(&id, "there?").await.is_err());
        let before = host.updates(&id).len();
        let resume = ResumeSessionRequest::new(id.clone(), cwd);
        host.cx.send_request(resume).block_task().await.unwrap();
        assert_eq!(host.updates(&id).len(), before);
        host.expect(&id, "go on", StopReason::EndTurn).await;
    })
    .await;
    assert!(scene.sent(2).contains("One."));
}
