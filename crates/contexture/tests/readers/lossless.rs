//! Nothing is lost.

use contexture::ContextConfig;
use contexture::ContextError;
use contexture::Entry;
use contexture::Role;
use contexture::build::BuildInput;
use contexture::build::Session;
use contexture::build::Settings;
use contexture::json as strict;
use contexture::message::openai;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use serde_json::json;

/// An entry of each type, with fields that we do not know where they are kept.
fn entries() -> Vec<Value> {
    let entry = |tag: &str, payload: Value| {
        json!({
            "id": format!("id of {tag}"),
            "parentId": "p",
            "timestamp": "2026-01-01T00:00:00Z",
            "runId": "r",
            "type": tag,
            "payload": payload,
            "meta": {"by": "test", "n": {"deep": [1, 2.5, null]}},
            "ofAnother": {"program": true},
        })
    };
    let message = json!({"role": "user", "content": "hi", "id": "m", "includeInContext": false, "pin": true, "mine": [1]});
    vec![
        entry(
            "session_header",
            json!({"version": 1, "chatKey": "k", "agent": "a", "cwd": "/", "more": 1}),
        ),
        entry("message", json!({ "message": message })),
        entry(
            "sections",
            json!({"sections": [{"name": "a", "origin": "o", "stability": "volatile", "priority": -1, "text": "t"}]}),
        ),
        entry(
            "tools",
            json!({"add": [{"name": "grep", "x": {"y": 1}}], "remove": ["a"], "reason": "why"}),
        ),
        entry(
            "runtime_init",
            json!({"data": {"z": 1, "a": {"b": [null]}}}),
        ),
        entry("hints", json!({"data": {"time": "noon"}})),
        entry(
            "injection",
            json!({"role": "developer", "content": "c", "fingerprint": "f", "origin": "o"}),
        ),
        entry(
            "compaction_summary",
            json!({
                "summary": "s", "firstKeptEntryId": "b", "strategy": "model", "tokensBefore": 10,
                "tokensAfter": 5, "firstCoveredEntryId": "a", "keptEntryIds": ["c"],
            }),
        ),
        entry(
            "mask",
            json!({"entryIds": ["a", "b"], "reason": "why", "keepBytes": 0}),
        ),
        entry("pin", json!({"entryId": "a"})),
        entry("unpin", json!({"entryId": "a"})),
        entry("redaction", json!({"entryId": "a"})),
        entry("revert", json!({"entryId": "a"})),
        entry("branch_summary", json!({"summary": "s", "from": "x"})),
        entry("model_change", json!({"model": "m", "more": {"x": 1}})),
        entry("custom", json!({"anything": [1, {"goes": null}]})),
        entry(
            "request",
            json!({"digest": "sha256:0", "model": "m", "inputTokens": 7, "usage": {"prompt_tokens": 6, "x": {"y": 1}}, "cost": 0.5}),
        ),
    ]
}

