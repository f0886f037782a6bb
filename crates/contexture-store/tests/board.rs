//! A pool and its tasks in a log: what happened to them is all that is kept.

use std::path::Path;
use std::sync::Arc;

use contexture::ContextError;
use contexture::pool::{
    Allocation, Change, Name, NewResource, Requirement, ResourceType, Status, Task,
};
use contexture::task::{Board, TaskError};
use contexture_store::{
    BoardLog, Expected, FileLog, FileOptions, From, Key, Kind, LoadedBoard, Log, Record,
    StoreError, Stream,
};

const AT: &str = "2026-11-15T12:00:00.000Z";

fn log(folder: &Path) -> Arc<dyn Log> {
    Arc::new(FileLog::new(folder, FileOptions::default()))
}

fn pool_in(log: &Arc<dyn Log>) -> BoardLog {
    BoardLog::new(log.clone(), Key::new("main").unwrap())
}

fn pool_of(folder: &Path) -> BoardLog {
    pool_in(&log(folder))
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn added(id: &str) -> Change {
    let resource = NewResource::new(name(id), ResourceType::Executor)
        .with(name("web_search"), contexture::pool::Level::MIDDLE);
    Change::Added { resource }
}

/// Has all of them happen, or none.
fn happen(log: &BoardLog, loaded: &mut LoadedBoard, all: &[Change]) -> Result<(), StoreError> {
    let each = |board: &mut Board| {
        all.iter()
            .try_for_each(|change| board.change(change.clone(), AT))
            .map_err(|error: TaskError| ContextError::from(error).into())
    };
    log.change(loaded, each).map(|_| ())
}

#[test]
fn a_pool_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let one = pool_of(folder.path());
    let mut loaded = one.load().unwrap();
    let all = vec![
        added("a"),
        added("b"),
        Change::Retired {
            id: name("b"),
            by_owner: true,
        },
    ];
    happen(&one, &mut loaded, &all).unwrap();
    let again = pool_of(folder.path()).load().unwrap();
    assert_eq!(again.board.pool(), loaded.board.pool());
    assert_eq!(again.tail, loaded.tail);
    assert_eq!(again.board.pool().count(Status::Released), 1);
    assert!(folder.path().join("pool/main.jsonl").is_file());
}

#[test]
fn what_does_not_fit_is_not_logged() {
    let folder = tempfile::tempdir().unwrap();
    let one = pool_of(folder.path());
    let mut loaded = one.load().unwrap();
    let refused = happen(&one, &mut loaded, &[added("a"), added("a")]).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("there is a resource `a` already"),
        "{refused}"
    );
    assert!(
        loaded.board.pool().is_empty(),
        "what is in memory is what is in the log"
    );
    assert!(
        pool_of(folder.path())
            .load()
            .unwrap()
            .board
            .pool()
            .is_empty()
    );
}

/// Attack F5: of two that want the same one, one gets it and the other is told so.
#[test]
fn nobody_is_taken_twice() {
    const TASKS: usize = 4;
    const RESOURCES: usize = 5;
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path());
    let first = pool_in(&log);
    let all: Vec<Change> = (0..RESOURCES).map(|n| added(&format!("r{n}"))).collect();
    happen(&first, &mut first.load().unwrap(), &all).unwrap();
    let take = |worker: usize| {
        let pool = pool_in(&log);
        std::thread::spawn(move || {
            let mut loaded = pool.load().unwrap();
            let mut taken = Vec::new();
            for n in 0..TASKS {
                let task = Task::new(format!("task-{worker}-{n}"));
                let got = pool.change(&mut loaded, |board| {
                    let wanted = [Requirement::of(name("web_search"))];
                    let Allocation::Taken { matching, events } =
                        board.pool().allocate(&task, &wanted, AT)
                    else {
                        return Ok::<_, StoreError>(Vec::new());
                    };
                    for event in events {
                        board.change(event.change, AT).map_err(ContextError::from)?;
                    }
                    Ok(matching.resources().into_iter().cloned().collect())
                });
                taken.extend(got.unwrap().0);
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
        first.load().unwrap().board.pool().count(Status::Deployed),
        RESOURCES
    );
}

#[test]
fn what_is_no_event_is_left_aside_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path());
    let one = pool_in(&log);
    let mut loaded = one.load().unwrap();
    happen(&one, &mut loaded, &[added("a")]).unwrap();
    let stream = Stream::new(Kind::Pool, Key::new("main").unwrap());
    let strange = [
        r#"{"id":"1","at":"x","type":"resource:sung"}"#,
        r#"{"id":"2","at":"x","type":"resource:restored","resourceId":"a"}"#,
    ];
    let strange = strange.map(|text| Record::parse(text).unwrap());
    log.append(&stream, Expected::Any, &strange).unwrap();
    happen(&one, &mut loaded, &[added("b")]).unwrap();
    let again = one.load().unwrap();
    assert_eq!(again.board.pool().len(), 2);
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
