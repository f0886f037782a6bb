use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::*;

#[tokio::test]
async fn it_stops_accepting_ends_streams_and_lets_calls_end() {
    let mut server = server().await;
    let events = server
        .get("/events")
        .bearer_auth(OWNER)
        .send()
        .await
        .unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "wait"}).to_string();
    let stream = server
        .post(OWNER, body.clone())
        .header("accept", "text/event-stream");
    let stream = stream.send().await.unwrap();
    let call = tokio::spawn(server.post(OWNER, body).send());
    until("both run", || server.running() == 2).await;
    server.stop();
    let begun = Instant::now();
    assert_eq!(events.text().await.unwrap(), "");
    let last = stream.text().await.unwrap();
    assert!(last.contains("the daemon stops"), "{last}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    server.fake.go_on.notify_waiters();
    let (status, said) = said(call.await.unwrap().unwrap()).await;
    assert_eq!((status, &said["result"]), (200, &json!("over")));
    server.serving.await.unwrap().unwrap();
    assert!(
        tokio::net::TcpStream::connect(&server.address)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_call_that_does_not_end_is_dropped() {
    let mut server = server().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "wait"}).to_string();
    let call = tokio::spawn(server.post(OWNER, body).send());
    until("it runs", || server.running() == 1).await;
    server.stop();
    let begun = Instant::now();
    (&mut server.serving).await.unwrap().unwrap();
    assert!(
        (4..8).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(server.running(), 0);
    assert!(call.await.unwrap().is_err());
}