#[test]
fn every_entry_survives_reading_and_writing() {
    for value in entries() {
        let entry = Entry::from_value(value.clone()).unwrap();
        assert_eq!(entry.payload.type_name(), value["type"]);
        let written = serde_json::to_value(&entry).unwrap();
        assert_eq!(written, value);
        let text = serde_json::to_string(&entry).unwrap();
        let again = Entry::from_value(strict::parse(text.as_bytes(), 1).unwrap()).unwrap();
        assert_eq!(again, entry);
        // Byte for byte from then on.
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}

#[test]
fn an_entry_needs_little() {
    for value in entries() {
        let mut bare = value.clone();
        for key in ["parentId", "timestamp", "runId", "meta", "ofAnother"] {
            bare.as_object_mut().unwrap().remove(key);
        }
        let entry = Entry::from_value(bare.clone()).unwrap();
        assert_eq!(serde_json::to_value(&entry).unwrap(), bare);
    }
    let entry = Entry::from_value(json!({"id": "a", "type": "custom", "timestamp": 1_700_000_000}))
        .unwrap();
    assert_eq!(entry.timestamp, "1700000000");
}

#[test]
fn every_message_survives_reading_and_writing() {
    let all = [
        json!({"role": "system", "content": "a", "name": "n"}),
        json!({"role": "developer", "content": "a"}),
        json!({"role": "user", "content": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "https://e.example/a.png", "detail": "low"}, "mine": 1},
            {"type": "file", "file": {"file_id": "f", "filename": "n"}, "mine": 2},
            {"type": "thinking", "thinking": "hm", "signature": "s", "mine": 3},
            {"type": "thinking", "thinking": "hm"},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ]}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "mine": 1, "function": {"name": "f", "arguments": "{}", "mine": 2}},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": "not json"}},
        ], "refusal": null, "reasoning_content": "hm", "annotations": []}),
        json!({"role": "assistant", "content": []}),
        json!({"role": "assistant", "content": ""}),
        json!({"role": "tool", "content": "r", "tool_call_id": "a", "id": "m", "includeInContext": false, "pin": true}),
        json!({"role": "tool", "content": null}),
    ];
    for value in all {
        let message = openai::read(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap(), value);
        // What goes out is the same but for what is ours alone, and for thinking.
        let mut wire = Vec::new();
        openai::write(&message, &mut wire);
        let wire: Value = serde_json::from_slice(&wire).unwrap();
        for key in ["id", "includeInContext", "pin"] {
            assert!(wire.get(key).is_none(), "{wire}");
        }
        assert!(!wire.to_string().contains("\"thinking\""));
        assert_eq!(wire["tool_calls"], value["tool_calls"]);
    }
}

