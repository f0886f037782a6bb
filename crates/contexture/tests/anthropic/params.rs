//! The caller's parameters, and the request made again with them.

use contexture::build::{Session, Settings, Turn};
use contexture::entry::Payload;
use contexture::message::anthropic::{Head, write_body};
use contexture::replay::verify;
use contexture::{Entry, Message, Wire};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::anthropic::check::check_body;

fn head(params: &Value, tools: &[Value]) -> String {
    let head = Head {
        model: None,
        max_tokens: 4096,
        params: params.as_object(),
    };
    let mut bytes = Vec::new();
    write_body(&head, tools, &[&Message::user("hi")], &mut bytes);
    check_body(&bytes);
    let mut body: Value = serde_json::from_slice(&bytes).unwrap();
    let fields = body.as_object_mut().unwrap();
    fields.shift_remove("messages");
    fields.shift_remove("tools");
    body.to_string()
}

/// Those of the chat form go out under Anthropic's names, and what has no place does not.
#[test]
fn of_the_chat_form() {
    let params = json!({
        "temperature": 0.2, "top_p": 0.9, "seed": 1, "n": 2, "stop": "END", "max_completion_tokens": 9,
        "reasoning_effort": "low", "response_format": {"type": "json_object"}, "user": "u1",
        "stream": true, "stream_options": {"include_usage": true}, "tool_choice": "auto",
        "service_tier": "flex", "metadata": {"run": "7"}, "store": true, "unheard_of": 1,
    });
    assert_snapshot!(head(&params, &[]), @r#"{"max_tokens":9,"temperature":0.2,"top_p":0.9,"stream":true,"stop_sequences":["END"],"metadata":{"user_id":"u1"}}"#);
    assert_snapshot!(head(&json!({"temperature": 1.5, "max_tokens": 0, "stop": [" "], "top_p": null}), &[]), @r#"{"max_tokens":4096}"#);
}

#[test]
fn of_its_own() {
    let params = json!({
        "max_tokens": 20000, "max_completion_tokens": 9, "thinking": {"type": "enabled", "budget_tokens": 1024},
        "top_k": 5, "stop_sequences": ["a", "b"], "metadata": {"user_id": "u2"}, "user": "u1",
        "service_tier": "standard_only", "output_config": {"effort": "high"},
        "model": "another", "messages": [], "system": "mine",
    });
    assert_snapshot!(head(&params, &[]), @r#"{"max_tokens":20000,"thinking":{"type":"enabled","budget_tokens":1024},"top_k":5,"stop_sequences":["a","b"],"metadata":{"user_id":"u2"},"service_tier":"standard_only","output_config":{"effort":"high"}}"#);
}

#[test]
fn tool_choices() {
    let tools = [json!({"name": "fs.read"})];
    let choices = [
        json!("auto"),
        json!("none"),
        json!("required"),
        json!({"type": "auto", "disable_parallel_tool_use": true}),
        json!({"type": "function", "function": {"name": "fs.read"}}),
        json!({"type": "tool", "name": "fs.read", "disable_parallel_tool_use": true}),
        json!({"type": "tool", "name": "gone"}),
        json!({"type": "allowed_tools", "mode": "auto", "tools": []}),
        json!(1),
    ];
    let lines = choices.map(|choice| {
        let params = json!({"tool_choice": choice});
        format!("{choice} -> {}", head(&params, &tools))
    });
    assert_snapshot!(lines.join("\n"), @r#"
    "auto" -> {"max_tokens":4096,"tool_choice":{"type":"auto"}}
    "none" -> {"max_tokens":4096,"tool_choice":{"type":"none"}}
    "required" -> {"max_tokens":4096,"tool_choice":{"type":"any"}}
    {"type":"auto","disable_parallel_tool_use":true} -> {"max_tokens":4096,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}
    {"type":"function","function":{"name":"fs.read"}} -> {"max_tokens":4096,"tool_choice":{"type":"tool","name":"fs_read"}}
    {"type":"tool","name":"fs.read","disable_parallel_tool_use":true} -> {"max_tokens":4096,"tool_choice":{"type":"tool","name":"fs_read","disable_parallel_tool_use":true}}
    {"type":"tool","name":"gone"} -> {"max_tokens":4096}
    {"type":"allowed_tools","mode":"auto","tools":[]} -> {"max_tokens":4096}
    1 -> {"max_tokens":4096}
    "#);
}

/// The record holds what was given, and what it takes to make the request again.
#[test]
fn recorded_and_verified() {
    for params in [
        json!({}),
        json!({"temperature": 0, "seed": 1, "max_tokens": 77}),
    ] {
        let settings = Settings {
            wire: Wire::Anthropic,
            params: params.as_object().cloned().unwrap(),
            ..Settings::default()
        };
        let mut session = Session::new(settings).unwrap();
        let turn = Turn {
            messages: vec![Message::user("hi")],
            ..Turn::default()
        };
        let body: Value = serde_json::from_slice(session.build(turn).unwrap().body()).unwrap();
        assert_eq!(body.get("temperature"), params.get("temperature"));
        assert_eq!(body.get("seed"), None);
        assert_eq!(
            body["max_tokens"],
            *params.get("max_tokens").unwrap_or(&json!(4096))
        );
        let record = session.record();
        assert_eq!(
            record.max_tokens.map(Value::from).as_ref(),
            body.get("max_tokens")
        );
        let entry = Entry::derived(session.view().tail(), "", Payload::Request(record));
        session.append([entry]).unwrap();

        let log: Vec<Entry> = session
            .view()
            .log()
            .iter()
            .map(|e| Entry::clone(e))
            .collect();
        let mut steps = 0;
        verify(
            |_| Settings::default(),
            log,
            |step, _| {
                assert_eq!(step.recorded_digest, None);
                steps += 1;
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(steps, 1);
    }
}
