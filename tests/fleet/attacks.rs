//! Attacks on the daemon, numbered as in the list. What needs no daemon stands beside what it attacks.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::fleet::scene::Daemon;

/// Attack 1.
#[test]
fn no_token_but_the_token_is_let_in_and_all_are_told_the_same() {
    let daemon = Daemon::start();
    let (_, token) = daemon.prepare("bot", "service");
    let wrong = [
        token[..63].to_owned(),
        format!("{token}0"),
        token
            .to_uppercase()
            .replace(|c: char| c.is_ascii_digit(), "A"),
        "0".repeat(64),
        "x".repeat(60_000),
        String::new(),
    ];
    let said: Vec<(u16, String)> = wrong
        .iter()
        .map(|token| {
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"internal.tools","params":{}}"#;
            let answer = daemon.post(&format!("Authorization: Bearer {token}\r\n"), body);
            (answer.status, answer.body)
        })
        .collect();
    for (status, body) in &said[..4] {
        assert_eq!((*status, body), (401, &said[0].1));
    }
    assert!(
        said.iter()
            .all(|(status, _)| matches!(status, 401 | 431 | 429)),
        "{said:?}"
    );
    assert!(daemon.call(&token, "internal.tools", &json!({}))["result"].is_object());
}

/// Attacks 2 and 3.
#[test]
fn a_token_opens_its_own_session_whatever_the_caller_says() {
    let daemon = Daemon::start();
    let (_, a) = daemon.prepare("a", "repo");
    let (session, b) = daemon.prepare("b", "service");
    daemon.call(&b, "internal.canvasUpdate", &json!({"html": "of b"}));
    for claim in [
        json!({"html": "of a", "archetype": "employee"}),
        json!({"html": "of a", "agent": "b", "sessionId": session}),
        json!({"html": "of a", "token": b}),
    ] {
        let answer = daemon.call(&a, "internal.canvasUpdate", &claim);
        assert!(answer["error"].is_object(), "{answer}");
    }
    assert_eq!(daemon.ctx(&["canvas", "show", "b"]).success(), "of b");
    // Whether somebody else is there is not told: what is and what is not are one answer.
    let ask = |name: &str| daemon.call(&a, "canvas.get", &json!({"agent": name}))["error"].clone();
    assert_eq!(ask("b"), ask("nobody"));
    for method in ["agent.list", "session.list", "agent.stop"] {
        let answer = daemon.call(&a, method, &json!({"name": "b"}));
        assert_eq!(answer["error"]["data"]["kind"], "not_allowed", "{method}");
    }
    let other = daemon.call(&a, "internal.validateToken", &json!({"token": b}));
    assert_eq!(other["result"], json!({"valid": false}));
}

/// Attack 4.
#[test]
fn a_token_is_exchanged_for_less_and_never_for_more() {
    let daemon = Daemon::start();
    let (_, token) = daemon.prepare("bot", "service");
    let more = daemon.call(
        &token,
        "internal.rotateToken",
        &json!({"archetype": "employee"}),
    );
    assert_eq!(more["error"]["data"]["kind"], "not_allowed");
    let less = daemon.call(
        &token,
        "internal.rotateToken",
        &json!({"archetype": "repo"}),
    );
    let less = less["result"]["token"].as_str().unwrap();
    let old = daemon.call(&token, "internal.tools", &json!({}));
    assert_eq!(old["error"]["code"], "Unauthorized", "{old}");
    let tools = daemon.call(less, "internal.tools", &json!({}));
    assert_eq!(
        tools["result"]["tools"],
        json!([]),
        "a repo has none of them"
    );
    let back = daemon.call(
        less,
        "internal.rotateToken",
        &json!({"archetype": "service"}),
    );
    assert_eq!(back["error"]["data"]["kind"], "not_allowed");
}

/// Attack 6.
#[test]
fn a_token_is_in_no_log_file_event_or_process_list() {
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    daemon.prompt("bot", "canvas <p>x</p>");
    let (_, token) = daemon.prepare("other", "service");
    let echo = json!({"html": format!("<p>{token}</p>"), "title": token});
    daemon.call(&token, "internal.canvasUpdate", &echo);
    daemon.logged("tool:called", 2);
    let page = daemon.ctx(&["canvas", "show", "other"]).success();
    assert_eq!(page, format!("<p>{}…</p>", &token[..8]));
    let mut folders = vec![daemon.project.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path() == daemon.tokens() {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(&token), "{}", entry.path().display());
        }
    }
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&words).contains(&token));
    }
}

