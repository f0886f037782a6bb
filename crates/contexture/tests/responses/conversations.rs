//! Small conversations and what becomes of them.

use contexture::{Message, ToolCall};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::responses::shape::shape;
use crate::responses::{check, check_form, message};

fn shown(messages: &[Message]) -> String {
    shape(&check(&[], messages))
}

fn user(parts: &Value) -> Message {
    message(json!({"role": "user", "content": parts}))
}

fn assistant(parts: &Value) -> Message {
    message(json!({"role": "assistant", "content": parts}))
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "read", "{}")
}

/// A thought that OpenAI sealed.
fn thought(n: usize) -> Value {
    json!({
        "type": "thinking", "thinking": "hm", "id": format!("rs_{n}"), "encrypted_content": format!("seal{n}"),
        "summary": [{"type": "summary_text", "text": "hm"}],
    })
}

#[test]
fn whole_body() {
    let messages = [Message::system("Be brief."), Message::user("hi")];
    let body = check(&[json!({"name": "now"})], &messages);
    assert_snapshot!(String::from_utf8(body).unwrap(), @r#"{"model":"gpt-5.1","store":false,"tools":[{"type":"function","name":"now","parameters":{"type":"object","properties":{}},"strict":false}],"input":[{"type":"message","role":"system","content":"Be brief."},{"type":"message","role":"user","content":"hi"}]}"#);
}

#[test]
fn nothing_at_all() {
    assert_snapshot!(shown(&[]), @r#"user: "(No message yet.)""#);
    assert_snapshot!(shown(&[Message::user(" \n"), Message::assistant("\u{1f}")]), @r#"user: "(No message yet.)""#);
}

#[test]
fn every_role() {
    let messages = [
        Message::system("s"),
        message(json!({"role": "developer", "content": "d"})),
        message(json!({"role": "user", "name": "Ann [1]", "content": "hi"})),
        message(json!({"role": "assistant", "name": "bot", "content": "hello"})),
        Message::system("later"),
    ];
    assert_snapshot!(shown(&messages), @r#"
    system: "s"
    developer: "d"
    user: "[Ann__1_]: hi"
    assistant: "[bot]: hello"
    system: "later"
    "#);
}

#[test]
fn parts() {
    let messages = [
        user(&json!([
            {"type": "text", "text": "look"},
            {"type": "text", "text": " "},
            {"type": "image_url", "image_url": {"url": "https://e.example/a.png", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,AA AA"}},
            {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
            {"type": "file", "file": {"filename": "a.mp4", "file_data": "data:video/mp4;base64,AAAA"}},
            {"type": "input_audio", "input_audio": {}},
        ])),
        assistant(
            &json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "refusal", "refusal": "no"}]),
        ),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: ["look", input_image {"image_url":"https://e.example/a.png","detail":"low"}, input_image {"image_url":"data:image/jpeg;base64,AAAA","detail":"auto"}, "[image left out: unsupported address]", input_file {"file_id":"file-1"}, input_file {"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}, "[file left out: a.mp4]", "[part of type input_audio left out]"]
    assistant: "ab\nno"
    "#);
}

#[test]
fn calls_and_results() {
    let mut asking = Message::calls([call("a"), call("b")]);
    asking.content = contexture::Content::Text("I look.".into());
    let messages = [
        asking,
        message(
            json!({"role": "tool", "tool_call_id": "b", "isError": true, "content": [
                {"type": "text", "text": "seen"},
                {"type": "image_url", "image_url": {"url": "https://e.example/b.png"}},
            ]}),
        ),
        message(json!({"role": "tool", "tool_call_id": "a", "content": null})),
    ];
    assert_snapshot!(shown(&messages), @r#"
    assistant: "I look."
    read(a) {}
    read(b) {}
    function_call_output(b) ["seen", input_image {"image_url":"https://e.example/b.png","detail":"auto"}]
    function_call_output(a) ""
    "#);
}

#[test]
fn ids_come_again() {
    let round = |text: &str| {
        [
            Message::calls([call("c"), call("c")]),
            Message::tool_result("c", format!("{text} 1")),
            Message::tool_result("c", format!("{text} 2")),
        ]
    };
    assert_snapshot!(shown(&[round("first"), round("second")].concat()), @r#"
    read(c) {}
    read(c_2) {}
    function_call_output(c) "first 1"
    function_call_output(c_2) "first 2"
    read(c_3) {}
    read(c_4) {}
    function_call_output(c_3) "second 1"
    function_call_output(c_4) "second 2"
    "#);
}

/// A call is what it is: its result is called alike.
#[test]
fn custom_calls() {
    let messages = [
        message(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "p", "type": "custom", "custom": {"name": "apply_patch", "input": "*** Begin"}},
            {"id": "f", "type": "function", "function": {"name": "read", "arguments": "not json"}},
        ]})),
        Message::tool_result("p", "done"),
        Message::tool_result("f", "read"),
    ];
    assert_snapshot!(shown(&messages), @r#"
    apply_patch(p) custom "*** Begin"
    read(f) {"_raw":"not json"}
    custom_tool_call_output(p) "done"
    function_call_output(f) "read"
    "#);
}

#[test]
fn unpaired() {
    let messages = [
        Message::tool_result("x", "whose?"),
        Message::calls([call("a"), call("b")]),
        Message::user("stop"),
        Message::tool_result("b", "late"),
        Message::tool_result("c", "to nobody's, so to a's"),
        Message::tool_result("c", "to nobody's"),
    ];
    assert_snapshot!(shape(&check_form(&[], &messages)), @r#"
    user: "[tool result without its call]\nwhose?"
    read(a) {}
    read(b) {}
    user: "stop"
    function_call_output(b) "late"
    function_call_output(a) "to nobody's, so to a's"
    user: "[tool result without its call]\nto nobody's"
    "#);
}

#[test]
fn thoughts_stand_before_what_came_of_them() {
    let mut asking = assistant(&json!([
        thought(1),
        {"type": "text", "text": "I look."},
        thought(2),
    ]));
    asking.tool_calls = vec![call("a")];
    let messages = [
        Message::user("look"),
        asking,
        Message::tool_result("a", "x"),
        assistant(&json!([thought(3), {"type": "text", "text": "There."}, thought(4)])),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: "look"
    reasoning(rs_1) [{"type":"summary_text","text":"hm"}] seal1
    assistant: "I look."
    reasoning(rs_2) [{"type":"summary_text","text":"hm"}] seal2
    read(a) {}
    function_call_output(a) "x"
    reasoning(rs_3) [{"type":"summary_text","text":"hm"}] seal3
    assistant: "There."
    "#);
}

/// Not others', none without a seal, none alone, and no id twice.
#[test]
fn thoughts_that_are_not_sent() {
    let messages = [
        assistant(&json!([
            {"type": "thinking", "thinking": "hm", "signature": "sealed by Anthropic"},
            {"type": "thinking", "thinking": "hm", "id": "rs_9", "encrypted_content": null},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "one"},
        ])),
        assistant(&json!([thought(1)])),
        assistant(&json!([thought(1), {"type": "text", "text": "two"}])),
        assistant(&json!([thought(2), {"type": "text", "text": "three"}])),
        assistant(&json!([thought(2), {"type": "text", "text": "three"}])),
    ];
    assert_snapshot!(shown(&messages), @r#"
    assistant: "one"
    reasoning(rs_1) [{"type":"summary_text","text":"hm"}] seal1
    assistant: "two"
    reasoning(rs_2) [{"type":"summary_text","text":"hm"}] seal2
    assistant: "three"
    assistant: "three"
    "#);
}
