use std::sync::Arc;

use contexture::EntryId;
use contexture_store::{Expected, From, Log, PgLog, PgOptions, Record, StoreError};
use serde_json::json;

use crate::postgres::{record, stream};
use crate::server::Server;

// needs: postgres
#[test]
fn streams_in_a_database() {
    let Some(server) = Server::get() else {
        return;
    };
    let database = server.database();
    let url = database.url();
    eight_handles_make_one_chain(&url);
    long_ids(&url);
    large_bodies(&url);
    replaced_while_read(&url);
    a_repeated_replacement_is_one(&url);
    inside_an_async_runtime(&url);
}

/// Each writer says behind what it appends; who loses is told the actual end and goes on there.
fn eight_handles_make_one_chain(url: &str) {
    const EACH: usize = 25;
    let main = stream("chain");
    let lost: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let main = &main;
                scope.spawn(move || {
                    let log = PgLog::connect(url, PgOptions::default()).unwrap();
                    let mut tail: Option<EntryId> = None;
                    let mut lost = 0;
                    for n in 0..EACH {
                        loop {
                            let id = format!("w{writer}-{n}");
                            let behind = tail.as_ref().map(ToString::to_string);
                            let link = Record::new(&json!({"id": id, "behind": behind})).unwrap();
                            match log.append(main, Expected::Tail(tail.as_ref()), &[link]) {
                                Ok(end) => {
                                    assert_eq!(end, Some(EntryId::from(id)));
                                    tail = end;
                                    break;
                                }
                                Err(StoreError::WrongTail { actual, .. }) => {
                                    assert_ne!(actual, tail);
                                    tail = actual;
                                    lost += 1;
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                    lost
                })
            })
            .collect();
        writers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    let log = PgLog::connect(url, PgOptions::default()).unwrap();
    let mut before = json!(null);
    let mut count = 0;
    for link in log.read(&main, From::Start).unwrap() {
        let link = link.unwrap();
        assert_eq!(link.value().unwrap()["behind"], before);
        before = json!(link.id().as_str());
        count += 1;
    }
    println!("one chain of {count}; {lost} appends were told of another end");
    assert_eq!(count, 8 * EACH);
}

/// An index cannot hold them.
fn long_ids(url: &str) {
    let log = PgLog::connect(url, PgOptions::default()).unwrap();
    let main = stream("long ids");
    let ids: Vec<EntryId> = [1_000, 1_001, 100_000]
        .iter()
        .map(|&n| EntryId::from(format!("{}%\0é", "x".repeat(n))))
        .collect();
    let records: Vec<Record> = ids.iter().map(|id| record(id.as_str())).collect();
    for _ in 0..2 {
        let tail = log.append(&main, Expected::EMPTY, &records).unwrap();
        assert_eq!(tail.as_ref(), ids.last());
    }
    assert_eq!(log.tail(&main).unwrap().as_ref(), ids.last());
    let refused = log.append(&main, Expected::after(&ids[0]), &[record("new")]);
    let Err(StoreError::WrongTail { actual, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(actual.as_ref(), ids.last());
    let read = log.read(&main, From::After(&ids[1])).unwrap();
    assert_eq!(
        read.map(Result::unwrap).collect::<Vec<_>>(),
        [records[2].clone()]
    );
    assert_eq!(log.read(&main, From::Start).unwrap().count(), 3);
}

/// More than one page by bytes, and a body that is larger than a page.
fn large_bodies(url: &str) {
    let log = PgLog::connect(url, PgOptions::default()).unwrap();
    let main = stream("large");
    let sizes = [10, 3 << 20, 2 << 20, 9 << 20, 10, 10, 5 << 20];
    let records: Vec<Record> = sizes
        .iter()
        .enumerate()
        .map(|(n, &size)| {
            Record::new(&json!({"id": format!("r{n}"), "text": "ü".repeat(size / 2)})).unwrap()
        })
        .collect();
    log.append(&main, Expected::EMPTY, &records).unwrap();
    let read = log.read(&main, From::Start).unwrap();
    assert!(read.map(Result::unwrap).eq(records));
}

/// A reader is told, rather than shown half of the one and half of the other.
fn replaced_while_read(url: &str) {
    let log = PgLog::connect(url, PgOptions::default()).unwrap();
    let main = stream("window");
    let records: Vec<Record> = (0..2_500).map(|n| record(&format!("r{n}"))).collect();
    log.append(&main, Expected::EMPTY, &records).unwrap();
    let mut reader = log.read(&main, From::Start).unwrap();
    let begun: Vec<Record> = reader.by_ref().take(10).map(Result::unwrap).collect();
    assert_eq!(begun, records[..10]);
    // What is appended behind what it saw does not disturb it.
    log.append(&main, Expected::Any, &[record("later")])
        .unwrap();
    let more: Vec<Record> = reader.by_ref().take(1_500).map(Result::unwrap).collect();
    assert_eq!(more, records[10..1_510]);
    log.replace(&main, Expected::Any, &[record("a")]).unwrap();
    let rest: Vec<Result<Record, StoreError>> = reader.collect();
    assert!(matches!(
        rest.last(),
        Some(Err(StoreError::Replaced { .. }))
    ));
    assert!(rest[..rest.len() - 1].iter().all(Result::is_ok));
}

fn a_repeated_replacement_is_one(url: &str) {
    let log = PgLog::connect(url, PgOptions::default()).unwrap();
    let main = stream("again");
    log.append(&main, Expected::EMPTY, &[record("a")]).unwrap();
    let after = EntryId::from("a");
    let new = [record("b"), record("c"), record("c")];
    for _ in 0..2 {
        log.replace(&main, Expected::after(&after), &new).unwrap();
    }
    assert_eq!(log.read(&main, From::Start).unwrap().count(), 2);
    let refused = log.replace(&main, Expected::after(&after), &[record("d")]);
    assert!(matches!(refused, Err(StoreError::WrongTail { .. })));
}

/// Callers block wherever they are, and may drop it there as well.
fn inside_an_async_runtime(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let log = runtime.block_on(async {
        let log = Arc::new(PgLog::connect(url, PgOptions::default()).unwrap());
        let main = stream("async");
        log.append(&main, Expected::EMPTY, &[record("a")]).unwrap();
        drop(PgLog::connect(url, PgOptions::default()).unwrap());
        assert_eq!(log.read(&main, From::Start).unwrap().count(), 1);
        log
    });
    assert!(log.tail(&stream("async")).unwrap().is_some());
    runtime.block_on(async move { drop(log) });
}
