//! Tool specs and their names.

use contexture::message::anthropic::{size_bound, tool_names};
use contexture::{Message, ToolCall};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::anthropic::check;
use crate::anthropic::shape::shape;

fn specs(tools: &[Value]) -> String {
    let body: Value = serde_json::from_slice(&check(tools, &[])).unwrap();
    let lines = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn forms() {
    let tools = [
        json!({"type": "function", "function": {"name": "a", "description": "A.", "strict": true,
            "parameters": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}}}),
        json!({"name": "b", "description": " ", "input_schema": {"properties": {}}}),
        json!({"name": "c", "parameters": null, "cache_control": {"type": "ephemeral"}}),
        json!({"name": "d", "parameters": {"properties": {}, "type": ["object", "null"]}}),
        json!({"type": "custom", "custom": {"name": "e"}}),
        json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 2, "cache_control": {"type": "ephemeral"}}),
        json!("nonsense"),
    ];
    assert_snapshot!(specs(&tools), @r#"
    {"name":"a","description":"A.","input_schema":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}
    {"name":"b","input_schema":{"type":"object","properties":{}}}
    {"name":"c","input_schema":{"type":"object","properties":{}}}
    {"name":"d","input_schema":{"properties":{},"type":"object"}}
    {"name":"e","input_schema":{"type":"object","properties":{}}}
    {"type":"web_search_20250305","name":"web_search","max_uses":2,"cache_control":{"type":"ephemeral"}}
    "#);
}

#[test]
fn names() {
    let tools = [
        json!({"name": "fs.read"}),
        json!({"name": "fs/read"}),
        json!({"name": "bash"}),
        json!({"name": "fs.read"}),
        json!({"name": "x".repeat(200)}),
        json!({"name": "x".repeat(300)}),
        json!({}),
        json!({"type": "bash_20250124", "name": "bash"}),
    ];
    let names: Vec<_> = tool_names(&tools)
        .into_iter()
        .map(|(sent, own)| format!("{sent} = {own}").replace(&"x".repeat(100), "…"))
        .collect();
    assert_snapshot!(names.join("\n"), @r#"
    bash = bash
    fs_read = fs.read
    fs_read_2 = fs/read
    bash_2 = bash
    fs_read_3 = fs.read
    …xxxxxxxxxxxxxxxxxxxxxxxxxxxx = ……
    …xxxxxxxxxxxxxxxxxxxxxxxxxx_2 = ………
    unnamed =
    "#);

    let called = ["fs/read", "fs.read", "fs read", "bash", "fs read", ""];
    let calls = called.map(|name| ToolCall::new("c", name, ""));
    let mut messages = vec![Message::calls(calls)];
    messages.extend(called.map(|_| Message::tool_result("c", "")));
    assert_snapshot!(shape(&check(&tools, &messages)), @r#"
    user: "(The conversation so far begins with the assistant.)" *
    assistant: fs_read_2(c) {}
               fs_read(c_2) {}
               fs_read_4(c_3) {}
               bash_2(c_4) {}
               fs_read_4(c_5) {}
               unnamed(c_6) {}
    user: tool_result(c)
          tool_result(c_2)
          tool_result(c_3)
          tool_result(c_4)
          tool_result(c_5)
          tool_result(c_6)
    "#);
}

/// A call to the provider's own tool keeps its name.
#[test]
fn native_calls() {
    let tools = [json!({"type": "bash_20250124", "name": "bash"})];
    let messages = [
        Message::calls([ToolCall::new("a", "bash", "")]),
        Message::tool_result("a", "$"),
    ];
    assert_snapshot!(shape(&check(&tools, &messages)), @r#"
    user: "(The conversation so far begins with the assistant.)" *
    assistant: bash(a) {}
    user: tool_result(a) "$" *
    "#);
}

/// What the numbers add to ids and names is within the bound of the one message that has them all.
#[test]
fn numbers_are_bounded() {
    let calls = (0..2000).map(|at| ToolCall::new("c", ["a.b", "a/b"][at % 2], ""));
    let asking = Message::calls(calls);
    let mut messages = vec![asking.clone()];
    messages.extend((0..2000).map(|_| Message::tool_result("c", "")));
    let body: Value = serde_json::from_slice(&check(&[], &messages)).unwrap();
    assert!(body["messages"][1].to_string().len() < size_bound(&asking));
}
