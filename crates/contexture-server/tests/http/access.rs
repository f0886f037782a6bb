use std::time::Instant;

use serde_json::json;

use crate::common::*;

/// Attack 1.
#[tokio::test]
async fn whatever_is_wrong_with_a_token_the_answer_is_the_same() {
    let server = server().await;
    let token = server.fake.token("bot", "s");
    let revoked = server.fake.token("bot", "gone");
    server.fake.tokens.revoke_session("bot", "gone");
    let mut wrong = vec![
        token[..63].to_owned(),
        format!("{token}0"),
        format!(" {token}"),
        token.to_uppercase(),
        "x".to_owned(),
        String::new(),
        "f".repeat(20_000),
        revoked,
        OWNER[..63].to_owned(),
    ];
    wrong.retain(|other| *other != token);
    let mut answers = Vec::new();
    for other in wrong {
        let (status, said) = server.call(&other, "who", json!({})).await;
        answers.push((status, said.to_string()));
    }
    let none = server.http.post(server.at("/rpc")).body("{}").send();
    let (status, text) = said(none.await.unwrap()).await;
    answers.push((status, text.to_string()));
    answers.dedup();
    assert_eq!((answers.len(), answers[0].0), (1, 401), "{answers:?}");
    // Bytes that are no text, and more of them than a head may have.
    for secret in [&b"\xef\xbc\x91"[..], b"a\0b", &[b'f'; 1 << 20]] {
        let mut head = format!(
            "POST /rpc HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: 2\r\nauthorization: Bearer ",
            server.address
        )
        .into_bytes();
        head.extend_from_slice(secret);
        head.extend_from_slice(b"\r\n\r\n{}");
        let said = server.raw(&head).await;
        let status = said.split(' ').nth(1).unwrap_or_default();
        // Whoever sends too much is cut off, and may not come to read why.
        assert!(matches!(status, "400" | "401" | "431" | ""), "{said}");
    }
    assert_eq!(
        server.call(&token, "who", json!({})).await.1["result"],
        json!(["bot", "s"])
    );
}

/// Attack 1: a second header does not add to the first.
#[tokio::test]
async fn two_secrets_are_none() {
    let server = server().await;
    let twice = server
        .post(OWNER, "{}")
        .header("authorization", format!("Bearer {OWNER}"));
    assert_eq!(twice.send().await.unwrap().status(), 401);
    let other = server.http.post(server.at("/rpc")).body("{}");
    let other = other.header("authorization", format!("Basic {OWNER}"));
    assert_eq!(other.send().await.unwrap().status(), 401);
}

/// Attacks 2 and 3.
#[tokio::test]
async fn who_calls_is_decided_by_the_token_and_by_nothing_else() {
    let server = server().await;
    let token = server.fake.token("a", "1");
    server.fake.token("b", "2");
    let claims = json!({"agent": "b", "sessionId": "2", "archetype": "employee", "scope": "all", "caller": "owner"});
    let (_, said) = server.call(&token, "who", claims).await;
    assert_eq!(said["result"], json!(["a", "1"]));
    let mut all = Vec::new();
    for name in ["b", "no-such-agent"] {
        all.push(
            server
                .call(&token, "canvas.get", json!({"agent": name}))
                .await,
        );
    }
    assert_eq!(all[0], all[1]);
    let (status, said) = &all[0];
    assert_eq!((*status, &said["error"]["code"]), (403, &json!(-32001)));
    let events = server.get("/events?agent=b").bearer_auth(&token);
    assert_eq!(events.send().await.unwrap().status(), 403);
    // Nor is a session's method for the owner.
    let (status, _) = server.call(OWNER, "internal.tools", json!({})).await;
    assert_eq!(status, 403);
}

/// Attack 6: a secret counts in its header alone, and comes back in nothing.
#[tokio::test]
async fn a_secret_in_a_url_counts_for_nothing_and_is_not_echoed() {
    let server = server().await;
    for (path, status) in [("/rpc", 401), ("/events", 401), ("/canvas/bot", 404)] {
        let path = format!("{path}?token={OWNER}&access_token={OWNER}&secret={OWNER}");
        let request = if path.starts_with("/rpc") {
            server.http.post(server.at(&path)).body("{}")
        } else {
            server.get(&path)
        };
        let reply = request.send().await.unwrap();
        assert_eq!(reply.status(), status, "{path}");
        assert!(!reply.text().await.unwrap().contains(OWNER));
    }
    for path in ["/", "/healthz", "/openapi.json", "/no-such-page"] {
        let reply = server.get(path).bearer_auth(OWNER).send().await.unwrap();
        assert!(!format!("{:?}", reply.headers()).contains(OWNER));
        assert!(!reply.text().await.unwrap().contains(OWNER), "{path}");
    }
    let (_, said) = server.call(OWNER, "fail", json!({"secret": "x"})).await;
    assert!(!said.to_string().contains(OWNER));
}

