//! Prompts and what comes of them.

use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, NewSessionRequest,
    ResourceLink, StopReason, TextResourceContents,
};
use serde_json::{Map, json};

use crate::acp::host::{agent, hosting, nothing_dangles, statuses};
use crate::acp::scene::{Scene, calls, says};
use crate::model_server::{Answer, ModelServer, Piece};

#[tokio::test(flavor = "multi_thread")]
async fn it_says_who_it_is_and_what_it_takes() {
    let scene = Scene::new([]);
    hosting(agent(&scene, &[]), None, async |host| {
        let said = host.initialize().await;
        assert_eq!(said["protocolVersion"], 1);
        assert_eq!(said["agentInfo"]["name"], "contexture");
        let can = &said["agentCapabilities"];
        assert_eq!(can["loadSession"], true);
        assert_eq!(can["promptCapabilities"]["embeddedContext"], true);
        assert_eq!(can["promptCapabilities"]["image"], true);
        assert_eq!(can["promptCapabilities"]["audio"], false);
        assert_eq!(can["mcpCapabilities"]["http"], true);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_streams_and_is_an_ordinary_session_afterwards() {
    let scene = Scene::new([
        Answer::Says(vec![
            Piece::Thinking("A greeting."),
            Piece::Text("Hello to you."),
        ]),
        says("You said hello."),
    ]);
    let cwd = scene.project.path();
    let id = hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        let id = host.session(cwd).await;
        let response = host.expect(&id, "hello", StopReason::EndTurn).await;
        assert_eq!(response.meta.unwrap()["contexture"]["steps"], 1);
        assert_eq!(host.text(&id, "agent_thought_chunk"), "A greeting.");
        assert_eq!(host.text(&id, "agent_message_chunk"), "Hello to you.");
        let chunks = host.of_kind(&id, "agent_message_chunk");
        assert!(chunks.len() > 1, "as it arrives: {chunks:?}");
        assert_eq!(chunks[0]["messageId"], chunks[1]["messageId"]);
        let usage = host.of_kind(&id, "usage_update");
        assert!(usage[0]["used"].as_u64().unwrap() > 0, "{usage:?}");
        host.expect(&id, "what did I say?", StopReason::EndTurn)
            .await;
        let last = host.of_kind(&id, "agent_message_chunk").pop().unwrap();
        assert_ne!(chunks[0]["messageId"], last["messageId"]);
        id.to_string()
    })
    .await;
    let sessions = scene.ctx(&["sessions", "list", "--json"]).success();
    assert!(sessions.contains(&id), "{sessions}");
    scene.ctx(&["inspect", &id, "--json"]).success();
    scene.ctx(&["replay", &id, "--verify"]).success();
    assert!(scene.sent(1).contains("Hello to you."));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_says_is_a_stable_section() {
    let scene = Scene::new([says("Ahoy."), says("Aye."), says("Aye aye.")]);
    let cwd = scene.project.path();
    let id = hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        let meta = json!({"systemPrompt": {"append": "Speak like a sailor."}});
        let request = NewSessionRequest::new(cwd).meta(meta.as_object().cloned().unwrap());
        let id = host.new_session(request).await.unwrap();
        host.expect(&id, "hello", StopReason::EndTurn).await;
        host.expect(&id, "and now?", StopReason::EndTurn).await;
        id.to_string()
    })
    .await;
    assert!(scene.sent(0).contains("Speak like a sailor."));
    let (first, second) = (scene.sent(0), scene.sent(1));
    let both = first.bytes().zip(second.bytes());
    let shared = both.take_while(|(a, b)| a == b).count();
    assert!(shared > first.len() * 9 / 10, "{shared} of {}", first.len());
    let shown = scene.ctx(&["inspect", &id, "--json"]).success();
    assert!(shown.contains("section:host"), "{shown}");
    // It holds without being said again.
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        host.load(&id, cwd).await.unwrap();
        host.expect(&id.clone().into(), "still?", StopReason::EndTurn)
            .await;
    })
    .await;
    assert!(scene.sent(2).contains("Speak like a sailor."));
    scene.ctx(&["replay", &id, "--verify"]).success();
}

