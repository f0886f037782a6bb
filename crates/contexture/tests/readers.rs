//! Everything that a build reads: each shape, each way to be wrong with its place, and nothing lost
//! between reading and writing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use contexture::build::{BuildInput, Session, Settings};
use contexture::message::openai;
use contexture::prompt::Stability;
use contexture::{ContextConfig, ContextError, Entry, Message, Payload, Role, json as strict};
use insta::assert_snapshot;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

#[track_caller]
fn read(text: &str) -> BuildInput {
    BuildInput::read(text.as_bytes()).unwrap()
}

/// The error, as a user sees it.
#[track_caller]
fn refused(bytes: impl AsRef<[u8]>) -> String {
    let error = BuildInput::read(bytes.as_ref()).expect_err("it is read");
    assert_eq!(error.code(), "ContextInvalidInput");
    format!("{error}\n{}", error.hint())
}

fn texts(input: &BuildInput) -> Vec<String> {
    let messages = input.session_entries.iter().map(|e| match &e.payload {
        Payload::Message { message } => message.text().into_owned(),
        other => other.type_name().to_owned(),
    });
    messages.collect()
}

// The shapes.

#[test]
fn an_input_object() {
    let input = read(
        r#"{
            "systemPrompt": "Be terse.",
            "sections": [{"name": "old", "text": "gone"}, {"name": "pool", "text": "2 free", "stability": "volatile"}],
            "sessionEntries": [
                {"id": "e1", "type": "message", "payload": {"message": {"role": "user", "content": "one"}}},
                {"role": "assistant", "content": "two"}
            ],
            "inputMessages": [{"role": "user", "content": "three"}],
            "newMessages": [{"role": "user", "content": "four"}],
            "runtimeInitData": {"os": "linux"},
            "runtimeHints": {"time": "noon"},
            "toolSpecs": [{"name": "grep"}],
            "overflowHint": true,
            "config": {"maxInputTokens": 5000},
            "now": "2026-01-01T00:00:00Z",
            "model": "gpt-4o"
        }"#,
    );
    assert_eq!(texts(&input), ["one", "two"]);
    let turn = &input.turn;
    let said: Vec<_> = turn.messages.iter().map(Message::text).collect();
    assert_eq!(said, ["three", "four"]);
    // A system prompt stands for the whole stable side.
    let sections = turn.sections.as_ref().unwrap();
    let named: Vec<_> = sections
        .iter()
        .map(|s| (s.name.as_str(), s.stability))
        .collect();
    assert_eq!(
        named,
        [("system", Stability::Stable), ("pool", Stability::Volatile)]
    );
    assert_eq!(turn.runtime_init.as_ref().unwrap()["os"], "linux");
    assert_eq!(turn.hints.as_ref().unwrap()["time"], "noon");
    assert_eq!(turn.tools.as_ref().unwrap(), &[json!({"name": "grep"})]);
    assert!(turn.overflow);
    assert_eq!(turn.now.as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(input.model.as_deref(), Some("gpt-4o"));
    let config = input.config_over(ContextConfig::default()).unwrap();
    assert_eq!(config.max_input_tokens, 5_000);
    assert_eq!(
        config.trigger_percent,
        ContextConfig::default().trigger_percent
    );
    // Nothing given is nothing changed.
    let empty = read("{}");
    assert!(empty.turn.sections.is_none() && empty.turn.tools.is_none());
    let nulls =
        read(r#"{"systemPrompt": null, "toolSpecs": null, "overflowHint": null, "config": null}"#);
    assert!(nulls.turn.sections.is_none() && nulls.turn.tools.is_none() && !nulls.turn.overflow);
}

#[test]
fn lines_of_entries() {
    let input = read(
        "{\"id\":\"a\",\"type\":\"message\",\"payload\":{\"message\":{\"role\":\"user\",\"content\":\"one\"}}}\n\
         \n\
         {\"id\":\"b\",\"parentId\":\"a\",\"type\":\"pin\",\"payload\":{\"entryId\":\"a\"}}\r\n",
    );
    assert_eq!(texts(&input), ["one", "pin"]);
    assert_eq!(
        input.session_entries[1]
            .parent_id
            .as_ref()
            .unwrap()
            .as_str(),
        "a"
    );
}

#[test]
fn lines_of_messages() {
    let input =
        read("{\"role\":\"user\",\"content\":\"one\"}\n{\"role\":\"user\",\"content\":\"one\"}\n");
    assert_eq!(texts(&input), ["one", "one"]);
    // Equal messages are two messages.
    assert_ne!(input.session_entries[0].id, input.session_entries[1].id);
    // The same bytes give the same ids, anywhere.
    let again =
        read("{\"content\":\"one\",\"role\":\"user\"}\n{\"role\":\"user\",\"content\":\"one\"}");
    let ids = |input: &BuildInput| {
        input
            .session_entries
            .iter()
            .map(|e| e.id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&input), ids(&again));
}

#[test]
fn one_line_alone() {
    assert_eq!(texts(&read(r#"{"role":"user","content":"one"}"#)), ["one"]);
    assert_eq!(
        texts(&read(r#"{"id":"a","type":"custom","payload":{}}"#)),
        ["custom"]
    );
}

#[test]
fn an_array_of_messages() {
    let input = read(
        "[\n{\"role\":\"user\",\"content\":\"one\"},\n{\"role\":\"assistant\",\"content\":\"two\"}]",
    );
    assert_eq!(texts(&input), ["one", "two"]);
    assert_eq!(texts(&read("[]")), Vec::<String>::new());
}

#[test]
fn a_chat_request() {
    let input = read(
        r#"{"model":"gpt-4o","messages":[{"role":"user","content":"one"}],"tools":[{"name":"grep"}],
            "temperature":0.5,"stream":true,"session_id":"mine alone"}"#,
    );
    assert_eq!(texts(&input), ["one"]);
    assert_eq!(
        input.turn.tools.as_deref(),
        Some(&[json!({"name": "grep"})][..])
    );
    assert_eq!(input.model.as_deref(), Some("gpt-4o"));
    let params: Vec<_> = input.params.keys().map(String::as_str).collect();
    assert_eq!(params, ["stream", "temperature"]);
}

/// Whether a tool failed is for those forms that can say it.
#[test]
fn a_failure_stays_in_the_log() {
    let result =
        json!({"role": "tool", "content": "no", "tool_call_id": "a", "isError": true, "mine": 1});
    let message = openai::read(result.clone()).unwrap();
    assert!(message.failed());
    assert_eq!(serde_json::to_value(&message).unwrap(), result);
    let sent = json!({"role": "tool", "content": "no", "tool_call_id": "a", "mine": 1});
    let mut wire = Vec::new();
    openai::write(&message, &mut wire);
    assert_eq!(serde_json::from_slice::<Value>(&wire).unwrap(), sent);
    assert_eq!(openai::shown(&message), sent);

    let said = json!({"role": "user", "content": "no", "isError": true});
    let message = openai::read(said.clone()).unwrap();
    assert!(!message.failed());
    assert_eq!(openai::shown(&message), said);
}

// What is wrong, and where.

#[test]
fn a_defect_has_its_line_and_column() {
    assert_snapshot!(refused("{\"messages\": [\n  {\"role\" \"user\"}\n]}"), @"
    line 2, column 11: expected `:`
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused("{\"role\":\"user\"}\n{\"role\":\"user\"}\n{\"role\":\"user\",}\n"), @"
    line 3, column 16: trailing comma
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused("{\"role\":\"user\",\"content\":\"cut o"), @"
    line 1, column 31: EOF while parsing a string
    the document ends too early: was it cut off while being written?
    ");
    assert_snapshot!(refused(""), @"
    line 1, column 0: EOF while parsing a value
    the document ends too early: was it cut off while being written?
    ");
    assert_snapshot!(refused("7"), @r#"
    line 1: must be an object or an array, is a number
    the input is an input object (sessionEntries, inputMessages, …), entries or messages as JSONL, an array of messages, or `{"messages":[…]}`
    "#);
    assert_snapshot!(refused("{} {}"), @"
    line 1, column 4: trailing characters
    the input must be valid JSON in UTF-8, each key once in its object
    ");
}

#[test]
fn a_wrong_value_has_its_path() {
    assert_snapshot!(refused(r#"{"messages":[{"role":"user"},{"role":"robot"}]}"#), @"
    messages[1].role: unknown role `robot`
    a role is one of system, developer, user, assistant, tool
    ");
    assert_snapshot!(refused(r#"{"role":"robot"}"#), @"
    line 1, role: unknown role `robot`
    a role is one of system, developer, user, assistant, tool
    ");
    assert_snapshot!(refused("{\"role\":\"user\"}\n{\"content\":\"x\"}"), @r#"
    line 2: is neither a message nor an entry
    the input is an input object (sessionEntries, inputMessages, …), entries or messages as JSONL, an array of messages, or `{"messages":[…]}`
    "#);
    assert_snapshot!(refused("{\"role\":\"user\"}\n{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\"}]}"), @r#"
    line 2, tool_calls[0].function: is missing
    a call is `{"id":…,"type":"function","function":{"name":…,"arguments":"…"}}`
    "#);
    assert_snapshot!(refused(r#"[{"role":"user","content":[{"type":"text"},{"kind":"x"}]}]"#), @"
    [0].content[1].type: is missing
    a part names its type: text, image_url, file or thinking
    ");
    assert_snapshot!(refused(r#"{"inputMessages":[{"role":"user","content":7}]}"#), @"
    inputMessages[0].content: must be a string, null or an array of parts, is a number
    messages follow OpenAI's chat format
    ");
    assert_snapshot!(refused(r#"{"sessionEntries":[{"type":"message","id":"a","payload":{"message":{"role":"user","pin":1}}}]}"#), @"
    sessionEntries[0].payload: pin: must be true or false, is a number (messages follow OpenAI's chat format)
    see the payload of `message`
    ");
    assert_snapshot!(refused(r#"{"sessionEntries":[{"type":"massage","id":"a"}]}"#), @"
    sessionEntries[0].type: unknown entry type `massage`
    an entry's type is session_header, message, sections, tools, runtime_init, hints, injection, compaction_summary, mask, pin, unpin, redaction, revert, branch_summary, model_change, custom or request
    ");
    assert_snapshot!(refused(r#"{"sessionEntries":[{"type":"custom"}]}"#), @"
    sessionEntries[0].id: is missing
    every entry has an id of its own
    ");
    assert_snapshot!(refused(r#"{"sections":[{"name":"a","text":"b","stabilty":"stable"}]}"#), @r#"
    sections[0]: unknown field `stabilty`, expected one of `name`, `origin`, `stability`, `priority`, `text`
    a section is `{"name","origin","stability","priority","text"}`
    "#);
    assert_snapshot!(refused(r#"{"role":"user","tool_calls":[],"toolCalls":[]}"#), @"
    line 1, tool_calls: stands beside `toolCalls`, which means the same
    keep one of the two
    ");
    assert_snapshot!(refused(r#"{"overflowHint":"yes"}"#), @r#"
    overflowHint: must be true or false, is a string
    the input is an input object (sessionEntries, inputMessages, …), entries or messages as JSONL, an array of messages, or `{"messages":[…]}`
    "#);
    assert_snapshot!(refused("{\"messages\":[]}\n{\"messages\":[]}"), @"
    line 1: is a whole session, one of several
    pick one with --line N
    ");
}

#[test]
fn an_unknown_field_names_its_nearest() {
    assert_snapshot!(refused(r#"{"inputMesages":[]}"#), @"
    inputMesages: is no field of the input
    did you mean `inputMessages`?
    ");
    assert_snapshot!(refused(r#"{"whatever":[]}"#), @r#"
    whatever: is no field of the input
    the input is an input object (sessionEntries, inputMessages, …), entries or messages as JSONL, an array of messages, or `{"messages":[…]}`
    "#);
    let config = |text: &str| {
        let error = read(text)
            .config_over(ContextConfig::default())
            .unwrap_err();
        format!("{error}\n{}", error.hint())
    };
    assert_snapshot!(config(r#"{"config":{"maxInputToken":5}}"#), @"
    config.maxInputToken: is unknown
    did you mean `maxInputTokens`?
    ");
    assert_snapshot!(config(r#"{"config":{"maxInputTokens":-5}}"#), @"
    config: invalid value: integer `-5`, expected usize
    limits are whole numbers above 0
    ");
    assert_snapshot!(config(r#"{"config":{"maxInputTokens":1.5}}"#), @"
    config: invalid type: floating point `1.5`, expected usize
    limits are whole numbers above 0
    ");
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let wrong = |config: Value| {
        let text = json!({ "config": config }).to_string();
        let config = read(&text).config_over(ContextConfig::default()).unwrap();
        let settings = Settings {
            config,
            ..Settings::default()
        };
        let error = Session::new(settings).err().expect("it makes no sense");
        error.to_string()
    };
    let all = [
        json!({"maxInputTokens": 0}),
        json!({"maxHistoryMessages": 0}),
        json!({"maxBytes": 0}),
        json!({"maxInputTokens": 10, "reservedOutput": 10}),
        json!({"triggerPercent": 101}),
        json!({"triggerPercent": 40, "targetPercent": 40}),
    ];
    assert_snapshot!(all.map(wrong).join("\n"), @"
    config.maxInputTokens: a budget of 0 tokens holds no request
    config.maxHistoryMessages: a request has at least one message
    config.maxBytes: a budget of 0 bytes holds no request
    config.reservedOutput: 10 reserved of 10 leaves nothing for the request
    config.targetPercent: the target (40 %) must be below the trigger (101 %), and that at most 100 %
    config.targetPercent: the target (40 %) must be below the trigger (40 %), and that at most 100 %
    ");
}

#[test]
fn logs_that_contradict_themselves_are_refused() {
    let wrong = |lines: &[Value]| {
        let text: Vec<_> = lines.iter().map(Value::to_string).collect();
        let entries = read(&text.join("\n")).session_entries;
        let error = Session::open(Settings::default(), entries)
            .err()
            .expect("it is opened");
        assert_eq!(error.code(), "ContextInvalidInput");
        format!("{error}\n{}", error.hint())
    };
    let said = |id: &str, text: &str| json!({"id": id, "type": "message", "payload": {"message": {"role": "user", "content": text}}});
    let about = |id: &str, tag: &str, target: &str| json!({"id": id, "type": tag, "payload": {"entryId": target}});
    assert_snapshot!(wrong(&[said("a", "one"), said("b", "two"), said("a", "three")]), @"
    entry a: the id was used before, at entry 1 of the log, for something else
    ids are unique: give one of the two another id, or leave ids out
    ");
    assert_snapshot!(wrong(&[said("a", "one"), about("b", "pin", "z")]), @"
    entry b: entryId `z` is not in the log before it
    name an entry that is there
    ");
    assert_snapshot!(wrong(&[said("a", "one"), about("b", "pin", "a"), about("c", "revert", "b")]), @"
    entry c: a pin cannot be reverted
    revert a compaction, a mask, a revert, or to a message
    ");
    let mut lost = said("b", "two");
    lost["parentId"] = json!("z");
    assert_snapshot!(wrong(&[said("a", "one"), lost]), @"
    entry b: its parent `z` is not in the log before it
    a parentId names an earlier entry; leave it out for the entry before
    ");
    let summary = json!({"id": "b", "type": "compaction_summary", "payload": {"summary": "s", "firstKeptEntryId": "z"}});
    assert_snapshot!(wrong(&[said("a", "one"), summary]), @"
    entry b: firstKeptEntryId `z` is not in the log before it
    name an entry that is there
    ");
    // The same entry twice is the entry once.
    let twice = [said("a", "one"), said("a", "one")].map(|v| Entry::from_value(v).unwrap());
    assert_eq!(
        Session::open(Settings::default(), twice)
            .unwrap()
            .view()
            .log()
            .len(),
        1
    );
}

#[test]
fn entries_of_another_time_or_kind_are_refused() {
    let wrong = |entry: Value| {
        let error = Entry::from_value(entry).unwrap_err();
        format!("{error}\n{}", error.hint())
    };
    assert_snapshot!(wrong(json!({"id": "a", "type": "session_header", "payload": {"version": 2}})), @"
    payload.version: the log has format 2, this program reads up to 1
    use a newer `ctx`
    ");
    assert_snapshot!(wrong(json!({"id": "a", "type": "injection", "payload": {"role": "tool", "content": "x"}})), @"
    payload.role: an injection cannot be a tool's result
    inject as system, assistant or user
    ");
    assert_snapshot!(wrong(json!({"id": "a", "type": "injection", "payload": {"role": "robot", "content": "x"}})), @"
    payload: unknown role `robot`
    see the payload of `injection`
    ");
    assert_snapshot!(wrong(json!({"id": 7, "type": "custom"})), @r#"
    id: must be a string, is a number
    an entry is `{"id","parentId","type","timestamp","payload"}`
    "#);
    assert_snapshot!(wrong(json!({"id": "a", "type": "pin", "payload": {}})), @"
    payload: missing field `entryId`
    see the payload of `pin`
    ");
}

// Sizes and shapes.

#[test]
fn a_line_beyond_the_limit_is_refused() {
    let mut line = br#"{"role":"user","content":""#.to_vec();
    line.resize(strict::MAX_BYTES + 1, b'a');
    assert_snapshot!(refused(&line), @"
    line 1: longer than 64 MiB
    split the document, or keep such data in a file and refer to it by path
    ");
    let mut lines = b"{\"role\":\"user\"}\n".to_vec();
    lines.append(&mut line);
    assert_snapshot!(refused(&lines), @"
    line 2: longer than 64 MiB
    split the document, or keep such data in a file and refer to it by path
    ");
}

#[test]
fn hostile_json_is_refused() {
    let deep = |open: &str, close: &str, n: usize| open.repeat(n) + &close.repeat(n);
    assert_snapshot!(refused(deep("[", "]", 100_000)), @"
    line 1, column 128: recursion limit exceeded
    nesting is limited to 128 levels
    ");
    assert_snapshot!(refused(deep("{\"a\":", "}", 100_000)), @"
    line 1, column 636: recursion limit exceeded
    nesting is limited to 128 levels
    ");
    assert_snapshot!(refused("{\"role\":\"user\"}\n".to_owned() + &deep("[", "]", 100_000)), @"
    line 2, column 1: trailing characters
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(r#"{"role":"user","content":"a","role":"system"}"#), @"
    line 1, column 35: the key `role` stands twice
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(r#"{"role":"user","content":"a","x":{"y":[{"k":1,"k":2}]}}"#), @"
    line 1, column 49: the key `k` stands twice
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(r#"{"role":"user","content":"a","n":1e400}"#), @"
    line 1, column 38: number out of range
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(r#"{"role":"user","content":"\ud800"}"#), @"
    line 1, column 33: unexpected end of hex escape
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(b"{\"role\":\"user\",\"content\":\"\xff\xfe\"}"), @"
    line 1, column 27: invalid unicode code point
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(b"\xff"), @"
    line 1, column 1: expected value
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused("{\"role\":\"user\",\"content\":\"a\nb\"}"), @r"
    line 2, column 0: control character (\u0000-\u001F) found while parsing a string
    the input must be valid JSON in UTF-8, each key once in its object
    ");
}

#[test]
fn a_pair_of_surrogates_is_one_character() {
    assert_eq!(
        texts(&read(r#"{"role":"user","content":"\ud83e\udd80"}"#)),
        ["🦀"]
    );
}

// Nothing is lost.

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
