//! The doctor takes out what it can judge, and nothing else.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use contexture::entry::{SessionHeader, VERSION};
use contexture::{EntryId, Payload};
use contexture_store::doctor::{self, Checkup};
use contexture_store::{
    Expected, FileLog, FileOptions, From, Key, Kind, Log, Record, Sessions, StoreError, Stream,
};
use proptest::prelude::*;
use serde_json::json;

const NOW: &str = "2026-01-01T00:00:00Z";

fn open(folder: &Path) -> Arc<FileLog> {
    Arc::new(FileLog::new(folder, FileOptions::default()))
}

fn sessions(log: &Arc<FileLog>) -> Sessions {
    Sessions::new(log.clone() as Arc<dyn Log>)
}

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join("sessions").join(name).join("log.jsonl")
}

fn custom(n: usize) -> Payload {
    let map = json!({"n": n, "text": "x".repeat(n % 17)});
    Payload::Custom(map.as_object().unwrap().clone())
}

/// A session of so many entries behind its header.
fn made(log: &Arc<FileLog>, name: &str, entries: usize) -> Vec<EntryId> {
    let header = SessionHeader {
        version: VERSION,
        chat_key: None,
        agent: None,
        cwd: None,
        extra: serde_json::Map::new(),
    };
    let mut session = sessions(log).create(&key(name), header, NOW).unwrap();
    (0..entries)
        .map(|n| session.say(NOW, custom(n)).unwrap())
        .collect()
}

fn ids(log: &dyn Log, name: &str) -> Vec<String> {
    let records = log.read(&Stream::session(key(name)), From::Start).unwrap();
    records
        .map(|record| record.unwrap().id().to_string())
        .collect()
}

fn of(all: &[Checkup], name: &str) -> Checkup {
    let found = all.iter().find(|checkup| checkup.stream.key == key(name));
    found.unwrap().clone()
}

/// An entry of a type that came after this program, and entries that follow it.
#[test]
fn what_a_newer_program_wrote_is_not_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    let made = made(&log, "s", 3);
    let stream = Stream::session(key("s"));
    let newer = json!({"id": "n", "parentId": made[2], "type": "hologram", "timestamp": NOW, "payload": {}});
    let after =
        json!({"id": "m", "parentId": "n", "type": "custom", "timestamp": NOW, "payload": {}});
    let more = [newer, after].map(|entry| Record::new(&entry).unwrap());
    log.append(&stream, Expected::Any, &more).unwrap();
    log.release(&stream);
    let path = file(folder.path(), "s");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"rubbish\n");
    std::fs::write(&path, &bytes).unwrap();
    let found = of(&doctor::check_files(&log, &Kind::ALL).unwrap(), "s");
    assert!(!found.findings.is_empty());
    assert!(
        found
            .findings
            .iter()
            .all(|finding| finding.remedy.is_none())
    );
    assert_eq!(doctor::repair(&log, &stream).unwrap(), None);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

/// A fork may speak of entries of the session that it began with, also when that one is away or
/// when its own first line is damaged.
#[test]
fn a_fork_keeps_what_speaks_of_its_origin() {
    for lost_header in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let log = open(folder.path());
        let first = made(&log, "origin", 3);
        let target = first[0].clone();
        let mut fork = sessions(&log)
            .fork(&key("origin"), &first[2], &key("fork"), NOW)
            .unwrap();
        let pin =
            json!({"id": "pin", "type": "pin", "timestamp": NOW, "payload": {"entryId": target}});
        fork.append(&[Record::new(&pin).unwrap()]).unwrap();
        fork.say(NOW, custom(1)).unwrap();
        let before = ids(log.as_ref(), "fork");
        let stream = Stream::session(key("fork"));
        log.release(&stream);
        let path = file(folder.path(), "fork");
        let mut bytes = std::fs::read(&path).unwrap();
        let kept = if lost_header {
            bytes[3] = 0xff;
            &before[1..]
        } else {
            std::fs::rename(
                folder.path().join("sessions/origin"),
                folder.path().join("away"),
            )
            .unwrap();
            bytes.extend_from_slice(b"rubbish\n");
            &before[..]
        };
        std::fs::write(&path, &bytes).unwrap();
        for _ in 0..2 {
            drop(doctor::repair(&log, &stream).unwrap());
            assert_eq!(
                ids(log.as_ref(), "fork"),
                kept,
                "header lost: {lost_header}"
            );
        }
    }
}

