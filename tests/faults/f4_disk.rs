//! F4: disk full, I/O errors and read-only folders, at every write.

use std::io::ErrorKind;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_store::{Expected, FileLog, FileOptions, Log, StoreError};

use crate::faults::sim::{Fault, SimDisk};
use crate::faults::{ctx, ids, record, stream};

/// One failing operation, then two, then all for a while: the append fails, nothing of it stays, and
/// the same append works as soon as the disk does, without opening anything anew.
#[test]
fn every_write_may_fail_and_nothing_is_lost() {
    let run = |disk: &SimDisk, fault: Option<Fault>| {
        disk.fail(fault);
        let log = FileLog::on(Arc::new(disk.clone()), FileOptions::default());
        let mut failures = 0;
        let mut wanted: Vec<String> = Vec::new();
        for n in 0..6 {
            let batch: Vec<_> = (0..=n % 3).map(|i| record(&format!("{n}-{i}"))).collect();
            let tail = wanted.last().map(|id| id.as_str().into());
            loop {
                match log.append(&stream(), Expected::Tail(tail.as_ref()), &batch) {
                    Ok(_) => break,
                    Err(error @ StoreError::Io { .. }) => {
                        failures += 1;
                        assert!(failures < 100, "never again: {error}");
                        // What is there is what was acknowledged, unless nothing can be read at all.
                        assert_eq!(ids(&log, &stream()), wanted);
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            wanted.extend(batch.iter().map(|record| record.id().to_string()));
            assert_eq!(ids(&log, &stream()), wanted);
        }
        drop(log);
        let again = FileLog::on(Arc::new(disk.clone()), FileOptions::default());
        assert_eq!(ids(&again, &stream()), wanted);
        failures
    };
    let clean = SimDisk::default();
    assert_eq!(run(&clean, None), 0);
    let ops = clean.ops();
    let (mut faults, mut failures) = (0, 0);
    for from in 0..ops {
        for length in [1, 2, 3, 10] {
            for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
                let fault = Fault {
                    from,
                    to: from + length,
                    kind,
                };
                let failed = run(&SimDisk::default(), Some(fault));
                assert!(failed > 0, "{fault:?} hit nothing");
                faults += 1;
                failures += failed;
            }
        }
    }
    println!(
        "F4: {faults} faults at {ops} operations, {failures} appends refused, none lost or half there"
    );
}

/// A real file system of 64 KiB. Needs the right to mount one.
// needs: mount
#[test]
fn a_full_disk_is_said_and_survived() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_mounted) = Mounted::tmpfs(folder.path(), "64k") else {
        println!("skipped: a file system of its own cannot be mounted here");
        return;
    };
    let mut child = ctx::command(folder.path(), &["sessions", "append", "s"])
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        for line in ctx::messages("m").take(5_000) {
            if stdin.write_all(line.as_bytes()).is_err() {
                break;
            }
            // In drops, so that it is not one append that does not fit.
            std::thread::sleep(Duration::from_micros(300));
        }
    });
    let begun = Instant::now();
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let error = ctx::stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("No space left") && error.contains("make room"),
        "{error}"
    );
    // Not how fast it is, but that nothing waits for room that never comes.
    assert!(begun.elapsed() < Duration::from_secs(60));
    let acknowledged: Vec<String> = ctx::stdout(&output).lines().map(str::to_owned).collect();
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    assert_eq!(in_log(folder.path()), acknowledged);
    // Still full: the same clear answer, at once.
    let begun = Instant::now();
    let long = format!(
        "{{\"role\":\"user\",\"content\":\"{}\"}}\n",
        "x".repeat(30_000)
    );
    let full = feed(folder.path(), &long);
    assert_eq!(full.status.code(), Some(1));
    println!("F4: still full, said after {:?}", begun.elapsed());
    assert_eq!(in_log(folder.path()), acknowledged);
    // Room again.
    let remount = Command::new("mount")
        .args(["-o", "remount,size=1m"])
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(remount.success());
    let room = feed(folder.path(), &long);
    assert!(room.status.success(), "{}", ctx::stderr(&room));
    assert_eq!(in_log(folder.path()).len(), acknowledged.len() + 1);
    println!(
        "F4: a disk of 64 KiB, full after {} entries, all there; one more when there was room",
        acknowledged.len()
    );
}

/// A read-only file system. Needs the right to mount one.
// needs: mount
#[test]
fn a_read_only_folder_is_said_and_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_mounted) = Mounted::tmpfs(folder.path(), "1m") else {
        println!("skipped: a file system of its own cannot be mounted here");
        return;
    };
    let line = "{\"role\":\"user\",\"content\":\"hello\"}\n";
    assert!(feed(folder.path(), line).status.success());
    let readonly = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(readonly.success());
    let refused = feed(folder.path(), line);
    let error = ctx::stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(
        error.contains("Read-only") && error.contains("writable"),
        "{error}"
    );
    assert_eq!(in_log(folder.path()).len(), 1);
    let shown = ctx::run(folder.path(), &["inspect", "s"]);
    assert!(shown.status.success(), "{}", ctx::stderr(&shown));
    println!("F4: a read-only folder refuses an append, and is read");
}

fn feed(folder: &Path, text: &str) -> std::process::Output {
    let mut child = ctx::command(folder, &["sessions", "append", "s"])
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// The ids of the session's entries, without its header.
fn in_log(folder: &Path) -> Vec<String> {
    let log = FileLog::new(folder.join(".contexture"), FileOptions::default());
    ids(&log, &stream()).split_off(1)
}

struct Mounted(std::path::PathBuf);

impl Mounted {
    fn tmpfs(at: &Path, size: &str) -> Option<Self> {
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(at)
            .output();
        mount
            .is_ok_and(|done| done.status.success())
            .then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
