//! F5: several processes append to one session.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use contexture_store::{FileLog, FileOptions};

use crate::faults::{ctx, ids, stream};

#[test]
fn two_and_eight_writers_are_ordered_or_refused() {
    for writers in [2, 8] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let outcomes: Vec<(usize, Vec<String>, Option<String>)> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..writers)
                .map(|writer| scope.spawn(move || append(folder, writer)))
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let log = FileLog::new(folder.join(".contexture"), FileOptions::default());
        let there = ids(&log, &stream()).split_off(1);
        let once: HashSet<&String> = there.iter().collect();
        assert_eq!(once.len(), there.len(), "something is there twice");
        let mut told = 0;
        let mut refused = 0;
        for (writer, acknowledged, error) in &outcomes {
            match error {
                None => assert_eq!(acknowledged.len(), LINES, "writer {writer}"),
                Some(error) => {
                    refused += 1;
                    assert!(error.contains("is being written by process"), "{error}");
                }
            }
            // Each in its own order, whatever stands between.
            let own: HashSet<&String> = acknowledged.iter().collect();
            let order: Vec<&String> = there.iter().filter(|id| own.contains(id)).collect();
            assert_eq!(order, acknowledged.iter().collect::<Vec<_>>());
            told += acknowledged.len();
        }
        assert_eq!(told, there.len(), "there is more than anybody was told of");
        // One log, each entry behind the one before it.
        let verify = ctx::run(folder, &["doctor"]);
        assert!(verify.status.success(), "{}", ctx::stderr(&verify));
        println!("F5: {writers} processes, {told} entries in one order, {refused} refused by name");
    }
}

#[test]
fn the_holder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut holder = ctx::command(folder.path(), &["sessions", "append", "s"])
        .spawn()
        .unwrap();
    let mut stdin = holder.stdin.take().unwrap();
    let mut stdout = BufReader::new(holder.stdout.take().unwrap());
    stdin
        .write_all(ctx::messages("holder").next().unwrap().as_bytes())
        .unwrap();
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    let begun = Instant::now();
    let (_, acknowledged, error) = append(folder.path(), 1);
    let error = error.expect("a second writer is refused while the first holds the session");
    assert!(
        error.contains(&format!("process {}", holder.id())),
        "{error}"
    );
    assert!(acknowledged.is_empty());
    assert!(begun.elapsed() < Duration::from_secs(60));
    // Reading is free.
    let shown = ctx::run(folder.path(), &["sessions", "show", "s", "--json"]);
    assert_eq!(ctx::stdout(&shown).lines().count(), 2);
    // It ends with the holder, however that ends.
    holder.kill().unwrap();
    holder.wait().unwrap();
    let (_, acknowledged, error) = append(folder.path(), 2);
    assert_eq!((acknowledged.len(), error), (LINES, None));
    println!(
        "F5: a second writer was refused, told the holder's pid, and let in when that was killed"
    );
}

const LINES: usize = 50;

/// The ids that were acknowledged, and what was said when it was refused.
fn append(folder: &Path, writer: usize) -> (usize, Vec<String>, Option<String>) {
    let mut child = ctx::command(folder, &["sessions", "append", "s"])
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in ctx::messages(&format!("writer {writer}")).take(LINES) {
        if stdin.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let told = ctx::stdout(&output).lines().map(str::to_owned).collect();
    let error = (!output.status.success()).then(|| ctx::stderr(&output));
    (writer, told, error)
}
