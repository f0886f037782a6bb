//! Large sessions and many of them: opening, listing, reading, and the memory that it takes.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use contexture_benches::{Bar, Times, asked, note, row, shown};
use contexture_store::{Expected, FileLog, FileOptions, From, Key, Kind, Log, Record, Stream};
use serde_json::json;

const GIGABYTE: usize = 1 << 30;
const MANY: usize = 10_000;

fn main() {
    if !asked("sessions: one of 1 GB, and 10,000 of them") {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    large(folder.path());
    many(folder.path());
}

fn large(folder: &Path) {
    let log = FileLog::new(folder, FileOptions::default());
    let stream = Stream::session(Key::new("large").unwrap());
    log.append(&stream, Expected::EMPTY, &[record(0)]).unwrap();
    log.release(&stream);
    let path = folder.join("sessions/large/log.jsonl");
    let mut file = BufWriter::new(File::options().append(true).open(&path).unwrap());
    let (mut written, mut entries) = (0, 1);
    while written < GIGABYTE {
        let record = record(entries);
        writeln!(file, "{}", record.text()).unwrap();
        written += record.text().len() + 1;
        entries += 1;
    }
    file.into_inner().unwrap().sync_all().unwrap();
    let before = peak();
    let mut raw = Times::default();
    raw.time(|| {
        let mut file = File::open(&path).unwrap();
        let mut block = vec![0; 256 << 10];
        while file.read(&mut block).unwrap() > 0 {}
    });
    let mut tail = Times::default();
    for _ in 0..5 {
        let found = tail
            .time(|| FileLog::new(folder, FileOptions::default()).tail(&stream))
            .unwrap();
        assert_eq!(found.unwrap().as_str(), format!("{:016}", entries - 1));
    }
    note(&format!(
        "{entries} entries; opened to the tail in {}",
        shown(tail.median())
    ));
    row(
        "opening to the tail : reading the file",
        tail.median(),
        raw.median(),
        Bar::Most(0.01),
    );
    let mut first = Times::default();
    first
        .time(|| log.append(&stream, Expected::Any, &[record(entries)]))
        .unwrap();
    note(&format!(
        "the first append looks at every id, once: {}",
        shown(first.median())
    ));
    row(
        "first append : reading the file",
        first.median(),
        raw.median(),
        Bar::Most(3.0),
    );
    let mut next = Times::default();
    for n in 1..100 {
        next.time(|| log.append(&stream, Expected::Any, &[record(entries + n)]))
            .unwrap();
    }
    note(&format!("each one after that: {}", shown(next.median())));
    let mut all = Times::default();
    let read = all.time(|| log.read(&stream, From::Start).unwrap().count());
    assert_eq!(read, entries + 100);
    row(
        "reading every record : reading the file",
        all.median(),
        raw.median(),
        Bar::None,
    );
    note(&format!(
        "memory grew by {} MB over all of it",
        (peak() - before) / 1_000
    ));
}

fn many(folder: &Path) {
    let options = FileOptions {
        durability: contexture_store::Durability::Os,
        ..FileOptions::default()
    };
    let log = FileLog::new(folder.join("many"), options);
    for n in 0..MANY {
        let stream = Stream::session(Key::new(format!("session-{n}")).unwrap());
        log.append(&stream, Expected::EMPTY, &[record(n)]).unwrap();
    }
    let (mut ours, mut bare) = (Times::default(), Times::default());
    for _ in 0..7 {
        let listed = ours.time(|| log.list(Kind::Session)).unwrap();
        assert_eq!(listed.len(), MANY);
        let seen = bare.time(|| {
            let names = std::fs::read_dir(folder.join("many/sessions")).unwrap();
            let sizes = names.map(|name| {
                name.unwrap()
                    .path()
                    .join("log.jsonl")
                    .metadata()
                    .unwrap()
                    .len()
            });
            sizes.count()
        });
        assert_eq!(seen, MANY);
    }
    note(&format!("{MANY} listed in {}", shown(ours.median())));
    row(
        "listing : readdir and stat",
        ours.median(),
        bare.median(),
        Bar::Most(3.0),
    );
}

fn record(n: usize) -> Record {
    let text = "lorem ipsum ".repeat(70);
    Record::new(&json!({"id": format!("{n:016}"), "type": "custom", "payload": {"text": text}}))
        .unwrap()
}

/// The most memory that this process ever had, in kB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}
