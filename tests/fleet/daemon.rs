//! The daemon itself: one for a project, found by commands, spoken with over HTTP.

use serde_json::json;

use crate::common::Project;
use crate::fleet::scene::Daemon;
use crate::model_server::{Answer, ModelServer, Seen};

#[test]
fn there_is_one_daemon_for_a_project() {
    let daemon = Daemon::start();
    daemon
        .ctx(&["serve", "--listen", "127.0.0.1:0"])
        .failure(1, "already");
    let file = daemon.project.state().join("daemon.json");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn health_and_methods_are_told_without_a_secret_and_hold_none() {
    let daemon = Daemon::start();
    let health = daemon.get("/healthz", "");
    assert_eq!(
        (health.status, health.body.contains("\"ok\"")),
        (200, true),
        "{}",
        health.body
    );
    let openapi = daemon.get("/openapi.json", "");
    for method in [
        "context.build",
        "session.prepare",
        "agent.prompt",
        "internal.callTool",
        "canvas.get",
    ] {
        assert!(openapi.body.contains(method), "{method}");
    }
    assert!(!openapi.body.contains(&daemon.secret()));
}

#[test]
fn the_core_is_there_for_whoever_is_not_written_in_rust() {
    let daemon = Daemon::start();
    let input = json!({"messages": [{"role": "user", "content": "hello"}]});
    let built = daemon.call(&daemon.secret(), "context.build", &input);
    let here = daemon
        .ctx(&["build", "--json"])
        .input(input.to_string())
        .json();
    assert_eq!(
        built["result"]["receipt"]["digest"], here["receipt"]["digest"],
        "{built}"
    );
    let count = daemon.call(&daemon.secret(), "context.estimateTokens", &input);
    assert_eq!(
        count["result"]["tokens"], here["stats"]["inputTokens"],
        "{count}"
    );
    let wrong = daemon.call(&daemon.secret(), "context.build", &json!({"messages": 1}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    let unknown = daemon.call(&daemon.secret(), "context.buidl", &json!({}));
    assert_eq!(
        unknown["error"]["data"]["hint"],
        "did you mean `context.build`?"
    );
}

#[test]
fn what_happens_is_told_as_it_happens() {
    use std::io::{Read, Write};
    let daemon = Daemon::start();
    let mut stream = daemon.connect();
    let secret = daemon.secret();
    write!(
        stream,
        "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {secret}\r\n\r\n",
        daemon.host()
    )
    .unwrap();
    let mut seen = String::new();
    let mut chunk = [0; 4096];
    let mut until = |needle: &str| {
        while !seen.contains(needle) {
            let read = stream.read(&mut chunk).unwrap();
            assert!(read > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
    };
    until("200 OK");
    daemon.prepare("bot", "service");
    until("session:preparing");
    until("session:context-ready");
    until(r#""toolCount":2"#);
}

/// A command that is told of events.
#[test]
fn hooks_of_a_trusted_folder_run() {
    let project = Project::new();
    let hook = json!({"event": "session:*", "command": ["sh", "-c", "cat >> seen; echo >> seen"]});
    project.write("contexture.json", json!({"hooks": [hook]}).to_string());
    let daemon = Daemon::over(project);
    daemon.prepare("bot", "repo");
    assert!(!daemon.project.path().join("seen").exists());
    let project = Project::new();
    project.write("contexture.json", json!({"hooks": [hook]}).to_string());
    project.ctx(&["trust", "--yes"]).success();
    let daemon = Daemon::over(project);
    daemon.prepare("bot", "repo");
    let seen = daemon.project.path().join("seen");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let text = std::fs::read_to_string(&seen).unwrap_or_default();
        if text.contains("session:preparing") && text.contains("session:context-ready") {
            break;
        }
        assert!(std::time::Instant::now() < until, "{text}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn commands_work_without_a_daemon_where_they_can() {
    let project = Project::new();
    project
        .ctx(&["agent", "create", "bot", "--backend", "native"])
        .success();
    let list = project.ctx(&["agent", "list", "--json"]).json();
    assert_eq!(list[0]["backendType"], "native");
    project
        .ctx(&["agent", "prompt", "bot", "hello"])
        .failure(1, "no daemon runs");
    project
        .ctx(&["canvas", "show", "bot"])
        .failure(1, "shows nothing");
    project
        .ctx(&["agent", "create", "bot"])
        .failure(1, "already");
    project.ctx(&["agent", "rm", "bot"]).success();
    assert_eq!(
        project.ctx(&["agent", "list"]).success(),
        " no agents: `ctx agent create NAME` makes one\n"
    );
}

/// Spans with the names of the GenAI conventions, and nothing of what was said.
#[test]
fn traces_go_to_a_collector() {
    let collector = ModelServer::answering(|_| {
        let kind = ("content-type", "application/json".to_owned());
        Answer::Status(200, vec![kind], "{}".to_owned())
    });
    let endpoint = collector.url.trim_end_matches("/v1");
    let daemon = Daemon::with(Project::new(), &[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)]);
    daemon.agent("bot", "service");
    daemon.prompt("bot", "canvas <p>secret words</p>");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(15);
    let mut spans = Vec::new();
    while spans.len() < 2 {
        assert!(std::time::Instant::now() < until, "{spans:?}");
        std::thread::sleep(std::time::Duration::from_millis(50));
        let seen = collector.seen();
        assert!(seen.iter().all(|sent| sent.path == "/v1/traces"));
        let of = |sent: &Seen| sent.json()["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
        let all = seen.iter().map(of);
        spans = all
            .flat_map(|list| list.as_array().unwrap().clone())
            .collect();
    }
    let names: Vec<&str> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["execute_tool canvas_update", "invoke_agent bot"]);
    assert_eq!(spans[0]["traceId"], spans[1]["traceId"]);
    assert_eq!(spans[0]["parentSpanId"], spans[1]["spanId"]);
    let text = serde_json::to_string(&spans).unwrap();
    assert!(
        text.contains("gen_ai.conversation.id") && !text.contains("secret words"),
        "{text}"
    );
}
