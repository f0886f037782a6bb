//! Errors that name the real cause, before anything is sent.

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::json;

use crate::agent::scene::{Scene, says};
use crate::common::Project;

/// Whoever is called by mistake hears of it.
fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

#[test]
fn a_missing_key_is_named_before_anything_is_sent() {
    let project = Project::new();
    let (called, proxy) = listener();
    for (model, variable) in [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("openai-responses:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-opus-4-8", "ANTHROPIC_API_KEY"),
    ] {
        for command in [&["run", "hi"][..], &["chat"], &["orchestrate", "go"]] {
            let error = project
                .ctx(&[command, &["--model", model]].concat())
                .env(variable, "")
                .env("HTTPS_PROXY", &proxy)
                .failure_json(2, variable);
            assert_eq!(error["code"], "Usage", "{error}");
        }
    }
    let nobody = called.accept().map(drop).unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::WouldBlock);
    // A server of one's own may need none.
    let scene = Scene::new([says("Hello.")]);
    scene
        .run("openai:m", &["hi"])
        .env("OPENAI_API_KEY", "")
        .success();
}

#[test]
fn unknown_providers_and_bad_addresses_are_usage_errors() {
    let project = Project::new();
    project
        .ctx(&["run", "hi", "--model", "opanai:gpt-5"])
        .failure(2, "names no provider");
    for (url, why) in [
        ("nonsense", "is no address"),
        ("http://", "is no address"),
        ("ftp://example.org", "must begin with http"),
        ("localhost:8080", "must begin with http"),
    ] {
        project
            .ctx(&["run", "hi", "--model", "openai:m", "--base-url", url])
            .failure(2, why);
    }
}

#[test]
fn a_share_that_makes_no_sense_is_named() {
    let project = Project::new();
    let input = |config| {
        json!({"inputMessages": [{"role": "user", "content": "hi"}], "config": config}).to_string()
    };
    for (config, why) in [
        (json!({"triggerPercent": 150}), "config.triggerPercent: 150"),
        (json!({"triggerPercent": 0}), "config.triggerPercent: 0"),
        (
            json!({"triggerPercent": 30, "targetPercent": 30}),
            "config.targetPercent",
        ),
        (json!({"enableCompaction": 1}), "config.enableCompaction"),
    ] {
        project.ctx(&["build"]).input(input(config)).failure(3, why);
    }
    project.write("contexture.json", r#"{"context":{"triggerPercent":150}}"#);
    let said = project
        .ctx(&["build"])
        .input(input(json!({})))
        .failure(3, "context.triggerPercent");
    assert!(said.contains("not 150"), "{said}");
}

#[test]
fn a_tool_that_there_is_not_cannot_be_allowed() {
    let scene = Scene::new([says("Hello.")]);
    for (name, hint) in [
        ("exec_shel", "did you mean `exec_shell`?"),
        ("files:*", "there are "),
        ("nosuch", "there are "),
    ] {
        let error = scene
            .run("openai:m", &["hi", "--allow", name])
            .failure_json(2, name);
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
    }
    assert!(scene.server.seen().is_empty(), "nothing was sent");
    scene
        .run("openai:m", &["hi", "--allow", "exec_shell"])
        .success();
}
