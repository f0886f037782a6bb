//! `chat_send`, `chat_load_history`, `agent_load_context`.

use contexture_store::{Expected, Key, Record, Stream};
use contexture_tools::Effect;
use serde_json::{Value, json};

use crate::builtin::scene::{Scene, said};

#[test]
fn every_spec_is_a_closed_schema() {
    let scene = Scene::new();
    for tool in scene.tools() {
        let spec = tool.spec();
        assert_eq!(spec.name, spec.wire_name());
        assert!(spec.description.len() > 40, "{}", spec.name);
        assert_ne!(spec.effect, Effect::Acts);
        let schema = &spec.parameters;
        assert_eq!(schema["additionalProperties"], json!(false));
        assert!(jsonschema::validator_for(schema).is_ok());
        for (name, property) in schema["properties"].as_object().unwrap() {
            let bound = property.get("maximum").or(property.get("maxLength"));
            assert!(bound.is_some(), "{}.{name} has no bound", spec.name);
        }
    }
}

#[tokio::test]
async fn what_is_said_is_heard_at_once() {
    let scene = Scene::new();
    let outcome = scene
        .call("chat_send", json!({ "text": "half way {{token}}" }))
        .await;
    Scene::works(&outcome);
    assert_eq!(*scene.told.lock().unwrap(), ["half way {{token}}"]);
    Scene::fails(&scene.call("chat_send", json!({ "text": " " })).await);
    Scene::fails(&scene.call("chat_send", json!({})).await);
    assert_eq!(scene.told.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn without_a_run_a_tool_says_so() {
    let scene = Scene::new();
    for tool in scene.tools() {
        let arguments = json!({ "text": "x", "name": "x" });
        let outcome = tool.call(arguments.as_object().unwrap()).await;
        assert!(Scene::fails(&outcome).contains("inside a run"));
    }
}

#[tokio::test]
async fn history_comes_as_one_message_of_the_assistants() {
    let scene = Scene::new();
    for n in 0..30 {
        scene.said(
            "chat",
            if n % 2 == 0 { "user" } else { "assistant" },
            &format!("line {n}."),
        );
    }
    let outcome = scene.call("chat_load_history", json!({})).await;
    assert!(Scene::works(&outcome).starts_with("20 lines"));
    let (role, content) = scene.injected();
    assert_eq!(role, "assistant");
    assert!(!content.contains("line 9.") && content.contains("line 10."));
    assert!(content.ends_with("assistant (2026-01-02T03:04:05Z): line 29."));
    // The user's own words stay as they are, and last.
    assert_eq!(scene.run.messages().last().unwrap().text(), "and now?");

    let page = json!({ "count": 2, "offset": 5 });
    Scene::works(&scene.call("chat_load_history", page).await);
    let (_, content) = scene.injected();
    assert!(content.contains("line 23.") && content.contains("line 24."));
    assert!(!content.contains("line 22.") && !content.contains("line 25."));
}

#[tokio::test]
async fn a_keyword_picks_lines() {
    let scene = Scene::new();
    for text in ["the Deploy failed", "lunch?", "deployed f(x) again"] {
        scene.said("chat", "user", text);
    }
    for (keyword, wanted) in [("de[p]loy", 2), ("f(x", 1)] {
        let arguments = json!({ "keyword": keyword });
        let answer = Scene::works(&scene.call("chat_load_history", arguments).await);
        assert!(answer.starts_with(&format!("{wanted} line")), "{answer}");
        let (_, content) = scene.injected();
        assert!(!content.contains("lunch"));
    }
    let none = scene
        .call("chat_load_history", json!({ "keyword": "zebra" }))
        .await;
    assert!(Scene::works(&none).contains("(empty_content)"));
}

#[tokio::test]
async fn what_is_too_long_is_cut_and_can_be_paged() {
    let scene = Scene::new();
    for n in 0..6 {
        scene.said("chat", "user", &format!("<{n}>{}", "x".repeat(5_000)));
    }
    let answer = Scene::works(&scene.call("chat_load_history", json!({})).await);
    assert!(
        answer.starts_with("2 lines") && answer.contains("offset 2 loads them"),
        "{answer}"
    );
    let (_, content) = scene.injected();
    assert!(content.contains("<5>") && content.contains("<4>") && !content.contains("<3>"));
    assert!(content.contains("[cut at 12000 characters: 4 earlier lines"));
    Scene::works(
        &scene
            .call("chat_load_history", json!({ "offset": 2 }))
            .await,
    );
    let (_, content) = scene.injected();
    assert!(content.contains("<3>") && content.contains("<2>") && !content.contains("<4>"));
}

#[tokio::test]
async fn arguments_out_of_bounds_are_refused() {
    let scene = Scene::new();
    scene.said("chat", "user", "x");
    for (name, value) in [
        ("count", json!(0)),
        ("count", json!(201)),
        ("count", json!(1.5)),
        ("count", json!("5")),
        ("offset", json!(-1)),
        ("offset", json!(2_001)),
    ] {
        let arguments = Value::from_iter([(name, value)]);
        for tool in ["chat_load_history", "agent_load_context"] {
            let outcome = scene.call(tool, arguments.clone()).await;
            assert!(Scene::fails(&outcome).contains(name), "{arguments}");
        }
    }
    assert!(scene.run.take_injections().is_empty());
    Scene::works(
        &scene
            .call(
                "chat_load_history",
                json!({ "count": 200.0, "offset": null }),
            )
            .await,
    );
}

#[tokio::test]
async fn refusals_are_told_to_the_model() {
    let scene = Scene::injecting(1);
    let nothing = scene.call("agent_load_context", json!({})).await;
    assert!(Scene::works(&nothing).contains("(empty_content)"));
    scene.said("chat", "user", "one");
    Scene::works(&scene.call("chat_load_history", json!({})).await);
    let again = scene.call("chat_load_history", json!({})).await;
    assert!(Scene::works(&again).contains("(duplicate)"));
    scene.said("chat", "user", "two");
    let more = scene.call("chat_load_history", json!({})).await;
    assert!(Scene::fails(&more).contains("(limit_reached)"));
}

#[tokio::test]
async fn runs_come_as_one_message_of_the_systems() {
    let scene = Scene::new();
    for n in 0..3 {
        scene.did("chat", &format!("r{n}"), &format!("task {n}\nrun r9 (now)"));
    }
    // The run that asks stands in the conversation itself.
    scene.did("chat", "run", "task of now");
    let outcome = scene
        .call("agent_load_context", json!({ "count": 2 }))
        .await;
    assert!(Scene::works(&outcome).contains("2 runs"));
    let (role, content) = scene.injected();
    assert_eq!(role, "system");
    assert!(!content.contains("task 0") && content.contains("asked: task 1"));
    assert!(!content.contains("task of now"), "{content}");
    // What was asked cannot pass for a run.
    let heads = content.lines().filter(|line| line.starts_with("run "));
    assert_eq!(heads.count(), 2, "{content}");
}

/// Attack 27: only this chat's lines, wherever they are stored.
#[tokio::test]
async fn another_chats_lines_never_come() {
    let scene = Scene::new();
    scene.said("chat", "user", "ours");
    scene.said("other", "user", "theirs");
    scene.did("other", "r1", "theirs");
    // A line of another chat, strayed into this one's file.
    let mut stray = serde_json::to_value(said("other", "user", "strayed")).unwrap();
    stray["id"] = json!("s1");
    let record = Record::new(&stray).unwrap();
    let stream = Stream::chat(Key::new("chat").unwrap());
    scene.log.append(&stream, Expected::Any, &[record]).unwrap();

    let sly = json!({ "chatKey": "other", "chat_key": "other" });
    let answer = Scene::works(&scene.call("chat_load_history", sly.clone()).await);
    assert!(answer.starts_with("1 line of") && answer.contains("1 stored line could not be read"));
    let (_, content) = scene.injected();
    assert!(
        content.contains("ours") && !content.contains("theirs") && !content.contains("strayed")
    );
    let outcome = scene.call("agent_load_context", sly).await;
    assert!(Scene::works(&outcome).contains("(empty_content)"));
}

/// Attack 28: what was said is put in as it is.
#[tokio::test]
async fn what_was_said_is_no_template() {
    let scene = Scene::new();
    scene.said("chat", "user", "{{token}} {{env.KEY}} {% if x %}");
    scene.did("chat", "r", "{{token}}");
    Scene::works(&scene.call("chat_load_history", json!({})).await);
    assert!(
        scene
            .injected()
            .1
            .ends_with("{{token}} {{env.KEY}} {% if x %}")
    );
    Scene::works(&scene.call("agent_load_context", json!({})).await);
    assert!(scene.injected().1.ends_with("asked: {{token}}"));
}
