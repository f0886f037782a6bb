//! What the log says last counts, and only that.

use contexture::build::BuildInput;
use contexture::{Session, Settings, Turn};
use serde_json::{Value, json};

/// The texts that a log shows.
fn shown(lines: &[Value]) -> Vec<String> {
    let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let input = BuildInput::read(log.as_bytes()).unwrap();
    let mut session = Session::open(Settings::default(), input.session_entries).unwrap();
    let built = session.build(Turn::default()).unwrap();
    built.messages().map(|m| m.text().into_owned()).collect()
}

fn message(id: &str, text: &str) -> Value {
    json!({ "id": id, "type": "message", "payload": { "message": { "role": "user", "content": text } } })
}

fn summary(id: &str, text: &str, from: &str, to: &str) -> Value {
    json!({ "id": id, "type": "compaction_summary",
            "payload": { "summary": text, "firstCoveredEntryId": from, "firstKeptEntryId": to } })
}

fn target(kind: &str, id: &str, entry: &str) -> Value {
    json!({ "id": id, "type": kind, "payload": { "entryId": entry } })
}

#[test]
fn a_redaction_withholds_the_summaries_that_saw_it_and_no_later_one() {
    let mut log = vec![
        message("a", "the password is hunter2"),
        message("b", "thanks"),
        summary("s1", "the password is hunter2", "a", "b"),
        message("c", "go on"),
        summary("s2", "told: the password is hunter2", "s1", "c"),
        target("redaction", "r", "a"),
    ];
    assert_eq!(shown(&log), ["go on"]);
    // Made after the redaction, from what was left to see.
    log.push(message("d", "and on"));
    log.push(summary("s3", "went on", "s2", "d"));
    let texts = shown(&log);
    assert!(texts[0].contains("went on"), "{texts:?}");
    assert!(!texts.concat().contains("hunter2"), "{texts:?}");
}

#[test]
fn an_injection_can_come_back_once_it_is_covered() {
    let inject = |id: &str| {
        json!({ "id": id, "type": "injection",
                "payload": { "role": "system", "content": "use tabs", "fingerprint": "f" } })
    };
    let mut log = vec![inject("i1"), message("a", "hi"), inject("i2")];
    assert_eq!(shown(&log), ["use tabs", "hi"]);
    log.push(summary("s", "greeted", "i1", "a"));
    log.push(inject("i3"));
    assert_eq!(shown(&log)[1..], ["hi", "use tabs"]);
}

#[test]
fn a_message_with_an_id_that_is_logged_twice_is_one() {
    let line = json!({ "role": "user", "content": "hi", "id": "m1" });
    assert_eq!(
        shown(&[line.clone(), line, message("b", "bye")]),
        ["hi", "bye"]
    );
}

#[test]
fn a_custom_tool_call_goes_out_as_it_came() {
    let call = json!({ "role": "assistant", "content": null, "tool_calls": [
        { "id": "c1", "type": "custom", "custom": { "name": "sql", "input": "select 1" } } ] });
    let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "1" });
    let input = BuildInput::read(json!([call, result]).to_string().as_bytes()).unwrap();
    let mut session = Session::open(Settings::default(), input.session_entries).unwrap();
    let built = session.build(Turn::default()).unwrap();
    let body: Value = serde_json::from_slice(built.body()).unwrap();
    assert_eq!(body["messages"], json!([call, result]));
}
