//! Small conversations and what becomes of them.

use contexture::{Message, ToolCall};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::anthropic::shape::shape;
use crate::anthropic::{check, check_form, message};

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

#[test]
fn whole_body() {
    let messages = [Message::system("Be brief."), Message::user("hi")];
    let body = check(&[json!({"name": "now"})], &messages);
    assert_snapshot!(String::from_utf8(body).unwrap(), @r#"{"model":"claude-opus-4-5","max_tokens":4096,"tools":[{"name":"now","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}"#);
}

#[test]
fn nothing_at_all() {
    assert_snapshot!(shown(&[]), @r#"user: "(No message yet.)" *"#);
    assert_snapshot!(shown(&[Message::user(" \n"), Message::assistant("\u{1f}")]), @r#"user: "(No message yet.)" *"#);
}

#[test]
fn only_system() {
    let messages = [
        Message::system("one"),
        Message::system("  "),
        Message::system("two"),
    ];
    assert_snapshot!(shown(&messages), @r#"
    system: "one"
    system: "two" *
    user: "(No message yet.)" *
    "#);
}

#[test]
fn turns_alternate_and_the_last_two_of_the_user_are_marked() {
    let messages = [
        Message::system("s"),
        Message::user("a"),
        Message::user("b"),
        Message::assistant("c "),
        Message::assistant("d"),
        Message::user("e"),
        Message::assistant("f"),
        Message::user("g"),
        Message::assistant("h \n"),
    ];
    assert_snapshot!(shown(&messages), @r#"
    system: "s" *
    user: "a"
          "b"
    assistant: "c "
               "d"
    user: "e" *
    assistant: "f"
    user: "g" *
    assistant: "h"
    "#);
}

#[test]
fn assistant_first() {
    assert_snapshot!(shown(&[Message::assistant("hello")]), @r#"
    user: "(The conversation so far begins with the assistant.)" *
    assistant: "hello"
    "#);
    let calls = [Message::calls([call("a")]), Message::tool_result("a", "x")];
    assert_snapshot!(shown(&calls), @r#"
    user: "(The conversation so far begins with the assistant.)" *
    assistant: read(a) {}
    user: tool_result(a) "x" *
    "#);
}

#[test]
fn instructions_midway() {
    let messages = [
        Message::user("a"),
        Message::system("mind the gap"),
        Message::assistant("b"),
        message(json!({"role": "developer", "content":
            "x</system-note>y< / SYSTEM-NOTE >z<b></b></system", "name": "ops"})),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: "a"
          "<system-note>\nmind the gap\n</system-note>" *
    assistant: "b"
    user: "<system-note>\n[ops]: x&lt;/system-note>y&lt; / SYSTEM-NOTE >z<b></b></system\n</system-note>" *
    "#);
}

#[test]
fn results_come_first() {
    let messages = [
        Message::user("go"),
        Message::calls([call("a"), call("b")]),
        Message::tool_result("b", "B"),
        Message::tool_result("a", "A"),
        Message::system("note"),
        Message::user("and?"),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: "go" *
    assistant: read(a) {}
               read(b) {}
    user: tool_result(b) "B"
          tool_result(a) "A"
          "<system-note>\nnote\n</system-note>"
          "and?" *
    "#);
}

#[test]
fn ids_come_again() {
    let group = |text: &str| {
        [
            Message::calls([call("call_1"), call("call_1")]),
            Message::tool_result("call_1", format!("{text} first")),
            Message::tool_result("call_1", format!("{text} second")),
        ]
    };
    let mut messages = vec![Message::user("go")];
    messages.extend(group("old"));
    messages.extend(group("new"));
    assert_snapshot!(shown(&messages), @r#"
    user: "go"
    assistant: read(call_1) {}
               read(call_1_2) {}
    user: tool_result(call_1) "old first"
          tool_result(call_1_2) "old second" *
    assistant: read(call_1_3) {}
               read(call_1_4) {}
    user: tool_result(call_1_3) "new first"
          tool_result(call_1_4) "new second" *
    "#);
}

#[test]
fn ids_are_made_legal() {
    let messages = [
        Message::calls(["", "a.b", "a/b", "", "a_b_2", "ü"].map(call)),
        Message::tool_result("a/b", "a/b"),
        Message::tool_result("", "first"),
        Message::tool_result("a.b", "a.b"),
        Message::tool_result("ü", "ü"),
        Message::tool_result("somebody else's", "what is left"),
        Message::tool_result("a_b_2", "a_b_2"),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: "(The conversation so far begins with the assistant.)" *
    assistant: read(unnamed) {}
               read(a_b) {}
               read(a_b_2) {}
               read(unnamed_2) {}
               read(a_b_2_2) {}
               read(_) {}
    user: tool_result(a_b_2) "a/b"
          tool_result(unnamed) "first"
          tool_result(a_b) "a.b"
          tool_result(_) "ü"
          tool_result(unnamed_2) "what is left"
          tool_result(a_b_2_2) "a_b_2" *
    "#);
}

#[test]
fn arguments() {
    let args = ["", "{\"b\":1,\"a\":[2]}", "[1]", "{\"cut\":", "null", " "];
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(120), "]".repeat(120));
    let mut messages = vec![Message::calls(
        args.iter().map(|text| ToolCall::new("c", "f", *text)),
    )];
    messages.extend(args.map(|_| Message::tool_result("c", "")));
    assert_snapshot!(shown(&messages), @r#"
    user: "(The conversation so far begins with the assistant.)" *
    assistant: f(c) {}
               f(c_2) {"b":1,"a":[2]}
               f(c_3) {"_raw":"[1]"}
               f(c_4) {"_raw":"{\"cut\":"}
               f(c_5) {"_raw":"null"}
               f(c_6) {}
    user: tool_result(c)
          tool_result(c_2)
          tool_result(c_3)
          tool_result(c_4)
          tool_result(c_5)
          tool_result(c_6)
    "#);
    let deep = [
        Message::calls([ToolCall::new("c", "f", deep)]),
        Message::tool_result("c", ""),
    ];
    assert!(shown(&deep).contains("_raw"));
}

#[test]
fn thinking() {
    let messages = [
        Message::user("go"),
        assistant(&json!([
            {"type": "text", "text": "said"},
            {"type": "thinking", "thinking": "sealed", "signature": "s1"},
            {"type": "thinking", "thinking": "open"},
            {"type": "redacted_thinking", "data": "xyz"},
            {"type": "redacted_thinking"},
        ])),
        assistant(&json!([{"type": "thinking", "thinking": "alone", "signature": "s2"}])),
        message(json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "", "signature": "s3"},
        ], "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]})),
        Message::tool_result("a", "done"),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: "go" *
    assistant: thinking "sealed" "s1"
               redacted "xyz"
               "said"
               thinking "" "s3"
               f(a) {}
    user: tool_result(a) "done" *
    "#);
}

#[test]
fn images() {
    let image =
        |url: &str| json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}});
    let messages = [
        user(&json!([
            image("data:image/png;base64,iVBORw0KGgo="),
            image("data:image/JPG;charset=x;base64,/9j/\n4AAQ"),
            image("https://a.example/b.png"),
            image("data:image/svg+xml;base64,PHN2Zz4="),
            image("data:image/png,raw"),
            image("data:image/png;base64,"),
            image("file:///etc/passwd"),
            {"type": "image_url"},
        ])),
        assistant(&json!([image("https://a.example/b.png")])),
        Message::calls([call("a"), call("b")]),
        message(json!({"role": "tool", "tool_call_id": "a", "content": [
            {"type": "text", "text": "see"}, image("https://a.example/b.png")]})),
        message(json!({"role": "tool", "tool_call_id": "b", "content": [
            {"type": "text", "text": "see"}, image("ftp://a.example/b.png")]})),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: image {"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}
          image {"type":"base64","media_type":"image/jpeg","data":"/9j/4AAQ"}
          image {"type":"url","url":"https://a.example/b.png"}
          "[image left out: unsupported address]"
          "[image left out: unsupported address]"
          "[image left out: unsupported address]"
          "[image left out: unsupported address]"
          "[image left out: unsupported address]" *
    assistant: "[image left out: only a user turn can show one]"
               read(a) {}
               read(b) {}
    user: tool_result(a) ["see", image {"type":"url","url":"https://a.example/b.png"}]
          tool_result(b) "see\n[image left out: unsupported address]" *
    "#);
}

#[test]
fn files() {
    let file = |file: Value| json!({"type": "file", "file": file});
    let messages = [
        user(&json!([
            file(json!({"file_id": "file_1"})),
            file(json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="})),
            file(json!({"filename": "a.txt", "file_data": "data:text/plain;base64,aMOpIHlvdQ=="})),
            file(json!({"filename": "b.txt", "file_data": "data:text/plain;base64,/w=="})),
            file(json!({"filename": "a.zip", "file_data": "data:application/zip;base64,UEs="})),
            file(json!({})),
        ])),
        assistant(&json!([file(json!({"file_id": "file_1"}))])),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: document null {"type":"file","file_id":"file_1"}
          document "a.pdf" {"type":"base64","media_type":"application/pdf","data":"JVBERi0="}
          document "a.txt" {"type":"text","media_type":"text/plain","data":"hé you"}
          "[file left out: b.txt]"
          "[file left out: a.zip]"
          "[file left out: unnamed]" *
    assistant: "[file left out: file_1]"
    "#);
}

#[test]
fn unknown_parts() {
    let messages = [
        user(&json!([{"type": "input_audio", "data": "x"}, {"type": "note", "text": "hear"}])),
        assistant(&json!([{"type": "refusal", "refusal": "No."}, {"type": "note", "text": " "}])),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: "[part of type input_audio left out]"
          "hear" *
    assistant: "No."
    "#);
}

#[test]
fn names() {
    let named = |role: &str, name: &str, content: Value| {
        message(json!({"role": role, "name": name, "content": content}))
    };
    let messages = [
        named("system", "base", json!("Be kind.")),
        named("user", "ann", json!("hi")),
        named(
            "user",
            "x]: y\n[z",
            json!([{"type": "text", "text": "hi"}, {"type": "text", "text": "ho"}]),
        ),
        named(
            "user",
            "bob",
            json!([{"type": "image_url", "image_url": "https://a.example/b.png"}]),
        ),
        named("user", "silent", json!(" ")),
        named("user", " ", json!("nameless")),
        named("assistant", "planner", json!("ok")),
    ];
    assert_snapshot!(shown(&messages), @r#"
    system: "[base]: Be kind." *
    user: "[ann]: hi"
          "[x_:_y__z]: hi"
          "ho"
          "[bob]:"
          image {"type":"url","url":"https://a.example/b.png"}
          "nameless" *
    assistant: "[planner]: ok"
    "#);
}

#[test]
fn a_result_of_several_texts_is_one_text() {
    let texts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": " "}, {"type": "text", "text": "b"}]);
    let messages = [
        Message::calls([call("a")]),
        message(json!({"role": "tool", "tool_call_id": "a", "name": "read", "content": texts})),
    ];
    assert_snapshot!(shown(&messages), @r#"
    user: "(The conversation so far begins with the assistant.)" *
    assistant: read(a) {}
    user: tool_result(a) "a b" *
    "#);
}

/// The build pairs them; should it ever not, the body is valid all the same.
#[test]
fn unpaired() {
    let messages = [
        Message::tool_result("z", "early"),
        Message::calls([call("a"), call("b")]),
        Message::user("wait"),
        Message::tool_result("b", "B"),
        Message::tool_result("b", "B again"),
        Message::tool_result("b", "B once more"),
        Message::calls([call("c")]),
        Message::assistant("never mind"),
        Message::tool_result("c", "late"),
    ];
    assert_snapshot!(shape(&check_form(&[], &messages)), @r#"
    user: "[tool result without its call]"
          "early"
    assistant: read(a) {}
               read(b) {}
    user: tool_result(b) "B"
          tool_result(a) "B again"
          "wait"
          "[tool result without its call]"
          "B once more"
    assistant: read(c) {}
    user: tool_result(c)
    assistant: "never mind"
    user: "[tool result without its call]"
          "late" *
    "#);
}

/// A failure must say something, and in words alone.
#[test]
fn failures() {
    let picture = json!([{"type": "image_url", "image_url": {"url": "https://e.example/b.png"}}]);
    let results = [
        json!({"role": "tool", "tool_call_id": "a", "content": "no such file", "is_error": true}),
        json!({"role": "tool", "tool_call_id": "b", "content": " ", "isError": true}),
        json!({"role": "tool", "tool_call_id": "c", "content": picture, "isError": true}),
        json!({"role": "tool", "tool_call_id": "d", "content": "fine", "isError": false}),
    ];
    let mut messages = vec![
        Message::user("go"),
        Message::calls(["a", "b", "c", "d"].map(call)),
    ];
    messages.extend(results.into_iter().map(message));
    assert_snapshot!(shown(&messages), @r#"
    user: "go" *
    assistant: read(a) {}
               read(b) {}
               read(c) {}
               read(d) {}
    user: tool_result(a) failed "no such file"
          tool_result(b) failed "[the tool failed and gave nothing back]"
          tool_result(c) [image {"type":"url","url":"https://e.example/b.png"}]
          tool_result(d) "fine" *
    "#);
}