/// Attack 7.
#[test]
fn whoever_guesses_is_slowed_and_others_are_not() {
    let daemon = Daemon::start();
    let (_, token) = daemon.prepare("bot", "service");
    let mut statuses = Vec::new();
    for n in 0..200 {
        let wrong = format!("Authorization: Bearer {n:064}\r\n");
        statuses.push(daemon.post(&wrong, "{}").status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    assert!(daemon.call(&token, "internal.tools", &json!({}))["result"].is_object());
    assert!(daemon.call(&daemon.secret(), "agent.list", &json!({}))["result"].is_object());
}

/// Attack 9.
#[test]
fn names_that_are_paths_are_refused() {
    let daemon = Daemon::start();
    for name in [
        "../../x",
        "/etc/x",
        "..\\x",
        "CON",
        "",
        "a\0b",
        &"x".repeat(4_096),
    ] {
        let meta = json!({"name": name, "archetype": "repo", "backendType": "native"});
        for (method, params) in [
            ("session.prepare", json!({"meta": meta})),
            (
                "agent.create",
                json!({"name": name, "backendType": "native"}),
            ),
            ("session.show", json!({"session": name})),
        ] {
            let answer = daemon.call(&daemon.secret(), method, &params);
            assert_eq!(answer["error"]["code"], -32602, "{method} {name}: {answer}");
        }
    }
}

/// Attacks 15 and 16.
#[test]
fn a_page_of_another_site_gets_nothing() {
    let daemon = Daemon::start();
    let secret = daemon.secret();
    let with = |host: &str, more: &str| {
        daemon.send(&format!(
            "GET /events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {secret}\r\n{more}Connection: close\r\n\r\n"
        ))
    };
    for host in [
        "evil.example",
        "evil.example:4100",
        "127.0.0.1.evil.example",
    ] {
        assert_eq!(with(host, "").status, 403, "{host}");
    }
    for origin in ["http://evil.example", "null", "file://"] {
        let answer = with(daemon.host(), &format!("Origin: {origin}\r\n"));
        assert_eq!(answer.status, 403, "{origin}");
    }
    let healthy =
        daemon.send("GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(healthy.status, 403);
}

/// Attack 17.
#[test]
fn listening_to_the_world_is_said_in_so_many_words() {
    let project = crate::common::Project::new();
    project
        .ctx(&["serve", "--listen", "0.0.0.0:0"])
        .failure(5, "--public");
    project
        .ctx(&["serve", "--listen", "nonsense"])
        .failure(2, "no address");
}

/// Attacks 18, 19 and 20.
#[test]
fn what_an_agent_shows_runs_nothing_fetches_nothing_and_cannot_be_framed() {
    let daemon = Daemon::start();
    let (_, token) = daemon.prepare("bot", "service");
    let hostile =
        r#"<script>alert(1)</script><img src="http://evil.example/x.png"><svg onload="x()">"#;
    let page = json!({"html": hostile, "title": "</title><script>"});
    daemon.call(&token, "internal.canvasUpdate", &page);
    let frame = daemon.call(&daemon.secret(), "canvas.frame", &json!({"agent": "bot"}));
    let path = frame["result"]["path"].as_str().unwrap();
    let page = daemon.get(path, "");
    assert_eq!(page.status, 200, "{}", page.body);
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors"),
        "{policy}"
    );
    assert!(
        page.body.contains("sandbox") && !page.body.contains("<script>"),
        "{}",
        page.body
    );
    for path in [path, "/canvas/bot"] {
        assert_eq!(
            daemon.get(path, "").status,
            404,
            "{path} shows a canvas once"
        );
    }
}

/// Whoever waits for an agent that is stopped learns of it. That a session's own streams end with its
/// token (attack 5) is tested in `contexture-server`.
#[test]
fn the_stream_of_a_prompt_ends_with_its_agent() {
    let daemon = Daemon::start();
    daemon.agent("bot", "repo");
    let mut stream = daemon.connect();
    let body =
        r#"{"jsonrpc":"2.0","id":1,"method":"agent.prompt","params":{"name":"bot","text":"wait"}}"#;
    write!(
        stream,
        "POST /rpc HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        daemon.host(),
        daemon.secret(),
        body.len()
    )
    .unwrap();
    daemon.logged("agent:prompted", 1);
    let begun = Instant::now();
    daemon.ctx(&["agent", "stop", "bot"]).success();
    let mut all = String::new();
    let mut chunk = [0; 4096];
    while !all.contains("\"id\":1") {
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "{all}");
        all.push_str(&String::from_utf8_lossy(&chunk[..read]));
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}
