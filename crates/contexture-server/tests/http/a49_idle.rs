//! Attack 49: hundreds of silent or slow connections, and the owner still gets in at once.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::common::*;

/// Connections of each sort; the server keeps fewer than all of them.
const MANY: usize = 150;

/// Ends with the test.
struct Attacker(JoinHandle<()>);

impl Drop for Attacker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Opens a connection, says this, and drips on for as long as it is let. Then it comes again.
fn attacker(address: &str, says: &str, opened: &Arc<AtomicUsize>) -> Attacker {
    let (address, says, opened) = (address.to_owned(), says.to_owned(), Arc::clone(opened));
    Attacker(tokio::spawn(async move {
        loop {
            if let Ok(mut stream) = TcpStream::connect(&address).await
                && stream.write_all(says.as_bytes()).await.is_ok()
            {
                opened.fetch_add(1, Ordering::SeqCst);
                let mut some = [0; 512];
                loop {
                    tokio::select! {
                        read = stream.read(&mut some) => {
                            if matches!(read, Ok(0) | Err(_)) {
                                break;
                            }
                        }
                        () = tokio::time::sleep(Duration::from_millis(700)) => {
                            if !says.is_empty() && stream.write_all(b"x").await.is_err() {
                                break;
                            }
                        }
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_and_slow_connections_lock_nobody_out() {
    let server = server().await;
    let host = format!("host: {}\r\n", server.address);
    let sorts = [
        // Says nothing.
        String::new(),
        // A head that does not end.
        format!("POST /rpc HTTP/1.1\r\n{host}x-slow: "),
        // A body that does not come, to the one route that reads it from whoever asks.
        format!(
            "POST /sign-in HTTP/1.1\r\n{host}origin: {}\r\ncontent-type: application/json\r\n\
             content-length: 900\r\n\r\n{{",
            server.url
        ),
        // Asks, and keeps the connection.
        format!("GET /healthz HTTP/1.1\r\n{host}\r\n"),
    ];
    // What was in progress before goes on.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "wait"}).to_string();
    let call = tokio::spawn(server.post(OWNER, body).send());
    until("it runs", || server.running() == 1).await;
    let events = server.get("/events").bearer_auth(OWNER).send();
    let mut events = events.await.unwrap();
    let opened = Arc::new(AtomicUsize::new(0));
    let attackers: Vec<Attacker> = sorts
        .iter()
        .flat_map(|says| std::iter::repeat_n(says, MANY))
        .map(|says| attacker(&server.address, says, &opened))
        .collect();
    until("all came", || {
        opened.load(Ordering::SeqCst) >= attackers.len()
    })
    .await;
    for n in 0..20 {
        // A connection of its own each time, as a command makes it.
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let ask = http.post(server.at("/rpc")).bearer_auth(OWNER);
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"who"}"#;
        let begun = Instant::now();
        let reply = ask.header("content-type", "application/json").body(body);
        let (status, said) = said(reply.send().await.unwrap()).await;
        let took = begun.elapsed();
        assert_eq!((status, &said["result"]), (200, &json!("owner")));
        assert!(took < Duration::from_secs(8), "call {n} took {took:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    server.tell("bot");
    let event = tokio::time::timeout(Duration::from_secs(30), events.chunk());
    assert!(
        event.await.unwrap().unwrap().is_some(),
        "the stream went on"
    );
    server.fake.go_on.notify_waiters();
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    drop(attackers);
}

/// One more silent connection than there is room for costs the oldest its place, and the kept one of a caller none.
#[tokio::test]
async fn the_longest_idle_connection_goes_first() {
    let server = server().await;
    // One that showed a secret, and keeps its connection.
    let mut known = TcpStream::connect(&server.address).await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"who"}"#;
    let ask = format!(
        "POST /rpc HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {OWNER}\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut some = [0; 4_096];
    known.write_all(ask.as_bytes()).await.unwrap();
    assert!(known.read(&mut some).await.unwrap() > 0);
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(&server.address).await.unwrap());
    }
    // In the order in which they came, without a word, and the newest not.
    let closed = tokio::time::timeout(Duration::from_secs(8), silent[0].read(&mut some)).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
    let newest = silent.last_mut().unwrap();
    let open = tokio::time::timeout(Duration::from_millis(200), newest.read(&mut some)).await;
    assert!(open.is_err(), "{open:?}");
    known.write_all(ask.as_bytes()).await.unwrap();
    let read = tokio::time::timeout(LONG, known.read(&mut some)).await;
    let read = read.unwrap().unwrap();
    assert!(some[..read].starts_with(b"HTTP/1.1 200"));
}

/// However many come at the same moment, none is closed before its request was read.
#[tokio::test]
async fn a_burst_closes_nobody_unheard() {
    // A server that keeps few, so that a burst is more than it keeps.
    let before = getrlimit(Resource::Nofile);
    let current = Some(128);
    setrlimit(Resource::Nofile, Rlimit { current, ..before }).unwrap();
    let server = server().await;
    assert_eq!(server.call(OWNER, "who", json!({})).await.0, 200);
    setrlimit(Resource::Nofile, before).unwrap();
    let head = format!(
        "GET /events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {OWNER}\r\n\r\n",
        server.address
    );
    // They all wait in line before the server, which runs in this thread, sees the first.
    let mut owner = std::net::TcpStream::connect(&server.address).unwrap();
    owner.write_all(head.as_bytes()).unwrap();
    let burst: Vec<_> = (0..100)
        .map(|_| std::net::TcpStream::connect(&server.address).unwrap())
        .collect();
    owner.set_nonblocking(true).unwrap();
    let mut owner = TcpStream::from_std(owner).unwrap();
    let mut some = [0; 512];
    let read = tokio::time::timeout(Duration::from_secs(8), owner.read(&mut some)).await;
    let read = read.expect("no answer").unwrap();
    assert!(some[..read].starts_with(b"HTTP/1.1 200"));
    drop(burst);
}

/// A connection that says nothing ends by itself, as does one that was answered.
#[tokio::test]
async fn an_idle_connection_ends() {
    let server = server().await;
    let idle = |says: String| {
        let address = server.address.clone();
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(says.as_bytes()).await.unwrap();
            let begun = Instant::now();
            let mut said = Vec::new();
            let read = tokio::time::timeout(LONG, stream.read_to_end(&mut said)).await;
            read.expect("it stays open").unwrap();
            begun.elapsed()
        }
    };
    let asks = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    let (silent, kept) = tokio::join!(idle(String::new()), idle(asks));
    for took in [silent, kept] {
        assert!((8..15).contains(&took.as_secs()), "{took:?}");
    }
}
