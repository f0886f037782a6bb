//! F5, inside one process: threads of one process, and handles that are as good as processes, on one stream at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use contexture_store::{Durability, Expected, FileLog, FileOptions, From, Log, Record, StoreError};

use crate::faults::sim::{Fault, SimDisk};
use crate::faults::{Random, ids, record, stream};

fn quick() -> FileOptions {
    FileOptions {
        durability: Durability::Os,
        ..FileOptions::default()
    }
}

/// What is acknowledged while another thread replaces the stream is there, behind or before.
#[test]
fn a_replacement_swallows_no_append() {
    let folder = tempfile::tempdir().unwrap();
    let log = FileLog::new(folder.path(), quick());
    let stop = AtomicBool::new(false);
    let replaced = AtomicUsize::new(0);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|who| {
                let log = &log;
                scope.spawn(move || {
                    for n in 0..300 {
                        let new = [record(&format!("{who}-{n}"))];
                        log.append(&stream(), Expected::Any, &new).unwrap();
                        thread::sleep(Duration::from_micros(200));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let tail = log.tail(&stream()).unwrap();
                let all: Vec<Record> = log
                    .read(&stream(), From::Start)
                    .unwrap()
                    .map(Result::unwrap)
                    .collect();
                // Read behind the tail that was asked for: not what is replaced.
                if all.last().map(Record::id) != tail.as_ref() {
                    continue;
                }
                match log.replace(&stream(), Expected::Tail(tail.as_ref()), &all) {
                    Ok(()) => drop(replaced.fetch_add(1, Ordering::Relaxed)),
                    Err(StoreError::WrongTail { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // Also when one failed: else the others never end.
        stop.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    let there = ids(&log, &stream());
    assert_eq!(there.len(), 600);
    for who in 0..2 {
        let own: Vec<&String> = there
            .iter()
            .filter(|id| id.starts_with(&format!("{who}-")))
            .collect();
        assert_eq!(own.len(), 300);
    }
    assert!(replaced.load(Ordering::Relaxed) > 10);
    println!(
        "F5: 600 appends among {} replacements, all there",
        replaced.load(Ordering::Relaxed)
    );
}

/// Handles that share nothing but the folder, one of which keeps removing the stream: never two
/// writers, so never a line in another's place.
#[test]
fn a_removed_stream_never_has_two_writers() {
    let folder = tempfile::tempdir().unwrap();
    let notices = Arc::new(Mutex::new(Vec::new()));
    let handle = || {
        let notices = Arc::clone(&notices);
        let options = FileOptions {
            patience: Duration::from_secs(20),
            listener: Arc::new(move |notice| notices.lock().unwrap().push(notice.to_string())),
            ..quick()
        };
        FileLog::new(folder.path(), options)
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|who| {
                let log = handle();
                scope.spawn(move || {
                    for n in 0..150 {
                        let new = [
                            record(&format!("{who}-{n}-a")),
                            record(&format!("{who}-{n}-b")),
                        ];
                        log.append(&stream(), Expected::Any, &new).unwrap();
                        log.release(&stream());
                    }
                })
            })
            .collect();
        let log = handle();
        let stop = &stop;
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                log.remove(&stream()).unwrap();
                log.release(&stream());
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // Also when one failed: else the others never end.
        stop.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert_eq!(*notices.lock().unwrap(), Vec::<String>::new());
}

/// Threads append, and try again what failed, while operations fail at random: what is there in the
/// end is what was acknowledged, and nothing else.
#[test]
fn many_threads_on_a_failing_disk_agree_with_what_they_were_told() {
    let mut random = Random::new();
    let mut refused = 0;
    for _ in 0..60 {
        let disk = SimDisk::default();
        let log = FileLog::on(Arc::new(disk.clone()), FileOptions::default());
        log.append(&stream(), Expected::EMPTY, &[record("first")])
            .unwrap();
        let failures = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let mut chaos = Random(random.below(u64::MAX) | 1);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|who| {
                    let (log, failures) = (&log, &failures);
                    scope.spawn(move || {
                        for n in 0..20 {
                            let batch: Vec<_> = (0..=(n + who) % 3)
                                .map(|i| record(&format!("{who}-{n}-{i}")))
                                .collect();
                            while let Err(error) = log.append(&stream(), Expected::Any, &batch) {
                                assert!(matches!(error, StoreError::Io { .. }), "{error}");
                                failures.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    })
                })
                .collect();
            let (disk, stop) = (&disk, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let from = disk.ops() + chaos.below(6) as usize;
                    let to = from + 1 + chaos.below(4) as usize;
                    disk.fail(Some(Fault {
                        from,
                        to,
                        kind: std::io::ErrorKind::StorageFull,
                    }));
                    thread::sleep(Duration::from_micros(chaos.below(200)));
                }
                disk.fail(None);
            });
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            stop.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok));
        });
        log.append(&stream(), Expected::Any, &[record("last")])
            .unwrap();
        drop(log);
        let again = FileLog::on(Arc::new(disk.clone()), FileOptions::default());
        let there = ids(&again, &stream());
        let mut wanted: Vec<String> = vec!["first".to_owned()];
        for who in 0..4 {
            for n in 0..20 {
                wanted.extend((0..=(n + who) % 3).map(|i| format!("{who}-{n}-{i}")));
            }
        }
        wanted.push("last".to_owned());
        let mut sorted = there.clone();
        sorted.sort();
        wanted.sort();
        assert_eq!(sorted, wanted);
        refused += failures.load(Ordering::Relaxed);
    }
    assert!(refused > 0, "nothing ever failed");
    println!("F5: 60 runs of 4 threads, {refused} appends refused, none lost or there twice");
}
