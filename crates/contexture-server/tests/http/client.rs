use std::time::Duration;

use contexture_fleet::Why;
use contexture_server::{Client, Fault};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::common::*;

#[tokio::test]
async fn it_calls_streams_and_hears() {
    let server = server().await;
    let client = Client::new(&server.url, OWNER).unwrap();
    assert_eq!(
        client.call("echo", json!({"é": 1})).await.unwrap(),
        json!({"é": 1})
    );
    let mut news = Vec::new();
    let done = client.stream("count", json!({"to": 500}), |update| news.push(update));
    assert_eq!(done.await.unwrap(), json!("counted"));
    assert_eq!((news.len(), &news[499]), (500, &json!({"n": 499})));
    let plain = client.stream("echo", json!({}), |_| panic!("no news"));
    assert_eq!(plain.await.unwrap(), json!({}));
    server.tell("a");
    server.tell("b");
    let mut events = client.events(Some(1)).await.unwrap();
    let event = events.next().await.unwrap().unwrap();
    assert_eq!((&event["agent"], events.last()), (&json!("b"), Some(2)));
}

#[tokio::test]
async fn every_failure_has_its_kind() {
    let mut server = server().await;
    let client = Client::new(&server.url, OWNER).unwrap();
    let failed = client.call("fail", json!({})).await.unwrap_err();
    assert_eq!(failed.why, Fault::Said(Why::TooLarge));
    assert_eq!(
        (failed.message.as_str(), failed.hint.as_deref()),
        ("it is large", Some("make it smaller"))
    );
    let token = server.fake.token("bot", "s");
    let session = Client::new(&server.url, &token).unwrap();
    let why = |done: Result<Value, contexture_server::ClientError>| done.unwrap_err().why;
    assert_eq!(
        why(session.call("agent.list", json!({})).await),
        Fault::Said(Why::NotAllowed)
    );
    assert_eq!(
        why(client.call("no.such", json!({})).await),
        Fault::Said(Why::NoMethod)
    );
    let stream = client.stream("fail", json!({}), |_| {});
    assert_eq!(why(stream.await), Fault::Said(Why::TooLarge));
    server.fake.tokens.revoke_agent("bot");
    assert_eq!(
        why(session.call("who", json!({})).await),
        Fault::Unauthorized
    );
    assert_eq!(
        session.events(None).await.unwrap_err().why,
        Fault::Unauthorized
    );
    let large = json!({"a": "x".repeat(2 << 20)});
    let large = client.call("echo", large).await.unwrap_err().why;
    // Where the server closes before all is sent, what it said may be lost.
    assert!(
        matches!(large, Fault::Refused | Fault::Unreachable),
        "{large:?}"
    );
    let quick = Client::new(&server.url, OWNER)
        .unwrap()
        .with_patience(Duration::from_millis(50));
    assert_eq!(why(quick.call("wait", json!({})).await), Fault::Unreachable);
    server.stop();
    (&mut server.serving).await.unwrap().unwrap();
    assert_eq!(why(client.call("who", json!({})).await), Fault::Unreachable);
    for url in ["", "x", "ftp://x", "http://", "http://u:p@127.0.0.1"] {
        assert_eq!(
            Client::new(url, OWNER).unwrap_err().why,
            Fault::Broken,
            "{url}"
        );
    }
    assert_eq!(
        Client::new(&server.url, "a\nb").unwrap_err().why,
        Fault::Unauthorized
    );
    assert!(!format!("{client:?}").contains(OWNER));
}

/// A daemon that says something else than a daemon does.
async fn says(answer: Vec<u8>) -> Fault {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4_096]).await;
        let _ = stream.write_all(&answer).await;
    });
    let client = Client::new(&url, OWNER).unwrap();
    client.call("who", json!({})).await.unwrap_err().why
}

#[tokio::test]
async fn it_follows_nobody_and_believes_no_garbage() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = elsewhere.local_addr().unwrap();
    let redirect =
        format!("HTTP/1.1 307 Moved\r\nlocation: http://{to}/rpc\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(says(redirect.into()).await, Fault::Broken);
    let came = tokio::time::timeout(Duration::from_millis(100), elsewhere.accept()).await;
    assert!(came.is_err(), "the secret went elsewhere");
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"jsonrpc":"2.0","id":99,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":0}"#,
    ] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(says(answer.into()).await, Fault::Broken, "{body}");
    }
    assert_eq!(
        says(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{".to_vec()).await,
        Fault::Unreachable
    );
    assert_eq!(says(b"SSH-2.0-x\r\n".to_vec()).await, Fault::Unreachable);
}
