//! The examples of spec 000, as its user would try them.

use serde_json::{Value, json};

use crate::common::Project;
use crate::fleet::scene::Daemon;

/// The context of an agent with this meta, in a project with these providers.
fn prepared(meta: &Value, providers: &Value) -> Value {
    let project = Project::new();
    project.write(
        "contexture.json",
        json!({ "providers": providers }).to_string(),
    );
    let inject = project.ctx(&["inject", "--meta", "-", "--json", "--show-token"]);
    inject
        .input(meta.to_string())
        .env("CONTEXTURE_TRUST", "1")
        .json()
}

/// 1.1's meta.
fn meta(archetype: &str) -> Value {
    json!({
        "name": "my-agent", "archetype": archetype, "backendType": "cursor",
        "workspacePolicy": "persistent", "launchMode": "managed",
    })
}

/// A provider that says this.
fn says(name: &str, offer: &Value) -> Value {
    json!({"name": name, "command": ["printf", "%s", offer.to_string()], "timeoutMs": 60000})
}

/// 1.2's tool.
fn tool(name: &str, scope: &str, about: &str) -> Value {
    json!({"name": name, "description": about, "parameters": {"type": "object"}, "rpcMethod": "x.y", "scope": scope})
}

fn names<'a>(prepared: &'a Value, list: &str) -> Vec<&'a str> {
    let all = prepared[list].as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap()).collect()
}

fn text(prepared: &Value, at: usize) -> &str {
    prepared["systemContextAdditions"][at]
        .as_str()
        .unwrap_or_default()
}

/// Section 4: the order for an employee.
#[test]
fn the_additions_of_an_employee() {
    let prepared = prepared(&meta("employee"), &json!([]));
    assert_eq!(
        prepared["systemContextAdditions"].as_array().unwrap().len(),
        3
    );
    assert!(text(&prepared, 0).starts_with("## Agent Identity\nYou are **my-agent**"));
    assert!(text(&prepared, 1).contains("canvas"));
    assert!(text(&prepared, 2).starts_with("## Contexture Tools\n"));
    assert!(text(&prepared, 2).contains("- canvas_update(html: string, title?: string)"));
    // 5: all variables of the first template are in it.
    for value in ["my-agent", "employee", "cursor", "persistent"] {
        assert!(text(&prepared, 0).contains(value), "{value}");
    }
}

/// 1.3 and 3.4: 64 characters of hex, new each time, and in no text.
#[test]
fn the_token() {
    let tokens = [(), ()].map(|()| {
        let prepared = prepared(&meta("service"), &json!([]));
        let token = prepared["token"].as_str().unwrap().to_owned();
        assert!(
            !prepared["systemContextAdditions"]
                .to_string()
                .contains(&token)
        );
        token
    });
    assert_ne!(tokens[0], tokens[1]);
    for token in tokens {
        assert!(
            token.len() == 64
                && token
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        );
    }
}

/// 3.3: who has which tool, and instructions only for those who have one.
#[test]
fn scopes_by_archetype() {
    let offer = json!({"tools": [tool("a", "all", ""), tool("s", "service", ""), tool("e", "employee", "")]});
    for (archetype, has) in [
        ("repo", &["a"][..]),
        ("service", &["canvas_update", "canvas_clear", "a", "s"]),
        (
            "employee",
            &["canvas_update", "canvas_clear", "a", "s", "e"],
        ),
    ] {
        let prepared = prepared(&meta(archetype), &json!([says("p", &offer)]));
        assert_eq!(names(&prepared, "tools"), has, "{archetype}");
    }
    let none = prepared(&meta("repo"), &json!([]));
    assert!(
        !none["systemContextAdditions"]
            .to_string()
            .contains("Contexture Tools")
    );
}

/// 3.3: the first of a name wins, a tool out of scope claims no name, and texts are all kept in order.
#[test]
fn duplicates() {
    let server = |command: &str| json!({"name": "files", "command": command, "args": [], "env": [{"name": "A", "value": "b"}]});
    let first = json!({
        "mcpServers": [server("first")],
        "tools": [tool("t", "employee", "not for a service"), tool("u", "all", "first")],
        "systemContext": ["the same"],
    });
    let second = json!({
        "mcpServers": [server("second")],
        "tools": [tool("t", "all", "second"), tool("u", "all", "second")],
        "systemContext": ["the same", "  "],
    });
    let providers = json!([says("one", &first), says("two", &second)]);
    let prepared = prepared(&meta("service"), &providers);
    assert_eq!(prepared["mcpServers"], json!([server("first")]));
    let about = |name: &str| {
        let mut tools = prepared["tools"].as_array().unwrap().iter();
        tools.find(|tool| tool["name"] == name).unwrap()["description"].clone()
    };
    assert_eq!((about("t"), about("u")), (json!("second"), json!("first")));
    let same = prepared["systemContextAdditions"]
        .as_array()
        .unwrap()
        .iter();
    assert_eq!(same.filter(|text| **text == "the same").count(), 2);
    assert!(
        !prepared["systemContextAdditions"]
            .to_string()
            .contains("\"  \"")
    );
}

