//! F6: damage in the middle of a log. The rest is readable; the doctor says what it is, and repairs.

use std::path::{Path, PathBuf};

use crate::faults::ctx;

const SESSION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/session.jsonl");

struct Case {
    name: &'static str,
    damage: fn(&mut Vec<Vec<u8>>),
    /// What the doctor says of it.
    says: &'static str,
    /// How many entries are lost to it.
    lost: usize,
}

const CASES: [Case; 8] = [
    Case {
        name: "a run of NULs",
        damage: |lines| lines[4] = vec![0; 4_096],
        says: "NUL bytes",
        lost: 1,
    },
    Case {
        name: "two lines that ran together",
        damage: |lines| {
            let second = lines.remove(5);
            lines[4].extend(second);
        },
        says: "the 2 entries inside it are kept",
        lost: 0,
    },
    Case {
        name: "half a line before a whole one",
        damage: |lines| {
            let half = lines[4].len() / 2;
            let whole = lines.remove(5);
            lines[4].truncate(half);
            lines[4].extend(whole);
        },
        says: "the entry inside it is kept",
        lost: 1,
    },
    Case {
        name: "a line of another session",
        damage: |lines| {
            let foreign = r#"{"id":"ffff","parentId":"eeee","type":"message","payload":{"message":{"role":"user","content":"not here"}}}"#;
            lines.insert(5, foreign.as_bytes().to_vec());
        },
        says: "its parent `eeee` is not in the log",
        lost: 0,
    },
    Case {
        name: "a line twice",
        damage: |lines| {
            let again = lines[4].clone();
            lines.insert(6, again);
        },
        says: "stands here a second time",
        lost: 0,
    },
    Case {
        name: "a pin of nothing",
        damage: |lines| {
            let pin = r#"{"id":"abcd","type":"pin","payload":{"entryId":"nowhere"}}"#;
            lines.insert(5, pin.as_bytes().to_vec());
        },
        says: "`nowhere` is not in the log",
        lost: 0,
    },
    Case {
        name: "no UTF-8",
        damage: |lines| lines[4][30] = 0xff,
        says: "not UTF-8",
        lost: 1,
    },
    Case {
        name: "a cut tail",
        damage: |lines| {
            let last = lines.last_mut().unwrap();
            let half = last.len() / 2;
            last.truncate(half);
        },
        says: "the last append was cut off",
        lost: 1,
    },
];

#[test]
fn damage_is_named_and_repaired_and_the_rest_stays() {
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let made = ctx::run(
            folder,
            &["sessions", "import", "s", SESSION, "--no-requests"],
        );
        assert!(made.status.success(), "{}", ctx::stderr(&made));
        let before = entries(folder);
        let path = damage(folder, case.damage);
        let damaged = std::fs::read(&path).unwrap();
        // It can be read, and what is there can be built.
        let there = entries(folder);
        assert!(
            there.len() + 2 >= before.len() - case.lost,
            "{}: {there:?}",
            case.name
        );
        let inspected = ctx::run(folder, &["inspect", "s"]);
        assert!(
            inspected.status.success(),
            "{}: {}",
            case.name,
            ctx::stderr(&inspected)
        );
        // It is named, in words, and nothing is touched.
        let found = ctx::run(folder, &["doctor"]);
        assert_eq!(found.status.code(), Some(1), "{}", case.name);
        assert!(
            ctx::stdout(&found).contains(case.says),
            "{}: {}",
            case.name,
            ctx::stdout(&found)
        );
        assert_eq!(std::fs::read(&path).unwrap(), damaged);
        // It is repaired, and kept as it was.
        let fixed = ctx::run(folder, &["doctor", "--fix"]);
        assert!(
            fixed.status.success(),
            "{}: {}",
            case.name,
            ctx::stderr(&fixed)
        );
        assert!(
            ctx::stdout(&fixed).contains("repaired; as it was:"),
            "{}",
            ctx::stdout(&fixed)
        );
        assert_eq!(
            std::fs::read(path.with_extension("jsonl.bak1")).unwrap(),
            damaged
        );
        let clean = ctx::run(folder, &["doctor"]);
        assert!(
            clean.status.success(),
            "{}: {}",
            case.name,
            ctx::stdout(&clean)
        );
        let after = entries(folder);
        assert_eq!(after.len(), before.len() - case.lost, "{}", case.name);
        assert!(after.iter().all(|id| before.contains(id)), "{}", case.name);
    }
    println!(
        "F6: {} kinds of damage, each named, repaired and backed up",
        CASES.len()
    );
}

fn entries(folder: &Path) -> Vec<String> {
    let shown = ctx::run(folder, &["sessions", "show", "s", "--json"]);
    assert!(shown.status.success(), "{}", ctx::stderr(&shown));
    let text = ctx::stdout(&shown);
    let id = |line: &str| {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        entry["id"].as_str().unwrap().to_owned()
    };
    text.lines().map(id).collect()
}

fn damage(folder: &Path, damage: fn(&mut Vec<Vec<u8>>)) -> PathBuf {
    let path = folder.join(".contexture/sessions/s/log.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    let mut lines: Vec<Vec<u8>> = bytes
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    lines.pop();
    damage(&mut lines);
    let mut bytes = lines.join(&b'\n');
    if bytes.last() == Some(&b'}') {
        bytes.push(b'\n');
    }
    std::fs::write(&path, bytes).unwrap();
    path
}