#[test]
fn other_spellings_are_read() {
    let read = |value: Value| openai::read(value).unwrap();
    let call = json!([{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]);
    let message = read(json!({"role": "assistant", "toolCalls": call}));
    assert_eq!(message.tool_calls[0].arguments, r#"{"x":1}"#);
    assert_eq!(
        read(json!({"role": "tool", "toolCallId": "a"}))
            .tool_call_id
            .as_deref(),
        Some("a")
    );
    assert_eq!(
        read(json!({"role": "user", "content": ["a", "b"]})).text(),
        "ab"
    );
    assert_eq!(read(json!({"role": "user"})).role, Role::User);
}

/// A message in every way that a JSON document can hold one.
fn any_message() -> impl Strategy<Value = Value> {
    let text = || {
        prop_oneof![
            ".{0,12}",
            "[ \\n\\t]{0,3}",
            Just("🦀\u{0}\u{2028}".to_owned())
        ]
    };
    let part = prop_oneof![
        text().prop_map(|t| json!({"type": "text", "text": t})),
        text().prop_map(|t| json!({"type": "thinking", "thinking": t, "extra": [t]})),
        text().prop_map(|t| json!({"type": "image_url", "image_url": {"url": t}})),
        text().prop_map(|t| json!({"type": format!("x{t}"), "data": {"t": t}})),
        text().prop_map(Value::from),
    ];
    let content = prop_oneof![
        Just(Value::Null),
        text().prop_map(Value::from),
        proptest::collection::vec(part, 0..4).prop_map(Value::from),
    ];
    let role = proptest::sample::select(vec!["system", "developer", "user", "assistant", "tool"]);
    let calls = proptest::collection::vec((text(), text(), text()), 0..3);
    (role, content, calls, any::<[bool; 4]>(), text()).prop_map(|(role, content, calls, with, text)| {
        let mut value = json!({"role": role, "content": content});
        let calls: Vec<Value> = calls
            .into_iter()
            .map(|(id, name, args)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": args}}))
            .collect();
        if with[0] {
            value["tool_calls"] = calls.into();
        }
        if with[1] {
            value["tool_call_id"] = text.clone().into();
        }
        if with[2] {
            value["pin"] = true.into();
            value["includeInContext"] = false.into();
        }
        if with[3] {
            value["name"] = text.clone().into();
            value[format!("x-{text}")] = json!([text, 1.5, {"deep": null}]);
        }
        value
    })
}

/// Whatever is read is also built, or refused; it never panics.
fn no_panic(bytes: &[u8]) {
    let Ok(input) = BuildInput::read(bytes) else {
        return;
    };
    let config = ContextConfig {
        max_input_tokens: 400,
        ..ContextConfig::default()
    };
    let Ok(config) = input.config_over(config) else {
        return;
    };
    let settings = Settings {
        config,
        params: input.params,
        model: input.model,
        ..Settings::default()
    };
    let Ok(mut session) = Session::open(settings, input.session_entries) else {
        return;
    };
    match session.build(input.turn) {
        Ok(built) => {
            let body: Value = serde_json::from_slice(built.body()).unwrap();
            assert!(body["messages"].is_array());
        }
        Err(ContextError::Overflow(overflow)) => assert!(overflow.needed > overflow.limit),
        Err(_) => {}
    }
}

/// Documents of every shape, to be damaged.
fn documents() -> Vec<String> {
    let messages = json!([
        {"role": "system", "content": "Be terse."},
        {"role": "user", "content": "Read src/main.rs"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"p\":1}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "word ".repeat(300)},
        {"role": "user", "content": [{"type": "text", "text": "Und? 🦀"}]},
    ]);
    let lines = |values: &[Value]| {
        values
            .iter()
            .map(|v| v.to_string() + "\n")
            .collect::<String>()
    };
    let mut log = entries();
    for entry in &mut log {
        entry.as_object_mut().unwrap().remove("parentId");
    }
    vec![
        messages.to_string(),
        lines(messages.as_array().unwrap()),
        lines(&log),
        json!({"messages": messages, "tools": [{"name": "grep"}], "temperature": 1}).to_string(),
        json!({
            "systemPrompt": "s", "sessionEntries": log, "inputMessages": messages, "runtimeHints": {"a": 1},
            "toolSpecs": [{"name": "x"}], "config": {"maxInputTokens": 300}, "overflowHint": true,
        })
        .to_string(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_message_is_read_as_it_was_written(value in any_message()) {
        let message = openai::read(value).unwrap();
        let written = serde_json::to_value(&message).unwrap();
        let again = openai::read(written.clone()).unwrap();
        prop_assert_eq!(&again, &message);
        prop_assert_eq!(serde_json::to_value(&again).unwrap(), written);
        // In the log as well, where an entry that comes twice must be the same.
        let entry = Entry::message(None, "", message);
        let line = serde_json::to_string(&entry).unwrap();
        let read = Entry::from_value(strict::parse(line.as_bytes(), 1).unwrap()).unwrap();
        prop_assert_eq!(read, entry);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        no_panic(&bytes);
    }

    #[test]
    fn text_that_looks_like_json_never_panics(text in "[\\[\\]{}\":,0-9a-z\\\\ \n-]{0,120}") {
        no_panic(text.as_bytes());
    }

    #[test]
    fn damaged_documents_never_panic(
        which in any::<Index>(),
        damage in proptest::collection::vec((any::<Index>(), 0..5_u8, any::<u8>(), any::<Index>()), 1..6),
    ) {
        let documents = documents();
        let mut bytes = documents[which.index(documents.len())].clone().into_bytes();
        for (at, kind, byte, other) in damage {
            let (at, other) = (at.index(bytes.len().max(1)), other.index(bytes.len().max(1)));
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                3 => bytes.truncate(bytes.len() - bytes.len() / 8),
                // One piece of it once more, somewhere else.
                _ => {
                    let piece: Vec<u8> = bytes.iter().skip(other).take(40).copied().collect();
                    bytes.splice(at..at, piece);
                }
            }
        }
        no_panic(&bytes);
    }
}
