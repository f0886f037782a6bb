//! A pool in a log: what happened to it is all that is kept.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;
use std::sync::Arc;

use contexture::pool::{
    Allocation, Change, Name, NewResource, PoolEvent, Requirement, ResourceType, Status, Task,
};
use contexture_store::{
    Expected, FileLog, FileOptions, From, Key, Kind, Log, PoolLog, Record, StoreError, Stream,
};

const AT: &str = "2026-11-15T12:00:00.000Z";

fn log(folder: &Path) -> Arc<dyn Log> {
    Arc::new(FileLog::new(folder, FileOptions::default()))
}

fn pool_in(log: &Arc<dyn Log>) -> PoolLog {
    PoolLog::new(log.clone(), Key::new("main").unwrap())
}

fn pool_of(folder: &Path) -> PoolLog {
    pool_in(&log(folder))
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn added(id: &str) -> PoolEvent {
    let resource = NewResource::new(name(id), ResourceType::Executor)
        .with(name("web_search"), contexture::pool::Level::MIDDLE);
    Change::Added { resource }.at(AT)
}

#[test]
fn a_pool_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let one = pool_of(folder.path());
    let mut loaded = one.load().unwrap();
    let all = vec![
        added("a"),
        added("b"),
        Change::Retired { id: name("b") }.at(AT),
    ];
    one.change(&mut loaded, |_| Ok::<_, StoreError>((all.clone(), ())))
        .unwrap();
    let again = pool_of(folder.path()).load().unwrap();
    assert_eq!(again.pool, loaded.pool);
    assert_eq!(again.tail, loaded.tail);
    assert_eq!(again.pool.count(Status::Released), 1);
    assert!(folder.path().join("pool/main.jsonl").is_file());
}

#[test]
fn what_does_not_fit_is_not_logged() {
    let folder = tempfile::tempdir().unwrap();
    let one = pool_of(folder.path());
    let mut loaded = one.load().unwrap();
    let twice = || Ok::<_, StoreError>((vec![added("a"), added("a")], ()));
    let refused = one.change(&mut loaded, |_| twice()).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("there is a resource `a` already"),
        "{refused}"
    );
    assert!(
        loaded.pool.is_empty(),
        "what is in memory is what is in the log"
    );
    assert!(pool_of(folder.path()).load().unwrap().pool.is_empty());
}

/// Attack F5: of two that want the same one, one gets it and the other is told so.
#[test]
fn nobody_is_taken_twice() {
    const TASKS: usize = 4;
    const RESOURCES: usize = 5;
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path());
    let first = pool_in(&log);
    let all: Vec<PoolEvent> = (0..RESOURCES).map(|n| added(&format!("r{n}"))).collect();
    first
        .change(&mut first.load().unwrap(), |_| {
            Ok::<_, StoreError>((all.clone(), ()))
        })
        .unwrap();
    let take = |worker: usize| {
        let pool = pool_in(&log);
        std::thread::spawn(move || {
            let mut loaded = pool.load().unwrap();
            let mut taken = Vec::new();
            for n in 0..TASKS {
                let task = Task::new(format!("task-{worker}-{n}"));
                let got = pool.change(&mut loaded, |pool| {
                    let wanted = [Requirement::of(name("web_search"))];
                    Ok::<_, StoreError>(match pool.allocate(&task, &wanted, AT) {
                        Allocation::Taken { matching, events } => {
                            let ids = matching.resources().into_iter().cloned().collect();
                            (events, ids)
                        }
                        _ => (Vec::new(), Vec::new()),
                    })
                });
                taken.extend(got.unwrap());
            }
            taken
        })
    };
    let workers: Vec<_> = (0..3).map(take).collect();
    let mut taken: Vec<Name> = workers
        .into_iter()
        .flat_map(|one| one.join().unwrap())
        .collect();
    taken.sort();
    let wanted: Vec<Name> = (0..RESOURCES).map(|n| name(&format!("r{n}"))).collect();
    assert_eq!(taken, wanted, "each once, and nobody is left over");
    assert_eq!(
        first.load().unwrap().pool.count(Status::Deployed),
        RESOURCES
    );
}

#[test]
fn what_is_no_event_is_left_aside_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path());
    let one = pool_in(&log);
    let mut loaded = one.load().unwrap();
    one.change(&mut loaded, |_| Ok::<_, StoreError>((vec![added("a")], ())))
        .unwrap();
    let stream = Stream::new(Kind::Pool, Key::new("main").unwrap());
    let strange = [
        r#"{"id":"1","at":"x","type":"resource:sung"}"#,
        r#"{"id":"2","at":"x","type":"resource:restored","resourceId":"a"}"#,
    ];
    let strange = strange.map(|text| Record::parse(text).unwrap());
    log.append(&stream, Expected::Any, &strange).unwrap();
    one.change(&mut loaded, |_| Ok::<_, StoreError>((vec![added("b")], ())))
        .unwrap();
    let again = one.load().unwrap();
    assert_eq!(again.pool.len(), 2);
    let odd = [
        "1: type: unknown event `resource:sung`",
        "2: pool: resource `a` is `available` already",
    ];
    assert_eq!(again.oddities, odd);
    assert_eq!(
        log.read(&stream, From::Start).unwrap().count(),
        4,
        "it stays in the log"
    );
}
