use std::time::Instant;

use reqwest::Response;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::*;

async fn open(server: &Server, secret: &str, method: &str, params: Value) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": "s", "method": method, "params": params});
    let request = server.post(secret, body.to_string());
    let request = request.header("accept", "text/event-stream");
    request.send().await.unwrap()
}

fn events(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// Reads until this is there.
async fn reads(reply: &mut Response, wanted: &str) {
    let mut text = String::new();
    while !text.contains(wanted) {
        let chunk = tokio::time::timeout(LONG, reply.chunk()).await.unwrap();
        text += &String::from_utf8_lossy(&chunk.unwrap().expect("the stream ended"));
    }
}

#[tokio::test]
async fn news_come_first_and_the_response_last() {
    let server = server().await;
    let reply = open(&server, OWNER, "count", json!({"to": 200})).await;
    assert_eq!(reply.headers()["content-type"], "text/event-stream");
    let all = events(&reply.text().await.unwrap());
    assert_eq!(all.len(), 201);
    for (n, update) in all[..200].iter().enumerate() {
        assert_eq!(
            *update,
            json!({"jsonrpc": "2.0", "method": "update", "params": {"n": n}})
        );
    }
    assert_eq!(
        all[200],
        json!({"jsonrpc": "2.0", "id": "s", "result": "counted"})
    );
    // What does not stream answers as always, and what streams may be asked not to.
    let (_, plain) = said(open(&server, OWNER, "echo", json!({})).await).await;
    assert_eq!(plain["result"], json!({}));
    let (_, plain) = server.call(OWNER, "count", json!({})).await;
    assert_eq!(plain["result"], json!("counted"));
}

/// Attack 5.
#[tokio::test]
async fn a_stream_ends_within_a_second_of_its_token() {
    let server = server().await;
    let token = server.fake.token("bot", "s");
    let mut reply = open(&server, &token, "wait", json!({})).await;
    reads(&mut reply, "begun").await;
    server.fake.tokens.revoke_session("bot", "s");
    let begun = Instant::now();
    let rest = reply.text().await.unwrap();
    assert!(begun.elapsed().as_millis() < 1_000, "{:?}", begun.elapsed());
    assert!(events(&rest).is_empty() && server.running() == 0, "{rest}");
}

/// Attack 5: a reader who does not read keeps nothing alive.
#[tokio::test]
async fn a_stream_that_nobody_reads_ends_with_its_token_too() {
    let server = server().await;
    let token = server.fake.token("bot", "s");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "count", "params": {"to": u64::MAX}})
        .to_string();
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\naccept: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.read_exact(&mut [0; 64]).await.unwrap();
    assert_eq!(server.running(), 1);
    server.fake.tokens.revoke_session("bot", "s");
    let begun = Instant::now();
    until("the call is dropped", || server.running() == 0).await;
    assert!(begun.elapsed().as_millis() < 1_000, "{:?}", begun.elapsed());
    drop(stream);
}

#[tokio::test]
async fn a_client_that_goes_away_calls_its_call_off() {
    let server = server().await;
    let mut reply = open(&server, OWNER, "wait", json!({})).await;
    reads(&mut reply, "begun").await;
    assert_eq!(server.running(), 1);
    drop(reply);
    until("the stream's call is dropped", || server.running() == 0).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "wait"}).to_string();
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {OWNER}\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    until("it runs", || server.running() == 1).await;
    drop(stream);
    until("the plain call is dropped", || server.running() == 0).await;
}
