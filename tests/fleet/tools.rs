//! The internal tools, by both doors, and what a token allows.

use serde_json::{Value, json};

use crate::fleet::scene::Daemon;

#[test]
fn an_agent_shows_a_page_through_its_mcp_server_until_it_is_stopped() {
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    let said = daemon.prompt("bot", "canvas <h1>Hello</h1>");
    assert!(said.contains("updatedAt"), "{said}");
    assert_eq!(
        daemon.ctx(&["canvas", "show", "bot"]).success(),
        "<h1>Hello</h1>"
    );
    let page = daemon.ctx(&["canvas", "show", "bot", "--json"]).json();
    assert_eq!(
        (&page["agentName"], &page["title"]),
        (&json!("bot"), &json!("A title"))
    );
    let audit = daemon.logged("tool:called", 1);
    assert_eq!(
        (&audit[0]["tool"], &audit[0]["success"]),
        (&json!("canvas_update"), &json!(true))
    );
    assert_eq!(audit[0]["token"].as_str().unwrap().len(), 8);
    daemon.ctx(&["agent", "stop", "bot"]).success();
    // The page stays, the token does not.
    assert_eq!(
        daemon.ctx(&["canvas", "show", "bot"]).success(),
        "<h1>Hello</h1>"
    );
    assert_eq!(
        daemon.logged("session:tokens-revoked", 1)[0]["agent"],
        "bot"
    );
}

#[test]
fn a_repo_agent_has_no_canvas() {
    let daemon = Daemon::start();
    daemon.agent("bot", "repo");
    let context = daemon.prompt("bot", "context");
    assert!(!context.contains("canvas"), "{context}");
    let (_, token) = daemon.prepare("other", "repo");
    let tools = daemon.call(&token, "internal.tools", &json!({}));
    assert_eq!(tools["result"]["tools"], json!([]));
    for method in ["internal.canvasUpdate", "internal.callTool"] {
        let params = match method {
            "internal.callTool" => json!({"name": "canvas_update", "arguments": {"html": "x"}}),
            _ => json!({"html": "x"}),
        };
        let answer = daemon.call(&token, method, &params);
        assert_eq!(answer["error"]["data"]["kind"], "not_allowed", "{answer}");
    }
    // Failures are noted too.
    let audit = daemon.logged("tool:called", 2);
    assert!(
        audit
            .iter()
            .all(|event| event["success"] == false && event["error"].is_string())
    );
}

#[test]
fn ctx_tool_goes_by_the_sessions_token() {
    let daemon = Daemon::start();
    let (_, token) = daemon.prepare("bot", "employee");
    let tool = |args: &[&str], token: &str| {
        daemon
            .ctx(&[&["tool"], args].concat())
            .env("CONTEXTURE_URL", &daemon.url)
            .env("CONTEXTURE_SESSION_TOKEN", token)
    };
    let list = tool(&["list", "--json"], &token).json();
    assert!(list.to_string().contains("canvas_update"), "{list}");
    tool(&["call", "canvas_update", "--arg", "html=<b>x</b>"], &token).success();
    assert_eq!(daemon.ctx(&["canvas", "show", "bot"]).success(), "<b>x</b>");
    tool(&["call", "canvas_update", "--arg", "htm=x"], &token).failure(3, "html");
    tool(&["call", "agent_stop"], &token).failure(5, "no tool");
    tool(&["list"], &"0".repeat(64)).failure(5, "token");
    tool(&["list"], "").failure(5, "CONTEXTURE_SESSION_TOKEN");
}

#[test]
fn a_page_is_bounded_and_a_long_argument_is_cut_in_the_audit() {
    let daemon = Daemon::start();
    let (_, token) = daemon.prepare("bot", "service");
    let long = "é".repeat(262_145);
    let answer = daemon.call(&token, "internal.canvasUpdate", &json!({"html": long}));
    assert_eq!(answer["error"]["data"]["kind"], "invalid", "{answer}");
    let most = "x".repeat(512 << 10);
    let answer = daemon.call(&token, "internal.canvasUpdate", &json!({"html": most}));
    assert_eq!(answer["result"]["content"]["bytes"], 512 << 10, "{answer}");
    for event in daemon.logged("tool:called", 2) {
        let noted = event["arguments"]["html"].as_str().unwrap();
        assert_eq!(noted.chars().count(), 201);
    }
}

#[test]
fn tools_come_and_go_during_a_session() {
    let daemon = Daemon::start();
    let agent = daemon.agent("bot", "service");
    let session = agent["sessionId"].as_str().unwrap();
    let owner = daemon.secret();
    let names = |said: String| {
        let list: Value = serde_json::from_str(&said).unwrap();
        let tools = list["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(daemon.prompt("bot", "tools")),
        ["canvas_update", "canvas_clear"]
    );
    let look = json!({
        "name": "canvas_get", "description": "What is shown", "parameters": {"type": "object"},
        "rpcMethod": "internal.canvasGet", "scope": "service",
    });
    let change = |delta: Value| {
        let mut params = json!({"agent": "bot", "sessionId": session, "reason": "a test"});
        params
            .as_object_mut()
            .unwrap()
            .extend(delta.as_object().unwrap().clone());
        daemon.call(&owner, "session.changeTools", &params)
    };
    let done = change(json!({"add": [look], "remove": ["canvas_clear"]}));
    assert_eq!(
        done["result"],
        json!({"add": ["canvas_get"], "remove": ["canvas_clear"]})
    );
    assert_eq!(
        names(daemon.prompt("bot", "tools")),
        ["canvas_update", "canvas_get"]
    );
    assert!(daemon.prompt("bot", "again").contains("unknown tool"));
    let mut dear = look.clone();
    (dear["name"], dear["scope"]) = (json!("dear"), json!("employee"));
    assert_eq!(
        change(json!({"add": [dear]}))["error"]["data"]["kind"],
        "not_allowed"
    );
    assert_eq!(
        change(json!({"add": [look]}))["error"]["data"]["kind"],
        "conflict"
    );
    let entries = daemon.project.entries(session);
    let deltas: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "tools")
        .collect();
    assert_eq!(deltas.len(), 2);
    assert_eq!(deltas[1]["payload"]["reason"], "a test");
    daemon.logged("session:tools-changed", 1);
}
