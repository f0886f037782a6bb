//! The shapes.

use crate::readers::read;
use crate::readers::texts;
use contexture::ContextConfig;
use contexture::Message;
use contexture::build::BuildInput;
use contexture::message::openai;
use serde_json::Value;
use serde_json::json;

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
    assert_eq!(turn.system_prompt.as_deref(), Some("Be terse."));
    assert_eq!(turn.sections.as_ref().unwrap().len(), 2);
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
