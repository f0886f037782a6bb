//! Servers that die, lie, flood, or never answer.

use std::time::{Duration, Instant};

use contexture_tools::Effect;
use contexture_tools::mcp::{Notice, State};
use serde_json::json;

use crate::mcp::common::*;

#[tokio::test]
async fn one_that_dies_during_a_call_fails_the_call_and_comes_back() {
    let (servers, _root) = ready("die").await;
    let outcome = call(&servers, "h:do", json!({})).await;
    assert!(outcome.failed);
    assert!(text(&outcome).contains("may have been done"), "{outcome:?}");
    until("restarting", || {
        matches!(state(&servers, "h"), State::Restarting { .. })
    })
    .await;
    let State::Restarting { why, .. } = state(&servers, "h") else {
        return;
    };
    assert!(
        why.contains("exit status: 7") && why.contains("segmentation fault"),
        "{why}"
    );
    assert!(
        names(&servers).contains(&"h:do".to_owned()),
        "its tools stay meanwhile"
    );
    until("ready again", || {
        matches!(state(&servers, "h"), State::Ready { .. })
    })
    .await;
}

#[tokio::test]
async fn one_that_never_answers_is_given_up_and_told_so() {
    let root = tempfile::tempdir().unwrap();
    let log = root.path().join("log");
    let mut config = hostile("never");
    config["timeoutSeconds"] = json!(1);
    config["env"] = json!({ "HOSTILE_LOG": log });
    let servers = start(&json!({ "h": config }), options(root.path()));
    assert!(servers.settled(LONG).await);
    let outcome = call(&servers, "h:do", json!({})).await;
    assert!(
        outcome.failed && text(&outcome).contains("within 1 s"),
        "{outcome:?}"
    );
    let cancelled = || {
        std::fs::read_to_string(&log)
            .unwrap()
            .matches("notifications/cancelled")
            .count()
    };
    until("cancelled", || cancelled() == 1).await;

    let tool = tool(&servers, "h:do");
    let arguments = serde_json::Map::new();
    let dropped = tokio::time::timeout(Duration::from_millis(100), tool.call(&arguments)).await;
    assert!(dropped.is_err());
    until("cancelled by being dropped", || cancelled() == 2).await;
    assert!(
        matches!(state(&servers, "h"), State::Ready { .. }),
        "it still runs"
    );
}

#[tokio::test]
async fn progress_extends_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut config = hostile("progress");
    config["timeoutSeconds"] = json!(1);
    let servers = start(&json!({ "h": config }), options(root.path()));
    assert!(servers.settled(LONG).await);
    let begun = Instant::now();
    assert!(call(&servers, "h:do", json!({})).await.failed);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_flood_on_its_standard_error_stops_nothing() {
    let (servers, _root) = ready("flood").await;
    let outcome = call(&servers, "h:do", json!({})).await;
    assert!(!outcome.failed, "{outcome:?}");
}

#[tokio::test]
async fn garbage_is_no_answer() {
    let root = tempfile::tempdir().unwrap();
    let mut options = options(root.path());
    options.start = Duration::from_secs(1);
    options.restarts = 1;
    let servers = start(&json!({ "h": hostile("garbage") }), options);
    until("failed", || {
        matches!(state(&servers, "h"), State::Failed { .. })
    })
    .await;
    assert!(names(&servers).is_empty());
}

#[tokio::test]
async fn why_one_failed_is_said_with_its_last_words() {
    let root = tempfile::tempdir().unwrap();
    let mut options = options(root.path());
    options.restarts = 2;
    let servers = start(
        &json!({ "h": hostile("crash"), "none": { "command": "no-such-program-1" },
                 "key": { "command": "x", "env": { "A": "${NO_SUCH_VARIABLE_1}" } } }),
        options,
    );
    until("failed", || {
        matches!(state(&servers, "h"), State::Failed { .. })
    })
    .await;
    let why = |name| match state(&servers, name) {
        State::Failed { why } => why,
        other => panic!("{name} is {other:?}"),
    };
    assert!(
        why("h").contains("no such database") && why("h").contains("3"),
        "{}",
        why("h")
    );
    assert!(why("key").contains("NO_SUCH_VARIABLE_1"));
    until("failed", || {
        matches!(state(&servers, "none"), State::Failed { .. })
    })
    .await;
    assert!(why("none").contains("no-such-program-1"), "{}", why("none"));
}

