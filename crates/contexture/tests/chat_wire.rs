//! The chat form: what OpenAI refuses does not go out, whatever came in.

use contexture::{Message, Session, Settings, Turn};
use serde_json::{Value, json};

fn sent(messages: Value) -> Vec<Value> {
    let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
    let mut session = Session::new(Settings::default()).unwrap();
    let turn = Turn {
        messages,
        ..Turn::default()
    };
    let body: Value = serde_json::from_slice(session.build(turn).unwrap().body()).unwrap();
    body["messages"].as_array().unwrap().clone()
}

fn call(id: &str, name: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}]})
}

#[test]
fn only_an_assistant_says_null() {
    let sent = sent(json!([
        {"role": "user", "content": "go"},
        call("a", "look"),
        {"role": "tool", "tool_call_id": "a", "content": null},
        call("b", "look"),
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "thinking", "thinking": "hm"}]},
    ]));
    assert_eq!(sent[1]["content"], Value::Null);
    assert_eq!(sent[2]["content"], "");
    assert_eq!(sent[4]["content"], "");
}

#[test]
fn only_a_user_shows_more_than_text() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let refusal = json!({"type": "refusal", "refusal": "No."});
    let sent = sent(json!([
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
        call("a", "look"),
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "here"}, image]},
        {"role": "assistant", "content": [refusal]},
    ]));
    assert_eq!(sent[0]["content"][1], image);
    assert_eq!(
        sent[2]["content"],
        json!([{"type": "text", "text": "here"}, {"type": "text", "text": "[image left out: only a user turn can show one]"}])
    );
    assert_eq!(sent[3]["content"], json!([refusal]));
}

#[test]
fn a_call_has_a_name_that_a_tool_can_have() {
    let sent = sent(json!([
        {"role": "user", "content": "go"},
        call("a", "fs:look.at"),
        {"role": "tool", "tool_call_id": "a", "content": "there is no such tool"},
        call("b", ""),
        {"role": "tool", "tool_call_id": "b", "content": "there is no such tool"},
    ]));
    let name = |at: usize| sent[at]["tool_calls"][0]["function"]["name"].clone();
    assert_eq!((name(1), name(3)), (json!("fs_look_at"), json!("unnamed")));
}
