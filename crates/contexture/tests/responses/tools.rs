//! Tool specs, their names, and the parameters.

use contexture::message::responses::{Head, size_bound, tool_names, write_body};
use contexture::{Message, ToolCall};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::responses::check;
use crate::responses::check::check_body;
use crate::responses::shape::shape;

#[test]
fn forms() {
    let tools = [
        json!({"type": "function", "function": {"name": "a", "description": "A.", "strict": true,
            "parameters": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}}}),
        json!({"name": "b", "description": " ", "input_schema": {"required": []}}),
        json!({"type": "function", "name": "c", "parameters": null}),
        json!({"type": "custom", "custom": {"name": "d", "description": "D.",
            "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: \"x\""}}}}),
        json!({"type": "custom", "name": "e", "input_schema": {"type": "object"}}),
        json!({"type": "web_search", "filters": {}}),
        json!("nonsense"),
    ];
    let body: Value = serde_json::from_slice(&check(&tools, &[])).unwrap();
    let tools = body["tools"].as_array().unwrap().iter();
    let lines: Vec<_> = tools.map(Value::to_string).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    {"type":"function","name":"a","description":"A.","parameters":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]},"strict":true}
    {"type":"function","name":"b","parameters":{"type":"object","required":[],"properties":{}},"strict":false}
    {"type":"function","name":"c","parameters":{"type":"object","properties":{}},"strict":false}
    {"type":"custom","name":"d","description":"D.","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}}
    {"type":"function","name":"e","parameters":{"type":"object","properties":{}},"strict":false}
    {"type":"web_search","filters":{}}
    "#);
}

#[test]
fn names() {
    let tools = [
        json!({"name": "fs.read"}),
        json!({"name": "fs/read"}),
        json!({"name": "x".repeat(70)}),
        json!({"name": "x".repeat(80)}),
        json!({}),
    ];
    let names: Vec<_> = tool_names(&tools)
        .into_iter()
        .map(|(sent, own)| format!("{sent} = {own}").replace(&"x".repeat(60), "…"))
        .collect();
    assert_snapshot!(names.join("\n"), @r#"
    fs_read = fs.read
    fs_read_2 = fs/read
    …xxxx = …xxxxxxxxxx
    …xx_2 = …xxxxxxxxxxxxxxxxxxxx
    unnamed =
    "#);

    let called = ["fs/read", "fs.read", "fs read", "fs read", ""];
    let calls = called.map(|name| ToolCall::new("c", name, ""));
    let mut messages = vec![Message::calls(calls)];
    messages.extend(called.map(|_| Message::tool_result("c", "")));
    assert_snapshot!(shape(&check(&tools, &messages)), @r#"
    fs_read_2(c) {}
    fs_read(c_2) {}
    fs_read(c_3) {}
    fs_read(c_4) {}
    unnamed(c_5) {}
    function_call_output(c) ""
    function_call_output(c_2) ""
    function_call_output(c_3) ""
    function_call_output(c_4) ""
    function_call_output(c_5) ""
    "#);
}

/// What the numbers add to ids is within the bound of the one message that has them all.
#[test]
fn numbers_are_bounded() {
    let calls = (0..2000).map(|at| ToolCall::new("c", ["a.b", "a/b"][at % 2], ""));
    let asking = Message::calls(calls);
    let mut messages = vec![asking.clone()];
    messages.extend((0..2000).map(|_| Message::tool_result("c", "")));
    let body: Value = serde_json::from_slice(&check(&[], &messages)).unwrap();
    let items = body["input"].as_array().unwrap().iter().take(2000);
    let sent: usize = items.map(|item| item.to_string().len()).sum();
    assert!(sent < size_bound(&asking));
}

fn head(params: &Value, tools: &[Value]) -> String {
    let head = Head {
        model: None,
        params: params.as_object(),
    };
    let mut bytes = Vec::new();
    write_body(&head, tools, &[&Message::user("hi")], &mut bytes);
    check_body(&bytes);
    let mut body: Value = serde_json::from_slice(&bytes).unwrap();
    let fields = body.as_object_mut().unwrap();
    fields.shift_remove("input");
    fields.shift_remove("tools");
    body.to_string()
}

/// Those of the chat form go out under their own names, and what has no place does not.
#[test]
fn params() {
    let params = json!({
        "temperature": 0.2, "seed": 1, "n": 2, "stop": ["x"], "max_completion_tokens": 9, "max_tokens": 8,
        "reasoning_effort": "low", "verbosity": "low", "top_k": 3, "thinking": {"type": "enabled"},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": true}},
        "stream": true, "stream_options": {"include_usage": true}, "tool_choice": "required",
        "parallel_tool_calls": false, "metadata": null, "unheard_of": 1,
    });
    assert_snapshot!(head(&params, &[]), @r#"{"temperature":0.2,"stream":true,"max_output_tokens":9,"reasoning":{"effort":"low"},"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{},"strict":true}},"store":false,"include":["reasoning.encrypted_content"]}"#);
    let own = json!({
        "max_output_tokens": 5, "max_tokens": 8, "text": {"verbosity": "high"}, "verbosity": "low",
        "response_format": {"type": "json_object"}, "reasoning": {"summary": "auto"}, "store": true,
        "include": [], "truncation": "auto", "top_p": 1,
    });
    assert_snapshot!(head(&own, &[]), @r#"{"max_output_tokens":5,"text":{"verbosity":"high","format":{"type":"json_object"}},"reasoning":{"summary":"auto"},"store":true,"include":[],"truncation":"auto","top_p":1}"#);
}

#[test]
fn tool_choices() {
    let tools = [json!({"name": "fs.read"})];
    let choices = [
        json!("auto"),
        json!("none"),
        json!({"type": "any"}),
        json!({"type": "auto", "disable_parallel_tool_use": true}),
        json!({"type": "function", "function": {"name": "fs.read"}}),
        json!({"type": "tool", "name": "fs.read"}),
        json!({"type": "function", "name": "gone"}),
        json!({"type": "web_search"}),
        json!("whatever"),
    ];
    let lines = choices.map(|choice| {
        let params = json!({"tool_choice": choice});
        format!("{choice} -> {}", head(&params, &tools))
    });
    assert_snapshot!(lines.join("\n"), @r#"
    "auto" -> {"tool_choice":"auto","store":false}
    "none" -> {"tool_choice":"none","store":false}
    {"type":"any"} -> {"tool_choice":"required","store":false}
    {"type":"auto","disable_parallel_tool_use":true} -> {"tool_choice":"auto","store":false}
    {"type":"function","function":{"name":"fs.read"}} -> {"tool_choice":{"type":"function","name":"fs_read"},"store":false}
    {"type":"tool","name":"fs.read"} -> {"tool_choice":{"type":"function","name":"fs_read"},"store":false}
    {"type":"function","name":"gone"} -> {"store":false}
    {"type":"web_search"} -> {"tool_choice":{"type":"web_search"},"store":false}
    "whatever" -> {"store":false}
    "#);
}