#[tokio::test]
async fn secrets_are_not_in_the_reasons() {
    let root = tempfile::tempdir().unwrap();
    let mut quote = hostile("quote");
    quote["env"] = json!({ "KEY": "sekrit-1" });
    let far = json!({ "url": "http://u:sekrit-2@127.0.0.1:9/mcp?key=sekrit-3",
        "headers": { "Authorization": "Bearer sekrit-4" } });
    let mut options = options(root.path());
    options.restarts = 0;
    let servers = start(&json!({ "quote": quote, "far": far }), options);
    assert!(servers.settled(LONG).await);
    let shown = format!("{:?}", servers.states());
    assert!(shown.contains("the key … is wrong"), "{shown}");
    assert!(shown.contains("refused"), "{shown}");
    assert!(!shown.contains("sekrit"), "{shown}");
}

#[tokio::test]
async fn ten_thousand_tools_are_cut_and_said() {
    let (servers, _root) = ready("many").await;
    assert_eq!(state(&servers, "h"), State::Ready { tools: 1_000 });
    let notice = Notice::TooMany {
        server: "h".to_owned(),
        kept: 1_000,
    };
    assert_eq!(servers.take_notices(), [notice]);
    assert!(!call(&servers, "h:tool_999", json!({})).await.failed);
}

#[tokio::test]
async fn a_list_without_end_ends() {
    let (servers, _root) = ready("endless").await;
    assert_eq!(state(&servers, "h"), State::Ready { tools: 0 });
}

#[tokio::test]
async fn a_list_that_never_comes_is_a_failure() {
    let root = tempfile::tempdir().unwrap();
    let mut options = options(root.path());
    options.start = Duration::from_secs(1);
    options.restarts = 0;
    let servers = start(&json!({ "h": hostile("no-list") }), options);
    assert!(servers.settled(LONG).await);
    let failed = state(&servers, "h");
    assert!(
        matches!(&failed, State::Failed { why } if why.contains("in time")),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_giant_result_loses_its_middle() {
    let (servers, _root) = ready("giant").await;
    let outcome = call(&servers, "h:do", json!({})).await;
    let text = text(&outcome);
    assert!(text.len() < (1 << 20) + 100, "{}", text.len());
    assert!(text.starts_with('<') && text.ends_with('>') && text.contains("left out"));
    assert!(outcome.summary.chars().count() <= 500);
}

#[tokio::test]
async fn a_line_without_end_ends_the_connection() {
    let (servers, _root) = ready("line").await;
    let outcome = call(&servers, "h:do", json!({})).await;
    assert!(outcome.failed, "{}", outcome.summary);
}

#[tokio::test]
async fn keys_are_not_inherited() {
    let root = tempfile::tempdir().unwrap();
    let mut config = hostile("env");
    config["env"] = json!({ "GIVEN": "${CARGO_PKG_NAME}!" });
    let servers = start(&json!({ "h": config }), options(root.path()));
    assert!(servers.settled(LONG).await);
    // Cargo sets this for tests, and no server was meant to have it.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let env = text(&call(&servers, "h:do", json!({})).await);
    assert!(
        env.contains("PATH=") && env.contains("GIVEN=contexture-tools!"),
        "{env}"
    );
    assert!(!env.contains("CARGO_MANIFEST_DIR"), "{env}");
}

#[tokio::test]
async fn servers_are_told_the_root_and_nothing_else() {
    let (servers, root) = ready("asks").await;
    let told = text(&call(&servers, "h:do", json!({})).await);
    let answers: Vec<serde_json::Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let answer = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    let uri = answer(1_000)["result"]["roots"][0]["uri"].as_str().unwrap();
    assert_eq!(uri, format!("file://{}", root.path().display()));
    assert!(answer(1_001)["error"].is_object(), "{told}");
    let input = answer(1_002);
    let declined = input["error"].is_object() || input["result"]["action"] == "decline";
    assert!(declined, "{told}");
}

#[tokio::test]
async fn what_a_tool_claims_decides_its_effect() {
    let (servers, _root) = ready("plain").await;
    let effect = |name| tool(&servers, name).spec().effect;
    assert_eq!(effect("h:do"), Effect::Acts);
    assert_eq!(effect("h:reads"), Effect::Reads);
    assert_eq!(effect("h:lies"), Effect::Acts);
}

#[tokio::test]
async fn a_server_without_a_handshake_is_asked_what_it_is() {
    let (servers, _root) = ready("modern").await;
    assert!(!call(&servers, "h:do", json!({})).await.failed);
}

#[tokio::test]
async fn without_a_supervisor_it_works_as_well() {
    let root = tempfile::tempdir().unwrap();
    let mut options = options(root.path());
    options.supervisor = None;
    let servers = start(&json!({ "h": hostile("plain") }), options);
    assert!(servers.settled(LONG).await);
    let said = text(&call(&servers, "h:do", json!({})).await);
    let pid: i32 = said.strip_prefix("pid ").unwrap().parse().unwrap();
    assert!(runs(pid));
    drop(servers);
    until("it ends", || !runs(pid)).await;
}
