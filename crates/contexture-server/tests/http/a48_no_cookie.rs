//! Attack 48: browsers send a host's cookies to each of its ports. There is none that could be sent.

use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::json;

use crate::common::*;

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"who"}"#;

#[tokio::test]
async fn a_link_gives_our_page_a_secret_once() {
    let server = server().await;
    let link = server.sign_ins.link().unwrap();
    let (path, code) = link
        .strip_prefix(&server.url)
        .and_then(|rest| rest.split_once("#sign-in="))
        .unwrap();
    // The fragment stays in the browser: what is opened is the page that everybody gets.
    assert_eq!((path, code.len()), ("/", 64));
    for _ in 0..3 {
        assert_eq!(server.get(path).send().await.unwrap().status(), 200);
    }
    for method in ["GET", "HEAD", "PUT"] {
        let method = method.parse().unwrap();
        let url = server.at(&format!("/sign-in?code={code}"));
        let reply = server.http.request(method, url).send().await.unwrap();
        assert_eq!(reply.status(), 405);
    }
    let (status, entered) = said(server.exchange(&link).send().await.unwrap()).await;
    assert_eq!((status, &entered["seconds"]), (200, &json!(43_200)));
    let page = entered["secret"].as_str().unwrap();
    assert!(page.len() == 64 && page != code);
    let (status, again) = said(server.exchange(&link).send().await.unwrap()).await;
    assert_eq!((status, &again["error"]["code"]), (401, &json!("DeadLink")));
    let hint = again["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("ctx serve link"), "{hint}");
    // The secret counts in its header, for a page of ours.
    let call = server.post(page, BODY).header(ORIGIN, &server.url);
    let (_, said) = said(call.send().await.unwrap()).await;
    assert_eq!(said["result"], json!("owner"));
    let events = server.get("/events").bearer_auth(page).send().await;
    assert_eq!(events.unwrap().status(), 200);
    assert_eq!(server.call(code, "who", json!({})).await.0, 401);
}

#[tokio::test]
async fn a_malformed_sign_in_is_refused_and_the_link_still_works() {
    let server = server().await;
    let link = server.sign_ins.link().unwrap();
    let code = link.split_once('=').unwrap().1;
    let entering = |kind: &str, body: String| {
        let ask = server.http.post(server.at("/sign-in"));
        let ask = ask.header(ORIGIN, &server.url).header(CONTENT_TYPE, kind);
        let ask = ask.body(body);
        async { ask.send().await.unwrap().status().as_u16() }
    };
    let right = json!({ "code": code }).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        assert_eq!(entering(kind, right.clone()).await, 415);
    }
    for body in [
        String::new(),
        "[]".to_owned(),
        format!("{{\"code\":[\"{code}\"]}}"),
        format!("{{\"code\":\"{code}\",\"code\":\"{code}\"}}"),
        format!("{{\"code\":\"{code}\",\"more\":1}}"),
    ] {
        assert_eq!(
            entering("application/json", body.clone()).await,
            400,
            "{body}"
        );
    }
    let long = format!("{right}{}", " ".repeat(2_000));
    assert_eq!(entering("application/json", long).await, 413);
    let mut nowhere = server.exchange(&link).build().unwrap();
    nowhere.headers_mut().remove(ORIGIN);
    assert_eq!(server.http.execute(nowhere).await.unwrap().status(), 403);
    assert_eq!(entering("application/json", right).await, 200);
}

/// Whatever another server on this machine is sent, it cannot use here.
#[tokio::test]
async fn no_cookie_is_set_and_none_counts() {
    let server = server().await;
    let page = server.page().await;
    let frame = server.frame("bot").await;
    let link = server.sign_ins.link().unwrap();
    let own = |call: reqwest::RequestBuilder| call.header(ORIGIN, &server.url);
    let answers = [
        server.get("/"),
        server.get("/app.js"),
        server.get("/session.js"),
        server.get(&frame),
        server.get("/events").bearer_auth(&page),
        server.exchange(&link),
        server.exchange(&link),
        own(server.post(&page, BODY)),
        server.post(OWNER, BODY),
        server.post("wrong", BODY),
    ];
    for ask in answers {
        let reply = ask.send().await.unwrap();
        assert!(
            !reply.headers().contains_key("set-cookie"),
            "{}",
            reply.url()
        );
    }
    let port = server.address.rsplit_once(':').unwrap().1;
    let other = server.frame("bot").await;
    for secret in [page.as_str(), OWNER] {
        let names = [
            format!("contexture_{port}"),
            "contexture.secret".into(),
            "Authorization".into(),
        ];
        for name in names {
            let cookie = format!("{name}={secret}; {name}=Bearer {secret}");
            let call = own(server.http.post(server.at("/rpc")).body(BODY));
            let call = call.header(CONTENT_TYPE, "application/json");
            for (ask, status) in [
                (call, 401),
                (server.get("/events"), 401),
                (server.get("/canvas/bot"), 404),
            ] {
                let reply = ask.header(COOKIE, &cookie).send().await.unwrap();
                assert_eq!(reply.status(), status, "{name}");
            }
        }
    }
    // What stands in a frame's path shows one canvas, and does nothing else.
    let ticket = other.rsplit_once('/').unwrap().1;
    assert_eq!(server.call(ticket, "who", json!({})).await.0, 401);
    assert_eq!(server.get(&other).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_page_signs_itself_out_and_the_owner_signs_out_all() {
    let server = server().await;
    let (a, b) = (server.page().await, server.page().await);
    let ask = |secret: &str, method: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        let call = server
            .post(secret, body.to_string())
            .header(ORIGIN, &server.url);
        async { said(call.send().await.unwrap()).await }
    };
    // Its stay is not for a page to extend.
    let (status, refused) = ask(&a, "serve.link").await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!(-32001)));
    let events = server.get("/events").bearer_auth(&a).send().await.unwrap();
    let frame = ask(&a, "agent.list").await;
    assert_eq!(frame.0, 200);
    assert_eq!(ask(&a, "serve.signOut").await.0, 200);
    let begun = Instant::now();
    assert_eq!(events.text().await.unwrap(), "", "its streams end with it");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!((ask(&a, "who").await.0, ask(&b, "who").await.0), (401, 200));
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "canvas.frame", "params": {"agent": "bot"}});
    let call = server
        .post(&b, body.to_string())
        .header(ORIGIN, &server.url);
    let framed = said(call.send().await.unwrap()).await.1;
    let path = framed["result"]["path"].as_str().unwrap();
    let (_, made) = server.call(OWNER, "serve.link", json!({})).await;
    let link = made["result"]["signIn"].as_str().unwrap();
    assert_eq!(made["result"]["expiresSeconds"], json!(600));
    server.call(OWNER, "serve.signOut", json!({})).await;
    assert_eq!(ask(&b, "who").await.0, 401);
    assert_eq!(
        server.get(path).send().await.unwrap().status(),
        404,
        "nor its frames"
    );
    assert_eq!(server.exchange(link).send().await.unwrap().status(), 401);
    let token = server.fake.token("bot", "s");
    for method in ["serve.link", "serve.signOut"] {
        assert_eq!(server.call(&token, method, json!({})).await.0, 403);
    }
    let odd = server.call(OWNER, "serve.link", json!({"x": 1})).await.1;
    assert_eq!(odd["error"]["code"], json!(-32602));
}
