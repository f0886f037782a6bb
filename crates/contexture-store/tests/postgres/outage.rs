//! F12: the database goes away and comes back.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use contexture::EntryId;
use contexture_store::{Expected, From, Log, PgLog, PgOptions, StoreError};

use crate::postgres::proxy::Proxy;
use crate::postgres::{record, stream};
use crate::server::{PASSWORD, Server};

// needs: postgres
#[test]
fn a_server_that_goes_away_and_comes_back() {
    let Some(server) = Server::get() else {
        return;
    };
    let database = server.database();
    let url = database.url();
    crashes_lose_and_repeat_nothing(&server, &url);
    an_answer_that_is_lost_is_asked_for_again(&server, database.name());
    a_server_that_hangs_is_given_up(&server, &url);
    a_server_that_stays_away_is_named(&server, &url);
}

fn crashes_lose_and_repeat_nothing(server: &Server, url: &str) {
    const WRITERS: usize = 4;
    let (over, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let options = PgOptions {
        patience: Duration::from_secs(60),
        ..PgOptions::default()
    };
    let log = PgLog::connect(url, options).unwrap();
    let acknowledged: Vec<Vec<EntryId>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (log, over, count) = (&log, &over, &count);
                scope.spawn(move || {
                    // One alone with strict tails; the others share a stream.
                    let alone = writer == 0;
                    let main = stream(if alone { "alone" } else { "shared" });
                    let mut done: Vec<EntryId> = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        let id = EntryId::from(format!("w{writer}-{}", done.len()));
                        let expected = match alone {
                            true => Expected::Tail(done.last()),
                            false => Expected::Any,
                        };
                        log.append(&main, expected, &[record(id.as_str())]).unwrap();
                        done.push(id);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    done
                })
            })
            .collect();
        // In the middle of work, each time.
        let work = || {
            let enough = count.load(Ordering::Relaxed) + 100;
            while count.load(Ordering::Relaxed) < enough && !writers.iter().any(|w| w.is_finished())
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        for _ in 0..2 {
            work();
            if !server.crash() {
                break;
            }
            server.start_again();
        }
        work();
        over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let read = |name: &str| -> Vec<EntryId> {
        let records = log.read(&stream(name), From::Start).unwrap();
        records.map(|record| record.unwrap().id().clone()).collect()
    };
    let (alone, shared) = (read("alone"), read("shared"));
    let sent: usize = acknowledged.iter().map(Vec::len).sum();
    println!(
        "two crashes: {sent} acknowledged, {} found",
        alone.len() + shared.len()
    );
    assert_eq!(alone, acknowledged[0]);
    assert_eq!(shared.iter().collect::<HashSet<_>>().len(), shared.len());
    for (writer, done) in acknowledged.iter().enumerate().skip(1) {
        let prefix = format!("w{writer}-");
        let found = shared.iter().filter(|id| id.as_str().starts_with(&prefix));
        assert!(found.eq(done), "writer {writer}");
    }
}

/// The append is committed, but the way back is cut: it is repeated, and there once.
fn an_answer_that_is_lost_is_asked_for_again(server: &Server, database: &str) {
    let Some(port) = server.port() else {
        return;
    };
    let proxy = Proxy::before(port);
    let url = server.url("127.0.0.1", database).unwrap();
    let url = url.replace(&format!(":{port}/"), &format!(":{}/", proxy.port));
    let log = PgLog::connect(&format!("{url}?sslmode=disable"), PgOptions::default()).unwrap();
    let main = stream("cut");
    let mut tail: Option<EntryId> = None;
    for n in 0..20 {
        let batch = [record(&format!("a{n}")), record(&format!("b{n}"))];
        proxy.cut.store(true, Ordering::SeqCst);
        tail = log
            .append(&main, Expected::Tail(tail.as_ref()), &batch)
            .unwrap();
        assert!(!proxy.cut.load(Ordering::SeqCst));
        assert_eq!(tail.as_ref(), Some(batch[1].id()));
    }
    assert_eq!(log.read(&main, From::Start).unwrap().count(), 40);
    let after = tail.unwrap();
    proxy.cut.store(true, Ordering::SeqCst);
    log.replace(&main, Expected::after(&after), &[record("only")])
        .unwrap();
    assert!(!proxy.cut.load(Ordering::SeqCst));
    assert_eq!(log.read(&main, From::Start).unwrap().count(), 1);
}

fn a_server_that_hangs_is_given_up(server: &Server, url: &str) {
    let options = PgOptions {
        patience: Duration::from_millis(300),
        statement_timeout: Duration::from_millis(300),
        ..PgOptions::default()
    };
    let log = PgLog::connect(url, options).unwrap();
    let append = |id: &str| log.append(&stream("hung"), Expected::Any, &[record(id)]);
    append("a").unwrap();
    let Some(mut hanging) = server.hang(4) else {
        return;
    };
    std::thread::sleep(Duration::from_millis(200));
    let since = Instant::now();
    let refused = append("b");
    let took = since.elapsed();
    assert_gone(refused);
    hanging.wait().unwrap();
    println!("given up after {took:.1?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    append("b").unwrap();
    let found = log.read(&stream("hung"), From::Start).unwrap();
    assert_eq!(found.count(), 2);
}

fn a_server_that_stays_away_is_named(server: &Server, url: &str) {
    let options = PgOptions {
        patience: Duration::from_millis(700),
        ..PgOptions::default()
    };
    let log = PgLog::connect(url, options).unwrap();
    let append = |id: &str| log.append(&stream("away"), Expected::Any, &[record(id)]);
    append("a").unwrap();
    if !server.crash() {
        return;
    }
    let since = Instant::now();
    assert_gone(append("b"));
    assert!(since.elapsed() < Duration::from_secs(30));
    server.start_again();
    append("b").unwrap();
}

fn assert_gone<T: std::fmt::Debug>(refused: Result<T, StoreError>) {
    let Err(error @ StoreError::Database { .. }) = refused else {
        panic!("{refused:?}");
    };
    let text = format!("{error} {error:?} {}", error.hint());
    println!("{text}");
    assert!(text.contains("127.0.0.1:") && text.contains("database `contexture_test_"));
    for secret in [PASSWORD, "s3cret", "p%40ss"] {
        assert!(!text.contains(secret), "{text}");
    }
}
