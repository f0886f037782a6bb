//! The bound on every message of the real sessions that lie beside the repository.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::tokens::vocabularies::check;

// needs: data
#[test]
fn holds_for_real_messages() {
    let folder = std::env::var_os("CONTEXTURE_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    if !folder.is_dir() {
        eprintln!("skipped: ../shared/data is not here");
        return;
    }
    let mut texts = HashSet::new();
    for file in ["sessions.jsonl", "dirty.jsonl"] {
        let lines = std::fs::read_to_string(folder.join(file)).unwrap();
        for line in lines.lines() {
            let session: Value = serde_json::from_str(line).unwrap();
            strings(&session["messages"], &mut texts);
        }
    }
    assert!(texts.len() > 1_000);
    let texts: Vec<_> = texts.into_iter().collect();
    let failures: Vec<_> = std::thread::scope(|scope| {
        let part = |part| scope.spawn(move || failures(part));
        let parts: Vec<_> = texts.chunks(texts.len().div_ceil(4)).map(part).collect();
        parts.into_iter().flat_map(|p| p.join().unwrap()).collect()
    });
    assert!(
        failures.is_empty(),
        "{} of {}: {:#?}",
        failures.len(),
        texts.len(),
        failures.first()
    );
}

fn failures(texts: &[String]) -> Vec<String> {
    texts.iter().filter_map(|text| check(text).err()).collect()
}

/// Every string inside a message: its role, text, ids, names and arguments.
fn strings(value: &Value, into: &mut HashSet<String>) {
    match value {
        Value::String(text) => {
            into.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, into)),
        _ => {}
    }
}
