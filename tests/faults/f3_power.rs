//! F3: only what was synced survives a power cut, and nothing acknowledged is lost.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

use contexture_store::{Expected, FileLog, FileOptions, Key, Log, Record, Stream};

use crate::faults::sim::{Fault, Left, SimDisk};
use crate::faults::{ids, record};

const LEFT: [Left; 4] = [Left::Nothing, Left::Half, Left::All, Left::Nuls];

/// What the caller was told, and what it asked for last without an answer.
#[derive(Default)]
struct Told {
    acknowledged: Vec<Vec<String>>,
    asked: Option<Vec<String>>,
    /// The window, and what it would have become.
    window: Vec<String>,
    next_window: Option<Vec<String>>,
    /// Whether the stream that is removed is there.
    gone: Option<bool>,
}

fn open(disk: &SimDisk) -> FileLog {
    FileLog::on(Arc::new(disk.clone()), FileOptions::default())
}

fn log_stream() -> Stream {
    Stream::session(Key::new("log").unwrap())
}

fn window_stream() -> Stream {
    Stream::memory(Key::new("window").unwrap())
}

fn gone_stream() -> Stream {
    Stream::chat(Key::new("gone").unwrap())
}

fn records(ids: &[String]) -> Vec<Record> {
    ids.iter().map(|id| record(id)).collect()
}

/// Everything that the store does with a disk, until it is out of power.
fn scenario(disk: &SimDisk, told: &mut Told) -> Option<()> {
    for round in 0..3 {
        // Each round is a process of its own.
        let log = open(disk);
        for n in 0..3 {
            let batch: Vec<String> = (0..=n).map(|i| format!("{round}-{n}-{i}")).collect();
            told.asked = Some(batch.clone());
            log.append(&log_stream(), Expected::Any, &records(&batch))
                .ok()?;
            told.asked = None;
            told.acknowledged.push(batch);
        }
        if round == 0 {
            log.append(&gone_stream(), Expected::Any, &[record("gone")])
                .ok()?;
            told.gone = Some(true);
        }
        if round == 2 {
            told.gone = None;
            log.remove(&gone_stream()).ok()?;
            told.gone = Some(false);
        }
        let window: Vec<String> = (0..3).map(|i| format!("w{round}-{i}")).collect();
        told.next_window = Some(window.clone());
        log.replace(&window_stream(), Expected::Any, &records(&window))
            .ok()?;
        told.next_window = None;
        told.window = window;
    }
    Some(())
}

