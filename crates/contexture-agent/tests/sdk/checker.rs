//! The checker itself: it takes what is right, and sees what is wrong.

use serde_json::{Value, json};

use crate::sdk::python::Python;

fn chat() -> Value {
    json!({
        "model": "m",
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look."}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{\"n\":1}"}},
            ]},
            {"role": "tool", "tool_call_id": "b", "content": "2"},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "description": "looks", "parameters": {"type": "object"}}}],
    })
}

fn responses() -> Value {
    json!({
        "model": "m",
        "store": false,
        "stream": true,
        "input": [
            {"type": "message", "role": "user", "content": "Look."},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "message", "role": "assistant", "content": "One."},
        ],
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": false}],
    })
}

fn anthropic() -> Value {
    json!({
        "model": "m",
        "max_tokens": 100,
        "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look."}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sealed"},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"n": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": true},
                {"type": "text", "text": "And?"},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "One."}]},
        ],
    })
}

/// A body with one thing changed.
fn broken(mut body: Value, place: &str, value: Value) -> Value {
    let (parent, key) = place.rsplit_once('/').unwrap();
    match body.pointer_mut(parent).unwrap() {
        Value::Object(map) if value.is_null() => drop(map.remove(key).unwrap()),
        Value::Object(map) => drop(map.insert(key.to_owned(), value)),
        Value::Array(list) if value.is_null() => drop(list.remove(key.parse().unwrap())),
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
        other => panic!("{place} of {other}"),
    }
    body
}

// needs: sdks
#[test]
fn it_takes_what_is_right_and_sees_what_is_wrong() {
    let Some(python) = Python::find() else { return };
    let right = [
        ("openai", chat()),
        ("responses", responses()),
        ("anthropic", anthropic()),
    ];
    python.accepts("right bodies", &right);

    // The place, what is put there (null: it is taken out), and what is to be said of it.
    #[rustfmt::skip]
    let chats = [
        ("/x", json!(1), "x: Extra inputs"),
        ("/model", json!(null), "model: Field required"),
        ("/temperature", json!("hot"), "temperature: Input should be a valid number"),
        ("/messages/1/pin", json!(true), "messages.1.pin: Extra inputs"),
        ("/messages/1/content/0/x", json!(1), "messages.1.content.0.x: Extra inputs"),
        ("/messages/2/tool_calls/0/function/x", json!(1), "function.x: Extra inputs"),
        ("/messages/4/is_error", json!(true), "messages.4.is_error: Extra inputs"),
        ("/messages/4", json!(null), "['a'] are never answered"),
        ("/messages/3", json!({"role": "user", "content": "so?"}), "before the answers to"),
        ("/messages/2", json!(null), "messages.2: answers no call"),
        ("/messages/2/tool_calls/1/id", json!("a"), "calls share an id"),
        ("/messages/2/tool_calls/0/function/name", json!("fs.look"), "a name that is refused"),
        ("/messages/2/tool_calls/0/function/arguments", json!("{"), "no JSON object"),
        ("/tools/0/function/name", json!("fs:look"), "a name that is refused"),
        ("/stream", json!(null), "stream_options: without a stream"),
    ];
    #[rustfmt::skip]
    let answers = [
        ("/messages", json!([]), "messages: Extra inputs"),
        ("/input/0/name", json!("n"), "input.0.name: Extra inputs"),
        ("/input/2/x", json!(1), "input.2.x: Extra inputs"),
        ("/input/3", json!(null), "['a'] are never answered"),
        ("/input/2", json!({"type": "message", "role": "assistant", "content": "x"}), "input.3: answers no call"),
        ("/input/3/call_id", json!("b"), "input.3: answers no call"),
        ("/tools/0/strict", json!(null), "strict: Field required"),
        ("/tools", json!([]), "tools: 0 of them"),
    ];
    #[rustfmt::skip]
    let blocks = [
        ("/max_tokens", json!(null), "max_tokens: Field required"),
        ("/messages/0/content/0/x", json!(1), "messages.0.content.0.x: Extra inputs"),
        ("/messages/0", json!(null), "messages.0: not the user's"),
        ("/messages/0/content/0/text", json!(" \n"), "a blank text"),
        ("/messages/1/content/0/signature", json!(null), "signature: Field required"),
        ("/messages/1/content/0/signature", json!(""), "without its signature"),
        ("/messages/1/content/1", json!(null), "it ends with a thought"),
        ("/messages/2/content/0", json!(null), "asked were ['a']"),
        ("/messages/2/content/0/tool_use_id", json!("b"), "asked were ['a']"),
        ("/messages/2/content", json!([{"type": "text", "text": "And?"}, {"type": "tool_result", "tool_use_id": "a"}]), "not among the first"),
        ("/messages/3/content/0/text", json!("One. "), "end with white space"),
    ];
    let cases = [
        ("openai", chat(), chats.to_vec()),
        ("responses", responses(), answers.to_vec()),
        ("anthropic", anthropic(), blocks.to_vec()),
    ];
    let cases: Vec<_> = cases
        .into_iter()
        .flat_map(|(wire, body, cases)| {
            cases.into_iter().map(move |(place, value, said)| {
                ((wire, broken(body.clone(), place, value)), (place, said))
            })
        })
        .collect();
    let (bodies, wanted): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    for ((wire, _), ((place, said), errors)) in
        std::iter::zip(&bodies, std::iter::zip(wanted, python.check(&bodies)))
    {
        assert!(
            errors.iter().any(|error| error.contains(said)),
            "{wire} with {place} broken: `{said}` is not in {errors:?}"
        );
    }
}
