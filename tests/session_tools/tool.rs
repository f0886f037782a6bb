use std::os::unix::fs::PermissionsExt;

use contexture_server::{Daemon as Found, DaemonLock};
use serde_json::json;

use crate::common::Project;
use crate::session_tools::daemon::Daemon;
use crate::session_tools::fake::OWNER;

/// A tool with an argument of each kind.
fn typed() -> serde_json::Value {
    let properties = json!({
        "n": {"type": "integer"}, "x": {"type": "number"}, "yes": {"type": "boolean"}, "all": {"type": "array"},
        "o": {"type": "object"}, "text": {"type": "string"}, "either": {"type": ["string", "number"]},
        "none": {"type": ["integer", "null"]},
    });
    json!({"name": "typed", "description": "Gives back what it gets.\u{1b}[31m", "rpcMethod": "internal.typed", "scope": "all",
           "context": "Use it often.", "parameters": {"type": "object", "properties": properties, "required": ["n"]}})
}

#[test]
fn the_tools_of_the_session_are_listed() {
    let daemon = Daemon::start();
    daemon.fake.tools.lock().unwrap().push(typed());
    let all = daemon.ctx("bot", &["tool", "list", "--json"]).json();
    let names: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["canvas_update", "canvas_clear", "typed"]);
    let text = daemon.ctx("bot", &["tool", "list"]).success();
    assert!(
        text.contains("canvas_update(html")
            && text.contains("Use it often.")
            && text.contains("3 tools"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn an_argument_is_what_the_tool_takes() {
    let daemon = Daemon::start();
    daemon.fake.tools.lock().unwrap().push(typed());
    let call = |args: &[&str]| {
        let mut all = vec!["tool", "call", "typed"];
        all.extend(args);
        daemon.ctx("bot", &all)
    };
    let args = [
        "--arg",
        "n=5",
        "--arg",
        "x=1.5",
        "--arg",
        "yes=true",
        "--arg",
        "all=[1,\"a\"]",
        "--arg",
        "o={\"k\":1}",
        "--arg",
        "text=5",
        "--arg",
        "either=7",
        "--arg",
        "none=null",
        "--arg",
        "unknown=a=b",
        "--json",
    ];
    let said = call(&args).json();
    let wanted = json!({"n": 5, "x": 1.5, "yes": true, "all": [1, "a"], "o": {"k": 1}, "text": "5", "either": "7",
                        "none": null, "unknown": "a=b"});
    assert_eq!(said, json!({"content": wanted}));
    let said = call(&["--args", r#"{"text":"a"}"#, "--arg", "n=1"]).json();
    assert_eq!(said, json!({"text": "a", "n": 1}));
    let said = call(&["--args", "-"]).input(r#"{"n":2}"#).json();
    assert_eq!(said, json!({"n": 2}));
    call(&["--arg", "n=five"]).failure(3, "must be integer");
    call(&["--args", "[1]"]).failure(3, "must be an object");
    call(&["--args", "{"]).failure(3, "--args");
    call(&["--arg", "n"]).failure(2, "NAME=VALUE");
    call(&["--arg", "n=1", "--arg", "n=2"]).failure(2, "given twice");
    let said = daemon
        .ctx("bot", &["tool", "call", "canvas_clear"])
        .success();
    assert_eq!(said, "cleared\n");
}

#[test]
fn each_failure_has_its_exit_code() {
    let mut daemon = Daemon::start();
    let call = |name| daemon.ctx("bot", &["tool", "call", name]);
    call("denied").failure(5, "above your scope");
    call("canvas_update").failure(3, "`html` must be a string");
    call("no_such").failure(1, "no such tool");
    let error = call("denied").failure_json(5, "scope");
    assert_eq!(error["code"], "NotAllowed");
    // Without a token, and with one that counts no more: a line each.
    let none = daemon
        .project
        .ctx(&["tool", "list"])
        .env("CONTEXTURE_URL", &daemon.url);
    let said = none.failure(5, "CONTEXTURE_SESSION_TOKEN is not set");
    assert_eq!(said.lines().count(), 1, "{said}");
    let gone = daemon.ctx("gone", &["tool", "list"]);
    daemon.fake.tokens.revoke_agent("gone");
    let said = gone.failure(5, "counts no more");
    assert_eq!(said.lines().count(), 1, "{said}");
    let late = daemon.ctx("bot", &["tool", "list"]);
    daemon.stop();
    late.failure(1, "no daemon answers");
    for url in ["nonsense", "file:///etc/passwd"] {
        let odd = daemon.ctx("bot", &["tool", "list", "--url", url]);
        odd.failure(1, "the daemon's address");
    }
}

/// Attack 31: a project cannot name the daemon that a token goes to; only one that runs here is found.
#[test]
fn the_projects_own_daemon_is_found_and_no_other() {
    let daemon = Daemon::start();
    let token = daemon.fake.token("bot", "s");
    let list = || {
        daemon
            .project
            .ctx(&["tool", "list"])
            .env("CONTEXTURE_SESSION_TOKEN", &token)
    };
    list().failure(1, "no daemon runs");
    // One that came with the project is not even looked at.
    let shipped = daemon.project.path().join(".contexture");
    let own = daemon.project.state();
    std::fs::create_dir_all(&own).unwrap();
    for folder in [&shipped, &own] {
        let file = folder.join("daemon.json");
        let brought =
            json!({"pid": 1, "url": daemon.url, "secret": OWNER, "version": "0", "started": ""});
        std::fs::write(&file, brought.to_string()).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        list().failure(1, "no daemon runs");
    }
    let _held = DaemonLock::take(&shipped).unwrap();
    list().failure(1, "no daemon runs");
    let folder = own;
    let file = folder.join("daemon.json");
    let lock = DaemonLock::take(&folder).unwrap();
    let mut found = Found::new(daemon.url.clone(), "now").unwrap();
    found.secret = OWNER.to_owned();
    lock.publish(&found).unwrap();
    assert!(list().success().contains("2 tools"));
    // Its URL is used, and never its secret.
    let without = daemon.project.ctx(&["tool", "list"]);
    without.failure(5, "CONTEXTURE_SESSION_TOKEN is not set");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    list().failure(5, "not private");
}

/// Attack 6: a token is in nothing that is printed.
#[test]
fn a_token_is_not_shown() {
    let daemon = Daemon::start();
    let token = daemon.fake.token("bot", "s");
    let elsewhere = Project::new();
    for url in [daemon.url.as_str(), "http://127.0.0.1:1", "x"] {
        for args in [
            &["tool", "list", "--json"][..],
            &["tool", "call", "no_such"],
        ] {
            let ctx = elsewhere.ctx(args).env("CONTEXTURE_URL", url);
            let output = ctx.env("CONTEXTURE_SESSION_TOKEN", &token).run();
            let text = [output.stdout, output.stderr].concat();
            assert!(!String::from_utf8_lossy(&text).contains(&token));
        }
    }
}
