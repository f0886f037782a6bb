//! What the daemon adds to a request: who asks, whether they may, JSON-RPC, the guards.
//!
//! A session's token is checked over HTTP, with connections that stay open, against a handler of the same
//! library that reads a body and answers with the same bytes. Then sessions are prepared over the same
//! way. Both sides run in this process and share its cores with the clients.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::routing::post;
use contexture::Settings;
use contexture::inject::AgentInstanceMeta;
use contexture_benches::{Bar, Times, asked, note, row, shown};
use contexture_fleet::tokens::LIFE;
use contexture_fleet::work::WorkOptions;
use contexture_fleet::work::seal::HubKey;
use contexture_fleet::{Fleet, PATIENCE, Service};
use contexture_server::{Options, SignIns, serve};
use contexture_store::{BoardLog, FileLog, FileOptions, Key, Log};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Clients at once, and requests of each.
const CLIENTS: usize = 4;
const REQUESTS: usize = 5_000;
/// Sessions that have a token beside the one that asks.
const SESSIONS: usize = 1_000;

fn main() {
    if !asked("server: a checked token over HTTP : a bare handler") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let fleet = fleet(folder.path());
        for _ in 0..SESSIONS {
            prepared(&fleet).await;
        }
        let token = prepared(&fleet).await;
        let owner = fleet.owner_secret().to_owned();
        let address = daemon(fleet).await;
        let check = request(&token, "internal.validateToken", &json!({}));
        let answer = exchange(&mut TcpStream::connect(&address).await.unwrap(), &check).await;
        let bare = bare(answer).await;
        // In turns, so that both meet the same machine.
        let (mut ours, mut theirs) = (Times::default(), Times::default());
        let (mut our_time, mut their_time) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..4 {
            our_time += load(&address, &check, REQUESTS / 4, &mut ours).await;
            their_time += load(&bare, &check, REQUESTS / 4, &mut theirs).await;
        }
        report("token checks", our_time, REQUESTS, &ours);
        report("a bare handler", their_time, REQUESTS, &theirs);
        row(
            "a checked token : a bare handler",
            our_time,
            their_time,
            Bar::Most(2.0),
        );
        let prepare = request(&owner, "session.prepare", &json!({"meta": meta()}));
        let mut prepared = Times::default();
        let time = load(&address, &prepare, REQUESTS / 4, &mut prepared).await;
        report("prepared sessions", time, REQUESTS / 4, &prepared);
    });
}

fn report(what: &str, time: Duration, requests: usize, times: &Times) {
    let rate = (requests * CLIENTS) as f64 / time.as_secs_f64();
    let (half, most) = (times.percentile(50), times.percentile(99));
    note(&format!(
        "{what}: {rate:.0} a second, p50 {}, p99 {}",
        shown(half),
        shown(most)
    ));
}

/// The daemon, with this service behind it.
async fn daemon(service: Arc<dyn Service>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let options = Options {
        sign_ins: SignIns::new(format!("http://{address}")),
        stop: std::future::pending(),
    };
    tokio::spawn(serve(listener, service, options));
    address
}

/// A handler that reads the same and says the same, and asks nobody.
async fn bare(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = Bytes::from(answer);
    let handler =
        post(move |_: Bytes| async move { ([(header::CONTENT_TYPE, "application/json")], answer) });
    let router = Router::new().route("/rpc", handler);
    tokio::spawn(async { axum::serve(listener, router).await });
    address
}

fn request(secret: &str, method: &str, params: &Value) -> Vec<u8> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let head = "POST /rpc HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n";
    let long = body.len();
    format!("{head}authorization: Bearer {secret}\r\ncontent-length: {long}\r\n\r\n{body}").into()
}

/// How long all clients take for so many requests each.
async fn load(address: &str, request: &[u8], requests: usize, times: &mut Times) -> Duration {
    let begun = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (address, request) = (address.to_owned(), request.to_vec());
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut took = Vec::with_capacity(requests);
                for _ in 0..requests {
                    let begun = Instant::now();
                    exchange(&mut stream, &request).await;
                    took.push(begun.elapsed());
                }
                took
            })
        })
        .collect();
    for client in clients {
        for time in client.await.unwrap() {
            times.add(time);
        }
    }
    begun.elapsed()
}

/// Sends a request and reads its answer: no client could do less.
async fn exchange(stream: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    stream.write_all(request).await.unwrap();
    let mut said = Vec::with_capacity(4_096);
    loop {
        assert!(stream.read_buf(&mut said).await.unwrap() > 0);
        let Some(end) = said.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = std::str::from_utf8(&said[..end]).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        if said.len() == end + 4 + length {
            return said.split_off(end + 4);
        }
    }
}

/// A whole fleet, whose log is in a folder: what happens is written there too.
fn fleet(folder: &Path) -> Arc<Fleet> {
    let log: Arc<dyn Log> = Arc::new(FileLog::new(folder, FileOptions::default()));
    let board = BoardLog::new(Arc::clone(&log), Key::new("main").unwrap());
    let options = contexture_fleet::Options {
        root: folder.to_owned(),
        data: folder.to_owned(),
        log,
        settings: Settings::default(),
        token_life: LIFE,
        patience: Duration::from_secs(60),
        program: folder.join("none"),
        supervisor: None,
        first_wait: Duration::from_secs(1),
        trusts: Arc::new(|_, _| false),
        provider_patience: PATIENCE,
        providers: Vec::new(),
        templates: Arc::default(),
        hooks: Vec::new(),
        work: WorkOptions::here(board, HubKey::fresh().unwrap()),
    };
    Fleet::open(options).unwrap()
}

async fn prepared(fleet: &Fleet) -> String {
    let meta = AgentInstanceMeta::read(meta()).unwrap();
    let prepared = fleet.prepare(&meta, None).await.unwrap();
    prepared.context.token
}

fn meta() -> Value {
    json!({"name": "bot", "archetype": "service", "backendType": "native"})
}