/// While this very log has the stream open, it is repaired and can be appended to.
#[test]
fn a_stream_that_is_open_here_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    made(&log, "s", 2);
    let path = file(folder.path(), "s");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"rubbish\n");
    std::fs::write(&path, &bytes).unwrap();
    let stream = Stream::session(key("s"));
    assert!(doctor::repair(&log, &stream).unwrap().is_some());
    sessions(&log)
        .open(&key("s"))
        .unwrap()
        .say(NOW, custom(9))
        .unwrap();
    assert_eq!(ids(log.as_ref(), "s").len(), 4);
    let other = open(folder.path());
    let held = doctor::repair(&other, &stream);
    assert!(matches!(held, Err(StoreError::Held { .. })), "{held:?}");
}

/// Many bad lines are told of, not each of very many.
#[test]
fn bad_lines_are_reported_once_and_not_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let told = Arc::new(Mutex::new(0));
    let count = Arc::clone(&told);
    let options = FileOptions {
        listener: Arc::new(move |_| *count.lock().unwrap() += 1),
        ..FileOptions::default()
    };
    let path = file(folder.path(), "s");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    for (bad, heard) in [(3, 3), (50_000, 1_000)] {
        std::fs::write(&path, "x\n".repeat(bad)).unwrap();
        let log = FileLog::new(folder.path(), options.clone());
        *told.lock().unwrap() = 0;
        for _ in 0..2 {
            assert!(ids(&log, "s").is_empty());
        }
        assert_eq!(*told.lock().unwrap(), heard);
    }
}

/// A damaged line is no record: who says it again is heard.
#[test]
fn a_damaged_entry_can_be_said_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    let stream = Stream::session(key("s"));
    let record = |id: &str| Record::new(&json!({"id": id, "text": "hello"})).unwrap();
    log.append(&stream, Expected::EMPTY, &[record("a"), record("b")])
        .unwrap();
    log.release(&stream);
    let path = file(folder.path(), "s");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("hello\"}", "hello\"]", 1)).unwrap();
    log.append(&stream, Expected::Any, &[record("a")]).unwrap();
    assert_eq!(ids(log.as_ref(), "s"), ["b", "a"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Random damage: the backup is the file as it was, what was not touched stays, and the second
    /// look finds nothing.
    #[test]
    fn random_damage_costs_what_it_hit(
        entries in 2usize..12,
        hits in prop::collection::vec((0.0f64..1.0, any::<u8>()), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let log = open(folder.path());
        made(&log, "s", entries);
        let stream = Stream::session(key("s"));
        log.release(&stream);
        let path = file(folder.path(), "s");
        let sound = std::fs::read(&path).unwrap();
        let header = sound.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        let mut damaged = sound.clone();
        for (at, byte) in hits {
            // The header is another test's matter.
            let room = damaged.len() - header;
            damaged[header + (at * room as f64) as usize] = byte;
        }
        std::fs::write(&path, &damaged).unwrap();
        let repaired = doctor::repair(&log, &stream).unwrap();
        match repaired {
            Some(repair) => prop_assert_eq!(std::fs::read(repair.backup).unwrap(), damaged.clone()),
            None => prop_assert_eq!(std::fs::read(&path).unwrap(), damaged.clone()),
        }
        let again = of(&doctor::check_files(&log, &Kind::ALL).unwrap(), "s");
        // A type that is damaged looks like one that came after this program.
        let newer = again.findings.iter().any(|finding| finding.what.contains("unknown entry type"));
        prop_assert!(newer || again.findings.is_empty(), "{:?}", again.findings);
        prop_assert_eq!(doctor::repair(&log, &stream).unwrap(), None);
        let there = ids(log.as_ref(), "s");
        let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
            bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
        };
        let touched = lines(&damaged);
        let old = lines(&sound);
        for (n, line) in old.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            // A line that nobody follows and whose parent is gone may be a stray.
            let last = n + 2 == old.len();
            if touched.contains(line) && !last && touched.contains(&old[n + 1]) {
                let id = serde_json::from_slice::<serde_json::Value>(line).unwrap();
                prop_assert!(there.iter().any(|known| known == id["id"].as_str().unwrap()));
            }
        }
    }
}
