//! Durable appends against the least that they could cost: a bare loop of write and fdatasync on the
//! same disk.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use contexture_benches::{Bar, asked, note, row, shown};
use contexture_store::{Durability, Expected, FileLog, FileOptions, Key, Log, Record, Stream};
use serde_json::json;

/// Rounds in turns, so that a busy disk is busy for both.
const ROUNDS: usize = 15;
const EACH: usize = 200;
const THREADS: usize = 8;

fn main() {
    if !asked("append: an entry of 500 bytes, durable before it is acknowledged") {
        return;
    }
    // On the disk of the project: temporary folders are often in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    one_by_one(folder.path());
    together(folder.path());
    without_sync(folder.path());
}

fn one_by_one(folder: &Path) {
    let mut bare = Bare::new(&folder.join("bare"), true);
    let mut ours = Ours::new(&folder.join("one"), Durability::Sync);
    let (mut of_ours, mut of_bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_bare.push(timed(|| (0..EACH).for_each(|_| bare.append())));
        of_ours.push(timed(|| (0..EACH).for_each(|_| ours.append())));
    }
    let (bare, ours) = (each(of_bare), each(of_ours));
    note(&format!(
        "bare {:.0}/s, ours {:.0}/s",
        rate(bare),
        rate(ours)
    ));
    // Rates, as a share of the bare loop's.
    row(
        "rate of appends : rate of write + fdatasync",
        bare,
        ours,
        Bar::Least(0.8),
    );
}

/// Eight threads on one stream: what waits for the disk goes out together.
fn together(folder: &Path) {
    let mut bare = Bare::new(&folder.join("bare8"), true);
    let ours = Ours::new(&folder.join("eight"), Durability::Sync);
    let (mut of_ours, mut of_bare) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        of_bare.push(timed(|| (0..EACH).for_each(|_| bare.append())));
        let ours = &ours;
        let took = timed(|| {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || {
                        for n in 0..EACH {
                            let record = record(&format!("{round}-{thread}-{n}"));
                            ours.log
                                .append(&ours.stream, Expected::Any, &[record])
                                .unwrap();
                        }
                    });
                }
            });
        });
        of_ours.push(took / u32::try_from(THREADS).unwrap());
    }
    let (bare, ours) = (each(of_bare), each(of_ours));
    note(&format!(
        "bare {:.0}/s, ours {:.0}/s",
        rate(bare),
        rate(ours)
    ));
    row(
        "rate of 8 threads : rate of one bare loop",
        bare,
        ours,
        Bar::Least(1.0),
    );
}

fn without_sync(folder: &Path) {
    let mut bare = Bare::new(&folder.join("bare-os"), false);
    let mut ours = Ours::new(&folder.join("os"), Durability::Os);
    let (mut of_ours, mut of_bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_bare.push(timed(|| (0..EACH).for_each(|_| bare.append())));
        of_ours.push(timed(|| (0..EACH).for_each(|_| ours.append())));
    }
    let (bare, ours) = (each(of_bare), each(of_ours));
    note(&format!(
        "an append that is left to the system: {}",
        shown(ours)
    ));
    row(
        "rate of appends (`os`) : rate of write",
        bare,
        ours,
        Bar::None,
    );
}

struct Bare {
    file: File,
    line: Vec<u8>,
    sync: bool,
}

impl Bare {
    fn new(path: &Path, sync: bool) -> Self {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        let mut line = record("0000-00000").text().as_bytes().to_vec();
        line.push(b'\n');
        Self { file, line, sync }
    }

    fn append(&mut self) {
        self.file.write_all(&self.line).unwrap();
        if self.sync {
            self.file.sync_data().unwrap();
        }
    }
}

struct Ours {
    log: FileLog,
    stream: Stream,
    count: usize,
    tail: Option<contexture::EntryId>,
}

impl Ours {
    fn new(folder: &Path, durability: Durability) -> Self {
        let options = FileOptions {
            durability,
            ..FileOptions::default()
        };
        let log = FileLog::new(folder, options);
        let stream = Stream::session(Key::new("bench").unwrap());
        Self {
            log,
            stream,
            count: 0,
            tail: None,
        }
    }

    fn append(&mut self) {
        self.count += 1;
        let record = record(&format!("{:010}", self.count));
        let expected = Expected::Tail(self.tail.as_ref());
        self.tail = self.log.append(&self.stream, expected, &[record]).unwrap();
    }
}

fn record(id: &str) -> Record {
    let text = "x".repeat(420);
    Record::new(&json!({"id": id, "type": "custom", "payload": {"text": text}})).unwrap()
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The middle round, for each append in it.
fn each(mut rounds: Vec<Duration>) -> Duration {
    rounds.sort_unstable();
    rounds[rounds.len() / 2] / u32::try_from(EACH).unwrap()
}

fn rate(each: Duration) -> f64 {
    1.0 / each.as_secs_f64()
}
