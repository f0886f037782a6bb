//! Real transcripts as sessions: all of them through the library, some through the program.

use std::path::PathBuf;
use std::sync::Arc;

use contexture::build::{BuildInput, Extract};
use contexture::entry::{SessionHeader, VERSION};
use contexture::import::Imported;
use contexture::{ContextConfig, Entry, Payload, Settings, replay};
use contexture_store::{Durability, FileLog, FileOptions, Key, Sessions};

use crate::common::Project;

const FILES: [&str; 2] = ["sessions.jsonl", "dirty.jsonl"];
const BUDGET: usize = 16_000;

/// The folder of real transcripts, where it is present.
fn data() -> Option<PathBuf> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let path = std::env::var_os("CONTEXTURE_DATA").map_or(beside, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: ../shared/data is not here");
    None
}

fn settings() -> Settings {
    Settings {
        config: ContextConfig {
            max_input_tokens: BUDGET,
            ..ContextConfig::default()
        },
        compactors: vec![Arc::new(Extract)],
        ..Settings::default()
    }
}

fn header() -> SessionHeader {
    SessionHeader {
        version: VERSION,
        chat_key: None,
        agent: None,
        cwd: None,
        extra: serde_json::Map::new(),
    }
}

/// What `import` puts into the log: the entries, with those of the run that would have made them.
fn as_imported(line: &str) -> Vec<Entry> {
    let imported = Imported::read(line.as_bytes()).unwrap();
    let input = BuildInput {
        session_entries: imported.entries,
        ..BuildInput::default()
    };
    let session = replay::replay(settings(), input, |_, _| Ok(())).unwrap();
    let log = session.view().log().iter();
    log.map(|entry| entry.as_ref().clone()).collect()
}

/// How many requests a session recorded; each must come out as it was.
fn verified(sessions: &Sessions, key: &Key) -> usize {
    let loaded = sessions.load(key).unwrap();
    assert!(loaded.oddities.is_empty(), "{key}: {:?}", loaded.oddities);
    let recorded = loaded
        .view
        .log()
        .iter()
        .filter(|entry| matches!(entry.payload, Payload::Request(_)))
        .count();
    let mut seen = 0;
    replay::verify(
        |_| settings(),
        loaded.view.log().iter().cloned(),
        |step, _| {
            assert_eq!(
                step.recorded_digest, None,
                "{key}: request {}",
                step.request
            );
            seen += 1;
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(seen, recorded, "{key}");
    seen
}

// needs: data
#[test]
fn every_transcript_is_stored_and_made_again() {
    let Some(folder) = data() else { return };
    let home = tempfile::tempdir().unwrap();
    let options = FileOptions {
        durability: Durability::Os,
        ..FileOptions::default()
    };
    let log = Arc::new(FileLog::new(home.path(), options));
    let sessions = Sessions::new(log.clone());
    let (mut count, mut entries, mut requests, mut compactions, mut forked) = (0, 0, 0, 0, 0);
    for file in FILES {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        for (n, line) in text.lines().enumerate() {
            let key = Key::new(format!("{file}-{n}")).unwrap();
            let put = as_imported(line);
            sessions
                .put(&key, header(), "2026-01-01T00:00:00Z", put.clone())
                .unwrap();
            let loaded = sessions.load(&key).unwrap();
            // Ours is the header; all others are there, in order, with what they say.
            let folded = &loaded.view.log()[1..];
            assert_eq!(folded.len(), put.len(), "{key}");
            for (folded, put) in folded.iter().zip(&put) {
                assert_eq!((&folded.id, &folded.payload), (&put.id, &put.payload));
            }
            entries += put.len();
            compactions += put
                .iter()
                .filter(|entry| matches!(entry.payload, Payload::CompactionSummary(_)))
                .count();
            requests += verified(&sessions, &key);
            // A place that has nothing to do with how sessions are built.
            let at = &put[(n * 7_919 + 13) % put.len()].id;
            let fork = Key::new(format!("{key}-fork")).unwrap();
            sessions
                .fork(&key, at, &fork, "2026-01-01T00:00:00Z")
                .unwrap();
            forked += verified(&sessions, &fork);
            log.release(&contexture_store::Stream::session(key));
            count += 1;
        }
    }
    assert_eq!(count, 516);
    assert!(requests > 3_000 && forked > 1_000 && compactions > 0);
    println!(
        "{count} transcripts: {entries} entries put and folded, {requests} requests made again, \
         {compactions} compactions; {count} forks with {forked} requests"
    );
}

// needs: data
#[test]
fn the_program_does_what_the_library_does() {
    let Some(folder) = data() else { return };
    let project = Project::new();
    project.write("contexture.json", r#"{"store":{"durability":"os"}}"#);
    let budget = BUDGET.to_string();
    let (mut count, mut requests) = (0, 0);
    for file in FILES {
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        for (n, line) in text.lines().enumerate().step_by(20) {
            let (name, line_number) = (format!("{file}-{n}"), (n + 1).to_string());
            let args = [
                "sessions",
                "import",
                &name,
                path.to_str().unwrap(),
                "--line",
                &line_number,
                "--budget",
                &budget,
                "--json",
            ];
            let imported = project.ctx(&args).json();
            let expected = as_imported(line);
            assert_eq!(imported["entries"], expected.len(), "{name}");
            let (rows, said) = project
                .ctx(&["replay", &name, "--verify", "--json", "--budget", &budget])
                .ends(0);
            let digests = expected.iter().filter_map(|entry| match &entry.payload {
                Payload::Request(record) => Some(record.digest.clone()),
                _ => None,
            });
            let made = rows.lines().map(|row| {
                let row: serde_json::Value = serde_json::from_str(row).unwrap();
                row["digest"].as_str().unwrap().to_owned()
            });
            assert!(digests.eq(made), "{name}: {said}");
            requests += rows.lines().count();
            count += 1;
        }
    }
    project.ctx(&["doctor"]).success();
    println!(
        "{count} transcripts through the program: {requests} requests as the library makes them"
    );
}