/// 3.1: a provider of the same name takes the place of the earlier one, in the order too.
#[test]
fn a_later_registration_replaces() {
    let project = Project::new();
    let user = project.home().join(".config/contexture");
    std::fs::create_dir_all(&user).unwrap();
    let text = |name: &str, text: &str| json!({"name": name, "command": ["echo", text], "timeoutMs": 60000});
    let config = |providers: Value| json!({ "providers": providers }).to_string();
    std::fs::write(
        user.join("contexture.json"),
        config(json!([text("a", "mine"), text("b", "b")])),
    )
    .unwrap();
    project.write(
        "contexture.json",
        config(json!([text("c", "c"), text("a", "the project's")])),
    );
    let prepared = project
        .ctx(&["inject", "--json"])
        .env("CONTEXTURE_TRUST", "1")
        .json();
    let all = prepared["systemContextAdditions"].as_array().unwrap();
    assert_eq!(all[1..], [json!("the project's"), json!("b"), json!("c")]);
}

/// 3.5: both events with what they carry, and 2.3's `revokeTokens`.
#[test]
fn events_and_the_end_of_a_token() {
    let daemon = Daemon::start();
    let (session, token) = daemon.prepare("my-agent", "employee");
    let preparing = daemon.logged("session:preparing", 1).remove(0);
    // The core's two, rules and skills.
    assert_eq!(
        (&preparing["providerCount"], &preparing["sessionId"]),
        (&json!(4), &json!(session))
    );
    let ready = daemon.logged("session:context-ready", 1).remove(0);
    for (key, count) in [
        ("mcpServerCount", 0),
        ("toolCount", 2),
        ("contextAdditions", 3),
    ] {
        assert_eq!(ready[key], count, "{key} in {ready}");
    }
    let owner = daemon.secret();
    let valid = |token: &str| {
        daemon.call(&owner, "internal.validateToken", &json!({ "token": token }))["result"]["valid"]
            .clone()
    };
    assert_eq!(valid(&token), true);
    let closed = daemon.call(&owner, "session.close", &json!({"agent": "my-agent"}));
    assert_eq!(
        (&closed["result"]["revoked"], valid(&token)),
        (&json!(1), json!(false))
    );
}

/// 2.4 and 5: the templates by their names, with the spec's variables.
#[test]
fn templates() {
    let project = Project::new();
    for (name, variables) in [
        (
            "core-identity",
            &[
                "agentName",
                "archetype",
                "archetypeDescription",
                "backendType",
                "workspacePolicy",
            ][..],
        ),
        ("canvas-context", &[]),
        ("tool-instructions", &["toolList", "token"]),
    ] {
        let source = project.ctx(&["templates", "show", name]).success();
        for variable in variables {
            assert!(
                source.contains(&format!("{{{{ {variable} }}}}")),
                "{name}: {variable}"
            );
        }
        assert_eq!(source.contains("{{"), !variables.is_empty(), "{name}");
    }
}

/// 1.1: the spec's kinds of agent are known by name.
#[test]
fn backends() {
    let backends = Project::new()
        .ctx(&["agent", "backends", "--json"])
        .json()
        .to_string();
    for name in ["pi", "claude-code", "cursor"] {
        assert!(
            backends.contains(&format!("\"{name}\"")),
            "{name}: {backends}"
        );
    }
}

/// 1.1: what cannot be read is refused with its field.
#[test]
fn a_meta_that_is_none() {
    for (key, value) in [
        ("archetype", "boss"),
        ("workspacePolicy", "forever"),
        ("launchMode", "sometimes"),
    ] {
        let mut meta = meta("repo");
        meta[key] = json!(value);
        let project = Project::new();
        let inject = project
            .ctx(&["inject", "--meta", "-"])
            .input(meta.to_string());
        inject.failure(3, value);
    }
}
