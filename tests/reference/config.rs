//! `ctx config show`: each setting with its value and where that comes from.

use serde_json::{Value, json};

use crate::common::Project;

/// A user's and a project's file.
fn project(user: &Value, own: &Value) -> Project {
    let project = Project::new();
    let folder = project.home().join(".config/contexture");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("contexture.json"), user.to_string()).unwrap();
    project.write("contexture.json", own.to_string());
    project
}

fn row(shown: &Value, key: &str) -> Value {
    let mut all = shown["settings"].as_array().unwrap().iter();
    all.find(|row| row["key"] == key).unwrap().clone()
}

#[test]
fn each_value_says_where_it_comes_from() {
    let user = json!({
        "model": "openai:mine", "agent": { "maxSteps": 20 }, "shell": { "allow": ["git"], "denyRead": ["~/a"] },
        "toolPolicy": { "deniedTools": ["x"] },
    });
    let own = json!({
        "context": { "maxInputTokens": 9000 }, "agent": { "maxSteps": 40 }, "baseUrl": "http://127.0.0.1:9/v1",
        "shell": { "allow": ["git status", "rm"], "denyRead": [".env"] }, "toolPolicy": { "deniedTools": ["y"] },
    });
    let project = project(&user, &own);
    let show = |more: &[&str]| {
        let args = [&["config", "show", "--json"], more].concat();
        project
            .ctx(&args)
            .env("CONTEXTURE_HUB_URL", "nats://me:s3cret-word@broker:4222")
            .json()
    };
    let shown = show(&[]);
    let value = |key: &str| {
        let row = row(&shown, key);
        (
            row["value"].clone(),
            row["source"].as_str().unwrap().to_owned(),
        )
    };
    let is = |key: &str, expected: Value, source: &str| {
        assert_eq!(value(key), (expected, source.to_owned()), "{key}");
    };
    is("model", json!("openai:mine"), "user");
    is("context.maxInputTokens", json!(9000), "project");
    is("agent.maxSteps", json!(20), "user");
    is("context.triggerPercent", json!(85), "default");
    is(
        "hub.url",
        json!("nats://me:[masked]@broker:4222"),
        "environment",
    );
    assert_eq!(row(&shown, "hub.url")["name"], "CONTEXTURE_HUB_URL");
    // What needs trust does not count, and is shown beside.
    is("baseUrl", Value::Null, "default");
    assert_eq!(row(&shown, "baseUrl")["withheld"], "http://127.0.0.1:9/v1");
    is("shell.allow", json!(["git"]), "user");
    assert_eq!(
        row(&shown, "toolPolicy")["withheld"],
        json!({ "deniedTools": ["y"] })
    );
    is("shell.denyRead", json!(["~/a", ".env"]), "both");
    assert_eq!(shown["trust"], "unknown");
    let words = project.ctx(&["config", "show"]).success();
    assert!(
        words.contains("not trusted: http://127.0.0.1:9/v1"),
        "{words}"
    );
    // Options stand over everything.
    let with = show(&[
        "--model",
        "ollama:qwen3",
        "--max-steps",
        "7",
        "--budget",
        "2k",
    ]);
    for (key, expected, option) in [
        ("model", json!("ollama:qwen3"), "--model"),
        ("agent.maxSteps", json!(7), "--max-steps"),
        ("context.maxInputTokens", json!(2000), "--budget"),
    ] {
        let row = row(&with, key);
        assert_eq!(
            (&row["value"], row["source"].as_str(), row["name"].as_str()),
            (&expected, Some("option"), Some(option))
        );
    }
    // Trusted, both files count as they do for `ctx run`.
    project.ctx(&["trust", "--yes"]).success();
    let shown = show(&[]);
    assert_eq!(shown["trust"], "trusted");
    assert_eq!(row(&shown, "baseUrl")["source"], "project");
    let allow = row(&shown, "shell.allow");
    assert_eq!(
        (&allow["value"], &allow["source"]),
        (&json!(["git status"]), &json!("both"))
    );
    assert_eq!(
        row(&shown, "toolPolicy")["value"],
        json!([{ "deniedTools": ["x"] }, { "deniedTools": ["y"] }])
    );
}

#[test]
fn every_key_is_shown_and_no_secret() {
    let user = json!({
        "store": { "url": "postgres://me:s3cret-word@127.0.0.1:9/db" },
        "mcpServers": { "wiki": { "url": "https://w/mcp", "headers": { "Authorization": "Bearer s3cret-word" } } },
    });
    let project = project(
        &user,
        &json!({ "mcpServers": { "own": { "command": "x", "env": { "A": "s3cret-word" } } } }),
    );
    let show = || project.ctx(&["config", "show", "--json"]);
    for args in [&["config", "show"][..], &["config", "show", "--json"]] {
        let shown = project.ctx(args).success();
        assert!(
            shown.contains("[masked]") && !shown.contains("s3cret-word"),
            "{shown}"
        );
    }
    // The table of keys gives the schema, too.
    let schema = project.ctx(&["config", "schema"]).json();
    for row in show().json()["settings"].as_array().unwrap() {
        let path = row["key"].as_str().unwrap().replace('.', "/properties/");
        assert!(
            schema.pointer(&format!("/properties/{path}")).is_some(),
            "{path}"
        );
    }
    let count = |value: &Value| value.as_array().unwrap().len();
    assert!(count(&show().json()["settings"]) > 35);
}