/// What is wrong with what a power cut left, if anything is.
fn broken(disk: &SimDisk, told: &Told) -> Option<String> {
    let log = open(disk);
    let there = ids(&log, &log_stream());
    let acknowledged: Vec<String> = told.acknowledged.concat();
    let mut with_asked = acknowledged.clone();
    with_asked.extend(told.asked.clone().unwrap_or_default());
    if there != acknowledged && there != with_asked {
        return Some(format!(
            "acknowledged {acknowledged:?}, asked {:?}, there {there:?}",
            told.asked
        ));
    }
    let window = ids(&log, &window_stream());
    if window != told.window && Some(&window) != told.next_window.as_ref() {
        return Some(format!("window {:?}, there {window:?}", told.window));
    }
    let gone = ids(&log, &gone_stream());
    if told.gone.is_some_and(|there| there == gone.is_empty()) {
        return Some(format!("removed or not: {:?}, there {gone:?}", told.gone));
    }
    let next = log.append(&log_stream(), Expected::Any, &[record("next")]);
    next.err().map(|error| format!("cannot go on: {error}"))
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_goes() {
    let disk = SimDisk::default();
    scenario(&disk, &mut Told::default()).unwrap();
    let ops = disk.ops();
    let mut cuts = 0;
    for at in 0..=ops {
        let disk = SimDisk::default();
        disk.fail(Some(Fault {
            from: at,
            to: usize::MAX,
            kind: ErrorKind::Other,
        }));
        let mut told = Told::default();
        scenario(&disk, &mut told);
        for left in LEFT {
            if let Some(what) = broken(&disk.after_power_cut(left), &told) {
                panic!("power cut at operation {at}, {left:?} left: {what}");
            }
            cuts += 1;
        }
        // And when only the process dies, all that was written is there.
        if let Some(what) = broken(&disk.after_kill(), &told) {
            panic!("killed at operation {at}: {what}");
        }
    }
    println!("F3: {cuts} power cuts, at each of {ops} operations, with four kinds of remains");
}

/// A sync that could be left out would be a sync too many, or a test too few.
#[test]
fn every_sync_is_needed() {
    let disk = SimDisk::default();
    scenario(&disk, &mut Told::default()).unwrap();
    let mut kinds: BTreeSet<String> = disk.syncs().into_iter().collect();
    // Of what was found: the next test.
    kinds.remove("file memory/agent-context/window.jsonl");
    let ops = disk.ops();
    assert!(kinds.len() >= 8, "{kinds:?}");
    for kind in &kinds {
        let lost = (0..=ops).any(|at| {
            let disk = SimDisk::default();
            disk.forget(kind);
            disk.fail(Some(Fault {
                from: at,
                to: usize::MAX,
                kind: ErrorKind::Other,
            }));
            let mut told = Told::default();
            scenario(&disk, &mut told);
            broken(&disk.after_power_cut(Left::Nothing), &told).is_some()
        });
        assert!(lost, "nothing is lost without the sync of {kind}");
    }
    println!(
        "F3: {} kinds of sync, and without any one of them something is lost",
        kinds.len()
    );
}

/// Somebody who finds an entry that another process wrote and did not sync may build on it, so it has
/// to be on disk when they are told that it is there.
#[test]
fn what_is_found_is_made_durable_before_it_is_acknowledged() {
    let mut tried = 0;
    for (torn, forgets) in [(false, false), (true, false), (false, true), (true, true)] {
        let disk = SimDisk::default();
        open(&disk)
            .append(&log_stream(), Expected::EMPTY, &[record("first")])
            .unwrap();
        // Written, not synced: the sync fails, and so does undoing it.
        let before = disk.ops();
        {
            let log = open(&disk);
            log.tail(&log_stream()).unwrap();
            let opening = disk.clone();
            let count = {
                let probe = opening.after_kill();
                let start = probe.ops();
                open(&probe)
                    .append(&log_stream(), Expected::Any, &[record("probe")])
                    .unwrap();
                probe.ops() - start
            };
            // All but the last operation, which is the sync.
            disk.fail(Some(Fault {
                from: before + count - 1,
                to: usize::MAX,
                kind: ErrorKind::Other,
            }));
            let refused = log.append(&log_stream(), Expected::Any, &[record("found")]);
            assert!(refused.is_err());
        }
        let disk = disk.after_kill();
        if torn {
            use contexture_store::disk::{Create, Disk};
            let file = disk.open("sessions/log/log.jsonl", Create::No).unwrap();
            let end = file.length().unwrap();
            file.write_at(b"{\"id\":\"to", end).unwrap();
        }
        if forgets {
            disk.forget("file sessions/log/log.jsonl");
        }
        let log = open(&disk);
        assert_eq!(ids(&log, &log_stream()), ["first", "found"]);
        // It is there already, so this writes nothing, and is an acknowledgement all the same.
        log.append(&log_stream(), Expected::Any, &[record("found")])
            .unwrap();
        let after = ids(&open(&disk.after_power_cut(Left::Nothing)), &log_stream());
        match forgets {
            false => assert_eq!(after, ["first", "found"], "torn {torn}"),
            true => assert_eq!(after, ["first"], "without the sync it is lost: torn {torn}"),
        }
        tried += 1;
    }
    println!("F3: {tried} entries found unsynced and built upon");
}