#[tokio::test(flavor = "multi_thread")]
async fn links_attachments_and_images_reach_the_model() {
    let scene = Scene::new([says("Seen.")]);
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        let id = host.session(scene.project.path()).await;
        let attached = TextResourceContents::new("fn secret_of_b() {}", "file:///p/b.rs");
        let blocks = vec![
            ContentBlock::from("Compare "),
            ContentBlock::ResourceLink(ResourceLink::new("a.rs", "file:///p/a.rs")),
            ContentBlock::Resource(EmbeddedResource::new(
                EmbeddedResourceResource::TextResourceContents(attached),
            )),
            ContentBlock::Image(ImageContent::new("aGVsbG8=", "image/png")),
        ];
        let response = host.send(&id, blocks).await.unwrap();
        assert_eq!(response.stop_reason, StopReason::EndTurn);
        let refused = host.send(&id, vec![ContentBlock::from(" ")]).await;
        assert!(refused.unwrap_err().message.contains("empty"));
    })
    .await;
    let sent = scene.sent(0);
    for part in [
        "file:///p/a.rs",
        "fn secret_of_b",
        "data:image/png;base64,aGVsbG8=",
    ] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_told_from_its_beginning_to_its_end() {
    let scene = Scene::new([
        Answer::Says(vec![
            Piece::Text("Looking."),
            Piece::Call("c1", "exec_shell", json!({"command": "cat note.txt"})),
        ]),
        calls("c2", "no_such_tool", json!({})),
        says("It says hi."),
    ]);
    scene.project.write("note.txt", "hi from the note");
    hosting(
        agent(&scene, &["--allow", "exec_shell"]),
        None,
        async |host| {
            host.initialize().await;
            let id = host.session(scene.project.path()).await;
            host.expect(&id, "read it", StopReason::EndTurn).await;
            let updates = host.updates(&id);
            let call = &host.of_kind(&id, "tool_call")[0];
            assert_eq!(call["title"], "cat note.txt");
            assert_eq!(call["kind"], "execute");
            assert_eq!(call["rawInput"]["command"], "cat note.txt");
            let name = call["toolCallId"].as_str().unwrap();
            assert_eq!(statuses(&updates, name), ["in_progress", "completed"]);
            let done = &host.of_kind(&id, "tool_call_update")[0];
            assert!(
                done["rawOutput"].to_string().contains("hi from the note"),
                "{done}"
            );
            assert!(
                done["content"].to_string().contains("hi from the note"),
                "{done}"
            );
            let failed = &host.of_kind(&id, "tool_call_update")[1];
            assert_eq!(failed["status"], "failed", "{failed}");
            nothing_dangles(&updates);
            assert!(host.asked().is_empty());
            assert_eq!(host.text(&id, "agent_message_chunk"), "Looking.It says hi.");
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_may_go_no_further_says_so() {
    let again = || calls("c", "skills_list", json!({}));
    let scene = Scene::new([again(), again(), again()]);
    hosting(agent(&scene, &["--max-steps", "2"]), None, async |host| {
        host.initialize().await;
        let id = host.session(scene.project.path()).await;
        host.expect(&id, "go", StopReason::MaxTurnRequests).await;
        nothing_dangles(&host.updates(&id));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_is_an_error_and_the_session_goes_on() {
    let refusal = Answer::Status(
        401,
        vec![],
        r#"{"error":{"message":"no such key"}}"#.to_owned(),
    );
    let scene = Scene::new([refusal, says("Here again.")]);
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        let id = host.session(scene.project.path()).await;
        let error = host.prompt(&id, "hello").await.unwrap_err();
        assert!(error.message.contains("no such key"), "{error:?}");
        host.expect(&id, "hello?", StopReason::EndTurn).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_needs_a_folder() {
    let scene = Scene::new([]);
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        for cwd in ["relative", "/no/such/folder"] {
            let error = host
                .new_session(NewSessionRequest::new(cwd))
                .await
                .unwrap_err();
            assert!(error.message.contains("cwd"), "{error:?}");
        }
        let error = host.prompt(&"nobody".into(), "hello").await.unwrap_err();
        assert_eq!(error.code.value(), -32002, "{error:?}");
        let bad = Map::from_iter([("systemPrompt".to_owned(), json!([1]))]);
        let request = NewSessionRequest::new(scene.project.path()).meta(bad);
        let error = host.new_session(request).await.unwrap_err();
        assert!(error.message.contains("systemPrompt"), "{error:?}");
    })
    .await;
}

/// The host's folder decides which project it is, and where commands begin.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_work_where_the_host_says() {
    let scene = Scene::new([
        calls("c1", "exec_shell", json!({"command": "pwd && touch made"})),
        says("Done."),
    ]);
    let inner = scene.project.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let id = hosting(agent(&scene, &["--allow-all"]), None, async |host| {
        host.initialize().await;
        let id = host.session(&inner).await;
        host.expect(&id, "where?", StopReason::EndTurn).await;
        let done = host.of_kind(&id, "tool_call_update").pop().unwrap();
        let real = inner.canonicalize().unwrap();
        assert!(
            done["rawOutput"]
                .to_string()
                .contains(real.to_str().unwrap()),
            "{done}"
        );
        id.to_string()
    })
    .await;
    assert!(inner.join("made").is_file());
    assert!(!inner.join(".contexture").exists());
    assert!(scene.project.log(&id).is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_work_at_once_and_one_takes_one_prompt_at_a_time() {
    // What a model is asked decides what it says, whoever is first.
    let server = ModelServer::answering(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        match body.contains("take your time") {
            true => Answer::Stalls(vec![Piece::Text("I begin and")], 2),
            false => says("At once."),
        }
    });
    let scene = Scene::with(server);
    let cwd = scene.project.path();
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        let (slow, quick) = (host.session(cwd).await, host.session(cwd).await);
        assert_ne!(slow, quick);
        let waiting = tokio::spawn(host.expect(&slow, "take your time", StopReason::Cancelled));
        host.sees_kind("agent_message_chunk").await;
        host.expect(&quick, "hello", StopReason::EndTurn).await;
        assert_eq!(host.text(&quick, "agent_message_chunk"), "At once.");
        let error = host.prompt(&slow, "and this?").await.unwrap_err();
        assert!(error.message.contains("under way"), "{error:?}");
        host.cancel(&slow);
        waiting.await.unwrap();
        host.expect(&quick, "again", StopReason::EndTurn).await;
    })
    .await;
}
