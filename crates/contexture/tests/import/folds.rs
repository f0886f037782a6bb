//! Files that were cut, mixed up or spoiled: a clear error, or entries that fold and make
//! valid requests.

use contexture::View;
use contexture::import::{Imported, Source};
use proptest::prelude::*;

use crate::import::{FIXTURES, read, requests};

#[test]
fn every_fixture_folds() {
    for (name, text) in FIXTURES {
        let imported = Imported::read(text.as_bytes()).unwrap();
        let view = View::fold(imported.entries.clone()).unwrap();
        assert_eq!(view.duplicates().len(), 0, "{name}");
        assert_eq!(view.log().len(), imported.entries.len(), "{name}");
        assert!(view.live_len() > 0, "{name}");
    }
}

#[test]
fn bad_lines_are_named() {
    let lines = |name: &str| -> Vec<usize> {
        let skipped = read(name).skipped;
        assert!(skipped.iter().all(|(_, why)| !why.is_empty()));
        skipped.into_iter().map(|(line, _)| line).collect()
    };
    assert_eq!(lines("claude-code-tree"), [11, 16]);
    assert_eq!(lines("codex-turns"), [21]);
    assert!(lines("pi-tree").is_empty());
}

#[test]
fn nothing_readable_is_an_error() {
    for bytes in [
        &b""[..],
        b"\n\n",
        b"{\"type\":\"us",
        b"\xff\xfe",
        b"[]",
        b"7",
    ] {
        let error = Imported::read(bytes).unwrap_err();
        assert!(!error.hint().is_empty(), "{error}");
    }
}

#[test]
fn a_line_of_the_file_is_enough_to_know_it() {
    for (name, text) in FIXTURES {
        let whole = Imported::read(text.as_bytes()).unwrap().source;
        assert!(name.starts_with(whole.as_str()), "{name}: {whole:?}");
        let known = text
            .lines()
            .filter(|line| {
                Imported::read(line.as_bytes())
                    .is_ok_and(|i| i.source == whole && i.source != Source::Transcript)
            })
            .count();
        let readable =
            text.lines().count() - Imported::read(text.as_bytes()).unwrap().skipped.len();
        // Lines such as Codex's `world_state` are of a kind that no reader knows by itself.
        assert!(known * 10 >= readable * 8, "{name}: {known} of {readable}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn spoiled_files_fold_or_are_refused(
        file in 0..FIXTURES.len(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..6u8, any::<prop::sample::Index>()), 0..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut lines: Vec<Vec<u8>> = FIXTURES[file].1.lines().map(|l| l.as_bytes().to_vec()).collect();
        for (at, how, other) in cuts {
            if lines.is_empty() {
                break;
            }
            let (at, to) = (at.index(lines.len()), other.index(lines.len()));
            match how {
                0 => lines.swap(at, to),
                1 => drop(lines.remove(at)),
                2 => {
                    let again = lines[at].clone();
                    lines.insert(to, again);
                }
                3 => {
                    let end = other.index(lines[at].len() + 1);
                    lines[at].truncate(end);
                }
                // One id for another: loops, and parents that come later.
                4 => {
                    let text = String::from_utf8_lossy(&lines[at]).into_owned();
                    let ids = ids(&lines[to]);
                    if let (Some(old), Some(new)) = (ids_of(&text), ids) {
                        lines[at] = text.replace(&old, &new).into_bytes();
                    }
                }
                _ => {
                    let end = lines[at].len();
                    if end > 0 {
                        lines[at][other.index(end)] ^= 0x15;
                    }
                }
            }
        }
        let mut bytes = lines.join(&b'\n');
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        match Imported::read(&bytes) {
            Ok(imported) => {
                let folded = View::fold(imported.entries.clone());
                prop_assert!(folded.is_ok(), "{:?}", folded.err());
                if imported.source != Source::Transcript {
                    requests::check_chat(FIXTURES[file].0, imported.entries.clone());
                    requests::check_anthropic(imported.entries.clone());
                }
                if imported.source != Source::Transcript {
                    prop_assert_eq!(folded.unwrap().log().len(), imported.entries.len());
                }
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Imported::read(&bytes);
    }
}

fn ids(line: &[u8]) -> Option<String> {
    ids_of(&String::from_utf8_lossy(line))
}

/// The line's own id.
fn ids_of(line: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let id = value
        .get("uuid")
        .or(value.get("id"))
        .or(value["payload"].get("id"))?;
    Some(id.as_str()?.to_owned())
}
