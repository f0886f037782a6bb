//! Attacks from a browser: other sites' pages, names that were pointed at us, hostile canvases.

use reqwest::header::{CONTENT_TYPE, ORIGIN};
use serde_json::json;

use crate::common::*;

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"who"}"#;

/// Attack 16.
#[tokio::test]
async fn another_sites_page_gets_nowhere() {
    let server = server().await;
    let page = server.page().await;
    let call = |origin: Option<&str>, kind: &str| {
        let call = server.http.post(server.at("/rpc")).bearer_auth(&page);
        let call = call.header(CONTENT_TYPE, kind).body(BODY);
        let call = match origin {
            Some(origin) => call.header(ORIGIN, origin),
            None => call,
        };
        async { call.send().await.unwrap().status().as_u16() }
    };
    let ours = server.url.as_str();
    let port = server.address.rsplit_once(':').unwrap().1;
    let foreign = [
        "null",
        "http://evil.example",
        "https://127.0.0.1",
        "http://127.0.0.1:1",
        &format!("https://127.0.0.1:{port}"),
        &format!("http://localhost:{port}"),
        &format!("{ours}.evil.example"),
        &format!("{ours}/"),
        "",
    ];
    assert_eq!(
        call(Some(ours), "application/json; charset=utf-8").await,
        200
    );
    for origin in foreign {
        assert_eq!(
            call(Some(origin), "application/json").await,
            403,
            "{origin}"
        );
        let link = server.sign_ins.link().unwrap();
        let mut entering = server.exchange(&link).build().unwrap();
        entering
            .headers_mut()
            .insert(ORIGIN, origin.parse().unwrap());
        let reply = server.http.execute(entering).await.unwrap();
        assert_eq!(reply.status(), 403, "{origin}");
    }
    // A page's secret without a word on where the request comes from is not enough; nor is a form.
    assert_eq!(call(None, "application/json").await, 403);
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        assert_eq!(call(Some(ours), kind).await, 415, "{kind}");
    }
    let frame = server.frame("bot").await;
    for path in ["/events", &frame] {
        for (name, value) in [
            ("origin", "null"),
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let reply = server.get(path).bearer_auth(&page).header(name, value);
            assert_eq!(
                reply.send().await.unwrap().status(),
                403,
                "{path} {name}: {value}"
            );
        }
    }
    // A secret does not make another site's page ours either.
    let reply = server
        .post(OWNER, BODY)
        .header(ORIGIN, "http://evil.example");
    assert_eq!(reply.send().await.unwrap().status(), 403);
    // Nor does any page learn from us what it may ask.
    for path in ["/rpc", "/events", "/sign-in", "/"] {
        let ask = server
            .http
            .request(reqwest::Method::OPTIONS, server.at(path));
        let ask = ask
            .header(ORIGIN, "http://127.0.0.1:1")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization");
        let reply = ask.send().await.unwrap();
        assert_eq!(reply.status(), 403, "{path}");
        let headers = format!("{:?}", reply.headers());
        assert!(!headers.contains("access-control-allow"), "{headers}");
    }
}

/// Attack 15.
#[tokio::test]
async fn a_name_that_was_pointed_at_us_is_refused_everywhere() {
    let server = server().await;
    for path in [
        "/",
        "/healthz",
        "/openapi.json",
        "/events",
        "/canvas/bot",
        "/sign-in",
        "/app.js",
        "/session.js",
        "/x",
    ] {
        let reply = server
            .get(path)
            .header("host", "evil.example")
            .bearer_auth(OWNER);
        let reply = reply.send().await.unwrap();
        assert_eq!(reply.status(), 403, "{path}");
    }
    let heads = [
        "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n".to_owned(),
        format!(
            "GET /healthz HTTP/1.1\r\nhost: {0}\r\nhost: {0}\r\nconnection: close\r\n\r\n",
            server.address
        ),
        format!(
            "GET http://evil.example/healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
            server.address
        ),
    ];
    for head in heads {
        let said = server.raw(head.as_bytes()).await;
        assert!(
            said.starts_with("HTTP/1.1 403") || said.starts_with("HTTP/1.1 400"),
            "{head}{said}"
        );
    }
}

/// Attacks 18, 19 and 20.
#[tokio::test]
async fn a_canvas_is_inert() {
    let server = server().await;
    let hostile = "</iframe><script>alert(1)</script>\"><img src=https://evil.example/x onerror='alert(1)'>&lt;";
    *server.fake.page.lock().unwrap() = hostile.to_owned();
    let frame = server.frame("bot").await;
    // Whoever looks before they open does not use it up.
    let looked = server.http.head(server.at(&frame)).send().await.unwrap();
    assert_eq!(looked.status(), 405);
    let reply = server.get(&frame).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    let header = |name: &str| reply.headers()[name].to_str().unwrap().to_owned();
    let policy = header("content-security-policy");
    for part in [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "frame-ancestors 'self'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("script-src"));
    assert_eq!(header("x-frame-options"), "SAMEORIGIN");
    let html = reply.text().await.unwrap();
    assert!(
        html.contains("sandbox=\"\"") && html.contains("<title>&lt;b&gt;Page&lt;/b&gt;</title>")
    );
    // One frame and no other markup: all of the page is within its attribute.
    assert_eq!(
        (
            html.matches("<iframe").count(),
            html.matches("</iframe").count()
        ),
        (1, 1)
    );
    assert!(
        !html.contains("<script") && !html.contains("<img"),
        "{html}"
    );
    assert!(html.contains("&lt;/iframe&gt;&lt;script&gt;") && html.contains("&amp;lt;"));
    // A frame's path works once, and is for the owner alone.
    assert_eq!(server.get(&frame).send().await.unwrap().status(), 404);
    let token = server.fake.token("bot", "s");
    let (status, _) = server
        .call(&token, "canvas.frame", json!({"agent": "bot"}))
        .await;
    assert_eq!(status, 403);
    let reply = server.get("/canvas/bot").bearer_auth(OWNER).send().await;
    assert_eq!(reply.unwrap().status(), 404);
}

/// Attacks 18 and 20.
#[tokio::test]
async fn every_answer_says_what_a_browser_may_not_do() {
    let server = server().await;
    for path in [
        "/",
        "/app.js",
        "/session.js",
        "/style.css",
        "/healthz",
        "/openapi.json",
        "/x",
        "/events",
        "/sign-in",
    ] {
        let reply = server.get(path).send().await.unwrap();
        let header = |name: &str| match reply.headers().get(name) {
            Some(value) => value.to_str().unwrap().to_owned(),
            None => panic!("{path} has no {name}"),
        };
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(
            !policy.contains("unsafe") && !policy.contains("http"),
            "{policy}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
    }
}

/// Attack 19: the pages name nothing that is elsewhere.
#[tokio::test]
async fn the_pages_fetch_nothing_from_elsewhere() {
    let server = server().await;
    for path in ["/", "/app.js", "/session.js", "/style.css"] {
        let text = server.get(path).send().await.unwrap().text().await.unwrap();
        assert!(
            !text.contains("http://") && !text.contains("https://") && !text.contains("url("),
            "{path}"
        );
        assert!(
            !text.contains("innerHTML") && !text.contains("eval("),
            "{path}"
        );
    }
}
