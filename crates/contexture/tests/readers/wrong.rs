//! What is wrong, and where.

use crate::readers::read;
use crate::readers::refused;
use contexture::ContextConfig;
use contexture::Entry;
use contexture::build::Session;
use contexture::build::Settings;
use insta::assert_snapshot;
use serde_json::Value;
use serde_json::json;

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
    config.maxInputTokens: invalid value: integer `-5`, expected usize
    limits are whole numbers above 0
    ");
    assert_snapshot!(config(r#"{"config":{"maxInputTokens":1.5}}"#), @"
    config.maxInputTokens: invalid type: floating point `1.5`, expected usize
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
    config.triggerPercent: 101 is not a share from 1 to 100 %
    config.targetPercent: the target (40 %) must be below the trigger (40 %)
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
