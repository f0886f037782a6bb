//! F1, told again: `ctx sessions append` fed again what it was fed before, and left alone by its reader.

use std::io::{BufRead, BufReader, Write};
use std::process::Output;

use crate::faults::ctx;

fn feed(folder: &std::path::Path, text: &str) -> Output {
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

/// Entries that are there already, and something new behind them: that is no other writer.
#[test]
fn what_is_there_already_may_be_followed_by_something_new() {
    let folder = tempfile::tempdir().unwrap();
    let entry = r#"{"id":"e1","type":"custom","timestamp":"2026-01-01T00:00:00Z","payload":{}}"#;
    let message = r#"{"role":"user","content":"hello"}"#;
    let lines = format!("{entry}\n{message}\n");
    for expected in [3, 4] {
        let fed = feed(folder.path(), &lines);
        assert!(fed.status.success(), "{}", ctx::stderr(&fed));
        assert_eq!(ctx::stdout(&fed).lines().count(), 2);
        assert_eq!(ctx::stdout(&fed).lines().next(), Some("e1"));
        let shown = ctx::run(folder.path(), &["sessions", "show", "s", "--json"]);
        assert_eq!(ctx::stdout(&shown).lines().count(), expected);
    }
}

/// A reader that goes away is told by the exit code that not everything was appended.
#[test]
fn an_output_that_is_closed_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = ctx::command(folder.path(), &["sessions", "append", "s"])
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = ctx::messages("m");
    stdin.write_all(lines.next().unwrap().as_bytes()).unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut id = String::new();
    out.read_line(&mut id).unwrap();
    drop(out);
    for line in lines.take(3_000) {
        if stdin.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    let error = ctx::stderr(&ended);
    assert_eq!(ended.status.code(), Some(1), "{error}");
    assert!(error.contains("what follows is not"), "{error}");
}
