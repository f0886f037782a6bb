//! The promises. A home is a function that opens the same log again: what one handle wrote, another
//! one finds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture::EntryId;
use contexture_store::{Expected, From, Key, Kind, Log, Record, StoreError, Stream};
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

pub type Home<'h> = &'h dyn Fn() -> Arc<dyn Log>;

/// All of them, in order; each on streams of its own.
pub const PROMISES: [(&str, fn(Home<'_>)); 16] = [
    (
        "what is appended is read, in order and to the byte",
        appended_is_read,
    ),
    ("an empty append changes nothing", empty_append),
    ("a wrong tail is refused with the actual one", wrong_tail),
    ("the same append twice is one", idempotent),
    (
        "a record that is there already is not appended again, wherever it stands",
        known_anywhere,
    ),
    (
        "an id for two contents is refused, and nothing is appended",
        id_taken,
    ),
    ("an append is all or nothing", all_or_nothing),
    (
        "an append that goes on behind what is known goes on",
        partly_known,
    ),
    ("reading begins behind an entry", read_after),
    ("a stream that does not exist is empty", no_such_stream),
    (
        "streams do not mix, whatever they are called",
        streams_apart,
    ),
    ("a listing has each stream once, by key", listed),
    ("what is removed is gone, and its name is free", removed),
    ("replacing is whole, and checked like appending", replaced),
    ("strange text comes back as it went in", strange_text),
    ("random appends agree with a list in memory", like_a_list),
];

pub fn threads(home: Home<'_>) {
    many_threads_one_order(home);
}

fn fresh() -> Stream {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    Stream::session(Key::new(format!("s{}-{n}", std::process::id())).unwrap())
}

fn record(id: &str) -> Record {
    said(id, "something")
}

fn said(id: &str, what: &str) -> Record {
    Record::new(&json!({"id": id, "type": "custom", "payload": {"says": what}})).unwrap()
}

fn ids(log: &dyn Log, stream: &Stream) -> Vec<String> {
    let records = log.read(stream, From::Start).unwrap();
    records
        .map(|record| record.unwrap().id().to_string())
        .collect()
}

fn appended_is_read(home: Home<'_>) {
    let stream = fresh();
    let odd =
        Record::parse(r#"{ "id" : "a" ,"n":1.50, "big":123456789012345678901234567890,"x":[ ]}"#)
            .unwrap();
    let log = home();
    let tail = log
        .append(&stream, Expected::EMPTY, &[odd.clone(), record("b")])
        .unwrap();
    assert_eq!(tail, Some(EntryId::from("b")));
    log.append(&stream, Expected::after(&"b".into()), &[record("c")])
        .unwrap();
    drop(log);
    let log = home();
    let read: Vec<Record> = log
        .read(&stream, From::Start)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(read, [odd, record("b"), record("c")]);
    assert_eq!(log.tail(&stream).unwrap(), Some("c".into()));
}

fn empty_append(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    assert_eq!(log.append(&stream, Expected::EMPTY, &[]).unwrap(), None);
    log.append(&stream, Expected::EMPTY, &[record("a")])
        .unwrap();
    let tail = log.append(&stream, Expected::EMPTY, &[]).unwrap();
    assert_eq!(tail, Some("a".into()));
}

fn wrong_tail(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    log.append(&stream, Expected::EMPTY, &[record("a"), record("b")])
        .unwrap();
    for wrong in [None, Some("a"), Some("z")] {
        let wrong = wrong.map(EntryId::from);
        let refused = log.append(&stream, Expected::Tail(wrong.as_ref()), &[record("c")]);
        let Err(StoreError::WrongTail {
            expected, actual, ..
        }) = refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!((expected, actual), (wrong, Some("b".into())));
    }
    let refused = log.append(&fresh(), Expected::after(&"a".into()), &[record("c")]);
    assert!(matches!(
        refused,
        Err(StoreError::WrongTail { actual: None, .. })
    ));
    assert_eq!(ids(log.as_ref(), &stream), ["a", "b"]);
    log.append(&stream, Expected::Any, &[record("c")]).unwrap();
    assert_eq!(ids(log.as_ref(), &stream), ["a", "b", "c"]);
}

fn idempotent(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    let batch = [record("a"), record("b")];
    for _ in 0..3 {
        let tail = log.append(&stream, Expected::EMPTY, &batch).unwrap();
        assert_eq!(tail, Some("b".into()));
    }
    let log = {
        drop(log);
        home()
    };
    log.append(&stream, Expected::EMPTY, &batch).unwrap();
    // Twice in one call is once, too.
    log.append(
        &stream,
        Expected::after(&"b".into()),
        &[record("c"), record("c")],
    )
    .unwrap();
    assert_eq!(ids(log.as_ref(), &stream), ["a", "b", "c"]);
}

fn known_anywhere(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    for n in 0..50 {
        log.append(&stream, Expected::Any, &[record(&format!("r{n}"))])
            .unwrap();
    }
    let last = EntryId::from("r49");
    for n in [0, 17, 49] {
        // Behind the right tail and behind a wrong one: it is there.
        log.append(&stream, Expected::after(&last), &[record(&format!("r{n}"))])
            .unwrap();
        log.append(&stream, Expected::EMPTY, &[record(&format!("r{n}"))])
            .unwrap();
    }
    // The same said with other blanks is the same.
    let spaced = r#"{ "id": "r3", "type": "custom", "payload": { "says": "something" } }"#;
    log.append(
        &stream,
        Expected::after(&last),
        &[Record::parse(spaced).unwrap()],
    )
    .unwrap();
    assert_eq!(ids(log.as_ref(), &stream).len(), 50);
}

fn id_taken(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    log.append(&stream, Expected::EMPTY, &[record("a"), record("b")])
        .unwrap();
    let tail = EntryId::from("b");
    for batch in [
        vec![said("a", "something else")],
        vec![record("c"), said("a", "something else")],
        vec![record("c"), said("c", "something else")],
    ] {
        let refused = log.append(&stream, Expected::after(&tail), &batch);
        assert!(
            matches!(refused, Err(StoreError::IdTaken { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(ids(log.as_ref(), &stream), ["a", "b"]);
}

fn all_or_nothing(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    let batch: Vec<Record> = (0..500).map(|n| record(&format!("n{n}"))).collect();
    let refused = log.append(&stream, Expected::after(&"zzz".into()), &batch);
    assert!(refused.is_err());
    assert!(ids(log.as_ref(), &stream).is_empty());
    log.append(&stream, Expected::EMPTY, &batch).unwrap();
    assert_eq!(ids(log.as_ref(), &stream).len(), 500);
}

fn partly_known(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    log.append(&stream, Expected::EMPTY, &[record("a"), record("b")])
        .unwrap();
    let more = [record("a"), record("b"), record("c")];
    log.append(&stream, Expected::EMPTY, &more).unwrap();
    assert_eq!(ids(log.as_ref(), &stream), ["a", "b", "c"]);
    // But not behind something that is no longer the end.
    let refused = log.append(&stream, Expected::EMPTY, &[record("a"), record("d")]);
    assert!(
        matches!(refused, Err(StoreError::WrongTail { .. })),
        "{refused:?}"
    );
}

fn read_after(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    let batch: Vec<Record> = (0..2_500).map(|n| record(&format!("n{n}"))).collect();
    log.append(&stream, Expected::EMPTY, &batch).unwrap();
    for n in [0, 1_233, 2_498, 2_499] {
        let after = EntryId::from(format!("n{n}"));
        let rest = log.read(&stream, From::After(&after)).unwrap();
        assert_eq!(rest.count(), 2_499 - n);
    }
    let missing = EntryId::from("nowhere");
    let refused = log
        .read(&stream, From::After(&missing))
        .map(Iterator::count);
    assert!(
        matches!(refused, Err(StoreError::NoEntry { .. })),
        "{refused:?}"
    );
}

fn no_such_stream(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    assert_eq!(log.tail(&stream).unwrap(), None);
    assert_eq!(log.read(&stream, From::Start).unwrap().count(), 0);
    assert!(!log.remove(&stream).unwrap());
    let nothing = EntryId::from("a");
    assert!(log.read(&stream, From::After(&nothing)).is_err());
}

fn streams_apart(home: Home<'_>) {
    let log = home();
    let unique = fresh().key;
    let names = [
        "x", "X", "x/y", "x%2Fy", "x:y", "é", "e\u{301}", "x.lock", "x.jsonl",
    ];
    let streams: Vec<Stream> = names
        .iter()
        .flat_map(|name| {
            let key = Key::new(format!("{unique}-{name}")).unwrap();
            [
                Stream::session(key.clone()),
                Stream::chat(key.clone()),
                Stream::memory(key),
            ]
        })
        .collect();
    for (n, stream) in streams.iter().enumerate() {
        log.append(stream, Expected::EMPTY, &[record(&format!("r{n}"))])
            .unwrap();
    }
    for (n, stream) in streams.iter().enumerate() {
        assert_eq!(ids(log.as_ref(), stream), [format!("r{n}")], "{stream}");
    }
}

fn listed(home: Home<'_>) {
    let log = home();
    let unique = fresh().key;
    let mut made: Vec<Stream> = ["b", "a", "C", "d/e"]
        .iter()
        .map(|name| Stream::chat(Key::new(format!("{unique}-{name}")).unwrap()))
        .collect();
    for stream in &made {
        log.append(stream, Expected::EMPTY, &[record("r")]).unwrap();
    }
    made.sort();
    let all = log.list(Kind::Chat).unwrap();
    let mine: Vec<_> = all
        .iter()
        .filter(|info| made.contains(&info.stream))
        .collect();
    assert_eq!(
        mine.iter()
            .map(|info| info.stream.clone())
            .collect::<Vec<_>>(),
        made
    );
    assert!(
        mine.iter()
            .all(|info| info.bytes > 0 && info.updated.is_some())
    );
    assert!(
        log.list(Kind::Session)
            .unwrap()
            .iter()
            .all(|info| !made.contains(&info.stream))
    );
}

fn removed(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    log.append(&stream, Expected::EMPTY, &[record("a")])
        .unwrap();
    assert!(log.remove(&stream).unwrap());
    assert!(!log.remove(&stream).unwrap());
    assert_eq!(log.tail(&stream).unwrap(), None);
    assert!(
        log.list(Kind::Session)
            .unwrap()
            .iter()
            .all(|info| info.stream != stream)
    );
    log.append(&stream, Expected::EMPTY, &[said("a", "something else")])
        .unwrap();
    assert_eq!(ids(log.as_ref(), &stream), ["a"]);
}

fn replaced(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    log.append(&stream, Expected::EMPTY, &[record("a"), record("b")])
        .unwrap();
    let refused = log.replace(&stream, Expected::after(&"a".into()), &[record("x")]);
    assert!(
        matches!(refused, Err(StoreError::WrongTail { .. })),
        "{refused:?}"
    );
    assert_eq!(ids(log.as_ref(), &stream), ["a", "b"]);
    log.replace(
        &stream,
        Expected::after(&"b".into()),
        &[record("s"), record("b")],
    )
    .unwrap();
    assert_eq!(ids(log.as_ref(), &stream), ["s", "b"]);
    log.append(&stream, Expected::after(&"b".into()), &[said("a", "anew")])
        .unwrap();
    assert_eq!(ids(log.as_ref(), &stream), ["s", "b", "a"]);
    log.replace(&stream, Expected::Any, &[]).unwrap();
    assert_eq!(ids(log.as_ref(), &stream), [""; 0]);
    log.append(&stream, Expected::EMPTY, &[record("z")])
        .unwrap();
    assert_eq!(ids(log.as_ref(), &stream), ["z"]);
}

fn strange_text(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    let texts = [
        "\0",
        "\n\r\t",
        "\u{2028}\u{85}",
        "😀 会话",
        "\\u0000",
        "\"}\n{\"id\":\"forged\"}",
        " leading",
        "\u{e0041}",
    ];
    let batch: Vec<Record> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| said(&format!("t{n}"), text))
        .collect();
    log.append(&stream, Expected::EMPTY, &batch).unwrap();
    let ids: Vec<Record> = ["\0", "a\nb", "ü", " ", "%"]
        .iter()
        .map(|id| record(id))
        .collect();
    log.append(&stream, Expected::Any, &ids).unwrap();
    log.append(&stream, Expected::Any, &ids).unwrap();
    let read: Vec<Record> = log
        .read(&stream, From::Start)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(read, [batch, ids].concat());
}

/// Against the simplest thing that could be a log.
fn like_a_list(home: Home<'_>) {
    use proptest::prelude::*;
    let step = (
        0usize..4,
        0usize..12,
        prop::collection::vec((0usize..30, any::<bool>()), 0..5),
    );
    let config = Config {
        cases: 30,
        failure_persistence: None,
        ..Config::default()
    };
    let run = TestRunner::new(config).run(&prop::collection::vec(step, 1..12), |steps| {
        let (log, stream) = (home(), fresh());
        let mut model: Vec<Record> = Vec::new();
        for (kind, back, batch) in steps {
            let tail = match kind {
                0 => model.iter().rev().nth(back).map(|r| r.id().clone()),
                _ => model.last().map(|r| r.id().clone()),
            };
            let records: Vec<Record> = batch
                .into_iter()
                .map(|(id, other)| said(&format!("i{id}"), if other { "other" } else { "one" }))
                .collect();
            let expected = if kind == 1 {
                Expected::Any
            } else {
                Expected::Tail(tail.as_ref())
            };
            let wanted = in_memory(&mut model, expected, &records);
            let got = log.append(&stream, expected, &records);
            match (&wanted, &got) {
                (Ok(()), Ok(tail)) => prop_assert_eq!(tail.as_ref(), model.last().map(Record::id)),
                (Err("tail"), Err(StoreError::WrongTail { actual, .. })) => {
                    prop_assert_eq!(actual.as_ref(), model.last().map(Record::id));
                }
                (Err("taken"), Err(StoreError::IdTaken { .. })) => {}
                _ => prop_assert!(false, "{:?} against {:?}", wanted, got),
            }
            let read: Vec<Record> = log
                .read(&stream, From::Start)
                .unwrap()
                .map(Result::unwrap)
                .collect();
            prop_assert_eq!(&read, &model);
        }
        Ok(())
    });
    run.unwrap();
}

fn in_memory(
    model: &mut Vec<Record>,
    expected: Expected<'_>,
    records: &[Record],
) -> Result<(), &'static str> {
    let mut fresh: Vec<(usize, &Record)> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let known = model
            .iter()
            .chain(fresh.iter().map(|(_, r)| *r))
            .find(|r| r.id() == record.id());
        match known {
            Some(known) if known == record => {}
            Some(_) => return Err("taken"),
            None => fresh.push((at, record)),
        }
    }
    let Some((first, _)) = fresh.first() else {
        return Ok(());
    };
    if let Expected::Tail(given) = expected {
        let wanted = first.checked_sub(1).map(|at| records[at].id()).or(given);
        if wanted != model.last().map(Record::id) {
            return Err("tail");
        }
    }
    let fresh: Vec<Record> = fresh
        .into_iter()
        .map(|(_, record)| record.clone())
        .collect();
    model.extend(fresh);
    Ok(())
}

/// Eight writers through one handle: one order, each writer's own order kept, nothing twice.
fn many_threads_one_order(home: Home<'_>) {
    let (log, stream) = (home(), fresh());
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (log, stream) = (&log, &stream);
            scope.spawn(move || {
                for n in 0..40 {
                    let pair = [
                        record(&format!("w{writer}-{n}a")),
                        record(&format!("w{writer}-{n}b")),
                    ];
                    log.append(stream, Expected::Any, &pair).unwrap();
                }
            });
        }
    });
    let all = ids(log.as_ref(), &stream);
    assert_eq!(all.len(), 640);
    for writer in 0..8 {
        let own: Vec<&String> = all
            .iter()
            .filter(|id| id.starts_with(&format!("w{writer}-")))
            .collect();
        let wanted: Vec<String> = (0..40)
            .flat_map(|n| [format!("w{writer}-{n}a"), format!("w{writer}-{n}b")])
            .collect();
        assert_eq!(own, wanted.iter().collect::<Vec<_>>());
    }
    // What was appended together stands together.
    for pair in all.chunks(2) {
        assert_eq!(pair[0].trim_end_matches('a'), pair[1].trim_end_matches('b'));
    }
}
