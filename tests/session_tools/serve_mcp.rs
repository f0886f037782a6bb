use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, ClientConfig};
use rmcp::service::{NotificationContext, RoleClient, RunningService, ServiceError};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::session_tools::daemon::Daemon;

/// Enough for anything that is not stuck.
const LONG: Duration = Duration::from_secs(60);

#[derive(Clone, Default)]
struct Listener(Arc<Notify>);

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let version = rmcp::model::ProtocolVersion::LATEST_WITH_INITIALIZE;
        ClientConfig::default().with_protocol_version(version)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.notify_one();
    }
}

/// An MCP client of `ctx mcp serve`.
async fn client(daemon: &Daemon) -> (RunningService<RoleClient, Listener>, Arc<Notify>) {
    let command = daemon.ctx("bot", &["mcp", "serve"]).command();
    let command = tokio::process::Command::from(command);
    let listener = Listener::default();
    let changed = Arc::clone(&listener.0);
    let process = TokioChildProcess::new(command).unwrap();
    (listener.serve(process).await.unwrap(), changed)
}

fn asking(name: &str, arguments: Value) -> CallToolRequestParams {
    let arguments: serde_json::Map<String, Value> = serde_json::from_value(arguments).unwrap();
    CallToolRequestParams::new(name.to_owned()).with_arguments(arguments)
}

/// Whether it failed, and what it said.
async fn call(
    client: &RunningService<RoleClient, Listener>,
    name: &str,
    arguments: Value,
) -> (bool, String) {
    let done = tokio::time::timeout(LONG, client.call_tool(asking(name, arguments))).await;
    let done = done.unwrap().unwrap();
    let text = serde_json::to_value(&done.content[0]).unwrap();
    (
        done.is_error == Some(true),
        text["text"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn the_sessions_tools_are_an_mcp_servers() {
    let daemon = Daemon::start();
    daemon.block_on(async {
        let (client, _) = client(&daemon).await;
        let info = client.peer_info().unwrap();
        assert!(
            info.instructions
                .as_deref()
                .unwrap()
                .contains("this session")
        );
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["canvas_update", "canvas_clear"]);
        assert_eq!(tools[0].input_schema["required"], json!(["html"]));
        let (failed, text) = call(&client, "canvas_update", json!({"html": "<p>é</p>"})).await;
        assert_eq!((failed, text.as_str()), (false, r#"{"bytes":9}"#));
        let (failed, text) = call(&client, "canvas_clear", json!({})).await;
        assert_eq!((failed, text.as_str()), (false, "cleared"));
        let (failed, text) = call(&client, "canvas_update", json!({"html": 5})).await;
        assert!(failed && text.contains("`html` must be a string"), "{text}");
        let unknown = client
            .call_tool(asking("no_such", json!({})))
            .await
            .unwrap_err();
        assert!(
            matches!(unknown, ServiceError::McpError(ref error) if error.code.0 == -32602),
            "{unknown:?}"
        );
        let called = daemon.fake.called.lock().unwrap().len();
        assert_eq!(
            called, 3,
            "a tool that is not the session's is never called"
        );
        client.cancel().await.unwrap();
    });
}

/// Attack 24: a tool that is described otherwise than before is told of.
#[test]
fn a_changed_list_is_told_of() {
    let daemon = Daemon::start();
    daemon.block_on(async {
        let (client, changed) = client(&daemon).await;
        client.list_all_tools().await.unwrap();
        daemon.fake.tools.lock().unwrap()[0]["description"] = json!("Sends the page to everybody.");
        tokio::time::timeout(LONG, changed.notified()).await.expect("nobody tells");
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools[0].description.as_deref(), Some("Sends the page to everybody."));
        daemon.fake.tools.lock().unwrap().push(
            json!({"name": "denied", "description": "", "parameters": {}, "rpcMethod": "x", "scope": "all"}),
        );
        // A new one can be called before it was listed; and what is refused says so.
        let (failed, text) = call(&client, "denied", json!({})).await;
        assert!(failed && text.contains("above your scope"), "{text}");
        client.cancel().await.unwrap();
    });
}

#[test]
fn a_daemon_that_is_gone_is_an_error_to_read_and_no_crash() {
    let mut daemon = Daemon::start();
    let (client, _) = daemon.block_on(client(&daemon));
    daemon.stop();
    daemon.block_on(async {
        for name in ["canvas_clear", "no_such"] {
            let (failed, text) = call(&client, name, json!({})).await;
            assert!(failed && text.contains("no daemon answers"), "{text}");
        }
        let listed = client.list_all_tools().await.unwrap_err();
        assert!(listed.to_string().contains("no daemon answers"), "{listed}");
        client.cancel().await.unwrap();
    });
}

#[test]
fn a_session_without_a_token_is_not_served() {
    let daemon = Daemon::start();
    let none = daemon
        .project
        .ctx(&["mcp", "serve"])
        .env("CONTEXTURE_URL", &daemon.url);
    none.failure(5, "CONTEXTURE_SESSION_TOKEN is not set");
    let gone = daemon.ctx("gone", &["mcp", "serve"]);
    daemon.fake.tokens.revoke_agent("gone");
    gone.failure(5, "counts no more");
}

/// Attack 8: a token that is revoked meanwhile ends the calls, and says so.
#[test]
fn a_token_that_is_revoked_meanwhile_is_said_to_be() {
    let daemon = Daemon::start();
    daemon.block_on(async {
        let (client, _) = client(&daemon).await;
        daemon.fake.tokens.revoke_agent("bot");
        let (failed, text) = call(&client, "canvas_clear", json!({})).await;
        assert!(failed && text.contains("counts no more"), "{text}");
        client.cancel().await.unwrap();
    });
}

/// The protocol itself, line by line.
#[test]
fn standard_output_carries_the_protocol_alone_and_ends_with_standard_input() {
    let daemon = Daemon::start();
    daemon.fake.tools.lock().unwrap().push(
        json!({"name": "hang", "description": "", "parameters": {"type": "object"}, "rpcMethod": "x", "scope": "all"}),
    );
    let mut command = daemon.ctx("bot", &["mcp", "serve"]).command();
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let info = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
    let mut send = |value: Value| writeln!(stdin, "{value}").unwrap();
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}));
    let hello = next();
    assert_eq!(
        (&hello["id"], &hello["result"]["serverInfo"]["name"]),
        (&json!(1), &json!("contexture"))
    );
    assert_eq!(
        hello["result"]["capabilities"]["tools"]["listChanged"],
        json!(true)
    );
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    send(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    assert_eq!(next(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    // A call that is called off reaches the daemon as a call that is dropped, and the next is answered.
    send(
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "hang", "arguments": {}}}),
    );
    let begun = Instant::now();
    let until = |many: usize| {
        while daemon.fake.running.load(Ordering::SeqCst) != many {
            assert!(begun.elapsed() < LONG, "never {many}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    until(1);
    send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2, "reason": "enough"}}),
    );
    until(0);
    send(json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
    assert_eq!(next()["id"], json!(3));
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert!(lines.next().is_none());
}
