//! F1: `kill -9` at any point of an append.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::time::Duration;

use contexture_store::{FileLog, FileOptions, From, Key, Log, Stream};

use crate::faults::{Random, ctx};

/// In `./test`; the nightly form is `CONTEXTURE_KILLS=2000`.
const KILLS: usize = 200;

#[test]
fn no_acknowledged_entry_is_lost_to_a_kill() {
    let kills = std::env::var("CONTEXTURE_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(KILLS);
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let (mut acknowledged_in_all, mut unacknowledged, mut cut_off) = (0, 0, 0);
    let mut per_session: HashMap<String, Vec<String>> = HashMap::new();
    for kill in 0..kills {
        // A few kills to a session, so that each heals what the one before it left.
        let name = format!("s{}", kill / 10);
        let told = per_session.entry(name.clone()).or_default();
        let after = Duration::from_micros(2_000 + random.below(25_000));
        told.extend(append_until_killed(folder.path(), &name, kill, after));
        acknowledged_in_all += told.len();
        let (there, torn) = read(folder.path(), &name);
        cut_off += usize::from(torn);
        let once: HashSet<&String> = there.iter().collect();
        assert_eq!(once.len(), there.len(), "something is there twice");
        let missing: Vec<&String> = told.iter().filter(|id| !once.contains(id)).collect();
        assert!(missing.is_empty(), "kill {kill}: lost {missing:?}");
        // In the order in which they were told.
        let known: HashSet<&String> = told.iter().collect();
        let order: Vec<&String> = there.iter().filter(|id| known.contains(id)).collect();
        assert_eq!(order, told.iter().collect::<Vec<_>>());
        unacknowledged += there.len() - told.len();
    }
    let told: usize = per_session.values().map(Vec::len).sum();
    assert!(
        told > kills,
        "the program was killed before it did anything: {told} entries"
    );
    let healthy = ctx::run(folder.path(), &["doctor", "--fix"]);
    assert!(healthy.status.success(), "{}", ctx::stderr(&healthy));
    println!(
        "F1: {kills} kills, {told} entries acknowledged and none lost, none twice; {cut_off} appends cut off; \
         {acknowledged_in_all} looked up, {unacknowledged} found that nobody had been told of"
    );
}

/// The ids that the program printed before it was killed.
fn append_until_killed(
    folder: &std::path::Path,
    session: &str,
    kill: usize,
    after: Duration,
) -> Vec<String> {
    let mut child = ctx::command(folder, &["sessions", "append", session])
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        // Half of them as fast as they are taken, many to an append; half in drops, few to one.
        let drops = kill % 2 == 1;
        for (n, line) in ctx::messages(&format!("kill {kill}")).enumerate() {
            if stdin.write_all(line.as_bytes()).is_err() {
                break;
            }
            if drops && n % 3 == 0 {
                std::thread::sleep(Duration::from_micros(150));
            }
        }
    });
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    // The clock runs from the first acknowledgement: starting up is not what is tested.
    stdout.read_line(&mut first).unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut printed = first;
    stdout.read_to_string(&mut printed).unwrap();
    feeder.join().unwrap();
    // The last line may be cut off: then nobody was told.
    let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
    whole
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The ids in the log, and whether an append was cut off.
fn read(folder: &std::path::Path, session: &str) -> (Vec<String>, bool) {
    let log = FileLog::new(folder.join(".contexture"), FileOptions::default());
    let stream = Stream::session(Key::new(session).unwrap());
    let records = log.read(&stream, From::Start).unwrap();
    let ids: Vec<String> = records
        .map(|record| record.unwrap().id().to_string())
        .collect();
    let path = folder.join(format!(".contexture/sessions/{session}/log.jsonl"));
    let bytes = std::fs::read(path).unwrap();
    let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
    (
        ids[1..].to_vec(),
        bytes.last() != Some(&b'\n') || lines > ids.len(),
    )
}
