//! A server that leads elsewhere: neither a key nor what was said goes to a host that nobody named.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::agent::scene::Scene;
use crate::common::Project;
use crate::fleet::scene::Daemon;
use crate::model_server::{Answer, ModelServer, Piece};

/// All the ways to be led elsewhere.
const WAYS: [u16; 5] = [301, 302, 303, 307, 308];

/// A server that leads to another one, and that other one, which would take anything.
fn leading(status: u16) -> (ModelServer, ModelServer) {
    let other = ModelServer::answering(|_| Answer::Says(vec![Piece::Text("Thank you.")]));
    let to = format!("{}/elsewhere", other.url);
    let first = ModelServer::answering(move |_| {
        Answer::Status(status, vec![("location", to.clone())], String::new())
    });
    (first, other)
}

#[test]
fn a_models_key_stays_with_the_host_that_was_named() {
    for status in WAYS {
        let (first, other) = leading(status);
        let scene = Scene::with(first);
        for model in ["openai:m", "openai-responses:m", "anthropic:m"] {
            let (_, said) = scene.run(model, &["the secret is 42"]).ends(1);
            assert!(
                said.contains(&status.to_string()),
                "{model} {status}: {said}"
            );
        }
        assert!(!scene.server.seen().is_empty());
        assert!(other.seen().is_empty(), "{status}: {:?}", other.seen());
    }
}

#[test]
fn an_mcp_servers_headers_stay_with_it() {
    for status in WAYS {
        let (first, other) = leading(status);
        let project = Project::new();
        let headers = json!({ "x-api-key": "secret-of-the-tests", "authorization": "Bearer secret-of-the-tests" });
        let config = json!({ "mcpServers": { "far": { "url": format!("{}/mcp", first.url), "headers": headers } } });
        project.write("contexture.json", config.to_string());
        project.ctx(&["trust", "--yes"]).success();
        let list = project.ctx(&["mcp", "list", "--json"]).json();
        assert_ne!(list[0]["state"], "ready", "{list}");
        let seen = first.seen();
        assert_eq!(seen[0].header("x-api-key"), Some("secret-of-the-tests"));
        assert!(other.seen().is_empty(), "{status}: {:?}", other.seen());
    }
}

#[test]
fn traces_go_to_the_collector_that_was_named() {
    for status in [302, 307] {
        let (collector, other) = leading(status);
        let endpoint = collector.url.trim_end_matches("/v1");
        let env = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ];
        let daemon = Daemon::with(Project::new(), &env);
        daemon.agent("bot", "service");
        daemon.prompt("bot", "canvas <p>secret words</p>");
        let until = Instant::now() + Duration::from_secs(15);
        while collector.seen().is_empty() {
            assert!(Instant::now() < until, "nothing was exported");
            std::thread::sleep(Duration::from_millis(50));
        }
        // Whoever follows does so at once.
        std::thread::sleep(Duration::from_millis(500));
        assert!(other.seen().is_empty(), "{status}: {:?}", other.seen());
    }
}
