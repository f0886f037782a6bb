use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::*;

/// Attack 36.
#[tokio::test]
async fn a_body_is_at_most_a_mebibyte() {
    let server = server().await;
    let body = |bytes: usize| {
        let around =
            json!({"jsonrpc": "2.0", "id": 1, "method": "echo", "params": {"a": ""}}).to_string();
        around.replace("\"\"", &format!("\"{}\"", "x".repeat(bytes - around.len())))
    };
    let most = 1 << 20;
    assert_eq!(
        server
            .post(OWNER, body(most))
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    assert_eq!(
        server
            .post(OWNER, body(most + 1))
            .send()
            .await
            .unwrap()
            .status(),
        413
    );
    // Nor where the length is not said before.
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {OWNER}\r\ntransfer-encoding: chunked\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 65_536, " ".repeat(65_536));
    for _ in 0..64 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut said = [0; 12];
    stream.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"HTTP/1.1 413");
}

/// A head or a body that comes a byte at a time ends the connection, and others do not wait for it.
#[tokio::test]
async fn slow_senders_are_cut_off() {
    let server = server().await;
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {OWNER}\r\n",
        server.address
    );
    let body = format!("{head}content-length: 1000\r\n\r\n");
    let begun = Instant::now();
    let slow = |bytes: String| {
        let address = server.address.clone();
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(bytes.as_bytes()).await.unwrap();
            let mut said = Vec::new();
            loop {
                let mut some = [0; 512];
                tokio::select! {
                    read = stream.read(&mut some) => match read {
                        Ok(0) | Err(_) => return String::from_utf8(said).unwrap(),
                        Ok(n) => said.extend_from_slice(&some[..n]),
                    },
                    () = tokio::time::sleep(Duration::from_millis(300)) => {
                        // What is dripped in keeps nothing open.
                        if stream.write_all(b"x").await.is_err() {
                            return String::from_utf8(said).unwrap();
                        }
                    }
                }
            }
        }
    };
    let others = async {
        for _ in 0..20 {
            assert_eq!(server.call(OWNER, "who", json!({})).await.0, 200);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (in_head, in_body, ()) = tokio::join!(slow(head), slow(body), others);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(
        in_head.is_empty() || in_head.starts_with("HTTP/1.1 408"),
        "{in_head}"
    );
    assert!(in_body.starts_with("HTTP/1.1 408"), "{in_body}");
}

#[tokio::test]
async fn a_caller_has_so_many_calls_at_once_and_others_are_unaffected() {
    let server = server().await;
    let (a, b) = (server.fake.token("a", "1"), server.fake.token("b", "1"));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "wait"}).to_string();
    let calls: Vec<_> = (0..64)
        .map(|_| tokio::spawn(server.post(&a, body.clone()).send()))
        .collect();
    until("all run", || server.running() == 64).await;
    let (status, said) = server.call(&a, "who", json!({})).await;
    assert_eq!((status, &said["error"]["code"]), (429, &json!("Busy")));
    assert_eq!(server.call(&b, "who", json!({})).await.0, 200);
    server.fake.go_on.notify_waiters();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(server.call(&a, "who", json!({})).await.0, 200);
}
