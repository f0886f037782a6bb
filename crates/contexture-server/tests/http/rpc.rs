use serde_json::{Value, json};

use crate::common::*;

async fn says(server: &Server, body: &str) -> Value {
    let (status, said) = said(server.post(OWNER, body.to_owned()).send().await.unwrap()).await;
    assert_eq!(status, 200, "{body}");
    said
}

#[tokio::test]
async fn a_call_gives_its_result_with_its_own_id() {
    let server = server().await;
    for id in [
        json!(1),
        json!("a"),
        json!(null),
        json!(-7),
        json!(u64::MAX),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "echo", "params": {"a": [1]}});
        let said = says(&server, &body.to_string()).await;
        assert_eq!(
            said,
            json!({"jsonrpc": "2.0", "id": id, "result": {"a": [1]}})
        );
    }
    let bare = says(&server, r#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#).await;
    assert_eq!(bare["result"], json!({}));
}

#[tokio::test]
async fn what_is_no_request_gets_the_standards_errors() {
    let server = server().await;
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("{}}", -32700),
        ("\u{feff}{}", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}"#, -32700),
        (r#"{"jsonrpc":"2.0","id":1e400,"method":"echo"}"#, -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, -32700),
        ("1", -32600),
        ("null", -32600),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"echo"}"#, -32600),
        (r#"{"jsonrpc":2.0,"id":1,"method":"echo"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"echo"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"echo"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}"#,
            -32600,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"no.such"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"fail"}"#, -32004),
        (r#"{"jsonrpc":"2.0","id":1,"method":"panic"}"#, -32000),
    ] {
        let said = says(&server, body).await;
        assert_eq!(said["error"]["code"], json!(code), "{body}: {said}");
        assert_eq!(said["jsonrpc"], json!("2.0"), "{body}");
        assert!(
            said.get("id").is_some() && said.get("result").is_none(),
            "{body}"
        );
    }
    let fail = says(&server, r#"{"jsonrpc":"2.0","id":1,"method":"fail"}"#).await;
    assert_eq!(
        fail["error"]["data"],
        json!({"kind": "too_large", "hint": "make it smaller"})
    );
}

/// Attack 36.
#[tokio::test]
async fn nesting_is_bounded() {
    let server = server().await;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let body = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        assert_eq!(says(&server, &body).await["error"]["code"], json!(-32700));
    }
}

#[tokio::test]
async fn a_batch_is_answered_in_order_and_notifications_are_not() {
    let server = server().await;
    let one = |id: Value, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
    let silent = json!({"jsonrpc": "2.0", "method": "echo"});
    let batch = json!([
        one(json!(1), "who"),
        silent,
        7,
        one(json!("b"), "no.such"),
        one(json!(3), "echo")
    ]);
    let said = says(&server, &batch.to_string()).await;
    let ids: Vec<&Value> = said
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, [&json!(1), &json!(null), &json!("b"), &json!(3)]);
    assert_eq!(said[1]["error"]["code"], json!(-32600));
    for silent in [silent.clone(), json!([silent, silent])] {
        let reply = server.post(OWNER, silent.to_string()).send().await.unwrap();
        assert_eq!(reply.status(), 204);
        assert_eq!(reply.text().await.unwrap(), "");
    }
    let many = |n: usize| Value::Array(vec![one(json!(1), "who"); n]).to_string();
    assert_eq!(says(&server, &many(64)).await.as_array().unwrap().len(), 64);
    assert_eq!(
        says(&server, &many(65)).await["error"]["code"],
        json!(-32600)
    );
}

#[tokio::test]
async fn only_what_is_there_can_be_asked_for() {
    let server = server().await;
    assert_eq!(
        server
            .get("/rpc")
            .bearer_auth(OWNER)
            .send()
            .await
            .unwrap()
            .status(),
        405
    );
    for path in ["/nothing", "/rpc/", "/.git/config", "//", "/app.js/../../x"] {
        let reply = server.get(path).send().await.unwrap();
        assert_eq!(reply.status(), 404, "{path}");
    }
    let options = server
        .http
        .request(reqwest::Method::OPTIONS, server.at("/rpc"));
    let reply = options.header("origin", &server.url).send().await.unwrap();
    assert_eq!(reply.status(), 405);
    assert!(!reply.headers().contains_key("access-control-allow-origin"));
}