/// Attack 7.
#[tokio::test]
async fn whoever_guesses_is_slowed_down_and_nobody_else() {
    let server = server().await;
    let token = server.fake.token("bot", "s");
    let (mut unknown, mut slowed) = (0, 0);
    let begun = Instant::now();
    for n in 0..200 {
        let guess = format!("{n:064x}");
        let reply = server.post(&guess, "{}").send().await.unwrap();
        match reply.status().as_u16() {
            401 => unknown += 1,
            429 => {
                let wait: u64 = reply.headers()["retry-after"]
                    .to_str()
                    .unwrap()
                    .parse()
                    .unwrap();
                assert!((1..=30).contains(&wait), "{wait}");
                slowed += 1;
            }
            status => panic!("{status}"),
        }
    }
    let refilled = usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    assert!(
        (20..=20 + refilled).contains(&unknown),
        "{unknown} {slowed}"
    );
    for secret in [token.as_str(), OWNER] {
        assert_eq!(server.call(secret, "who", json!({})).await.0, 200);
    }
    // A code is guessed no faster.
    let guess = format!("{}/#sign-in=00", server.url);
    let reply = server.exchange(&guess).send().await.unwrap();
    assert_eq!(reply.status(), 429);
    assert_eq!(server.get("/canvas/00").send().await.unwrap().status(), 429);
    // A right one is taken all the same.
    let page = server.page().await;
    assert_eq!(
        server
            .get(&server.frame("bot").await)
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    assert_ne!(page, OWNER);
    // Whoever has nothing to show has not guessed.
    assert_eq!(server.get("/events").send().await.unwrap().status(), 401);
}

/// Attack 5.
#[tokio::test]
async fn a_revoked_token_ends_a_plain_call_too() {
    let server = server().await;
    let token = server.fake.token("bot", "s");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "wait", "params": {}});
    let call = tokio::spawn(server.post(&token, body.to_string()).send());
    until("it runs", || server.running() == 1).await;
    server.fake.tokens.revoke_agent("bot");
    let begun = Instant::now();
    let reply = call.await.unwrap().unwrap();
    assert_eq!(reply.status(), 401);
    assert!(begun.elapsed().as_millis() < 1_000 && server.running() == 0);
}

/// Attack 9: names go to the service as they are, and a path is never made of them here.
#[tokio::test]
async fn names_that_look_like_paths_are_names() {
    let server = server().await;
    for name in ["../../etc/passwd", "..", "a\0b", "..\\..\\x", "CON", ""] {
        let frame = server.frame(name).await;
        assert!(!frame.contains(".."), "{frame}");
        let page = server.get(&frame).send().await.unwrap();
        assert_eq!(page.status(), 200, "{name}");
        assert!(!page.text().await.unwrap().contains("root:"), "{name}");
    }
    let frame = server.frame("none").await;
    assert_eq!(server.get(&frame).send().await.unwrap().status(), 404);
    let long = json!({"agent": "x".repeat(4_096)});
    let (_, said) = server.call(OWNER, "canvas.frame", long).await;
    assert_eq!(said["error"]["code"], json!(-32602));
    for path in [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "%ff%fe",
        "",
        "../../etc/passwd",
    ] {
        let head = format!(
            "GET /canvas/{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {OWNER}\r\nconnection: close\r\n\r\n",
            server.address
        );
        let said = server.raw(head.as_bytes()).await;
        let status = said.split(' ').nth(1).unwrap_or_default();
        assert!(matches!(status, "400" | "404"), "{path}: {said}");
    }
}

/// Attack 40: two clients may use the same ids.
#[tokio::test]
async fn equal_ids_of_two_clients_do_not_meet() {
    let server = server().await;
    let (a, b) = (server.fake.token("a", "1"), server.fake.token("b", "1"));
    let calls = (0..40).map(|n| {
        let (secret, whose) = if n % 2 == 0 { (&a, "a") } else { (&b, "b") };
        let call = server.call(secret, "who", json!({}));
        async move { (call.await.1, whose) }
    });
    for (said, whose) in futures_util::future::join_all(calls).await {
        assert_eq!(
            (&said["id"], &said["result"][0]),
            (&json!(1), &json!(whose))
        );
    }
}

#[tokio::test]
async fn health_says_little_and_to_everyone() {
    let server = server().await;
    let (status, said) = said(server.get("/healthz").send().await.unwrap()).await;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        (status, said),
        (200, json!({"status": "ok", "version": version}))
    );
}
