#![allow(clippy::unwrap_used)]
use super::*;
use serde_json::json;

/// Sets the member at `pointer` of a complete example, and reads it.
#[track_caller]
fn check(pointer: &str, new: Value, error: &str, hint: &str) {
    let mut example = example();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match example.pointer_mut(parent).unwrap() {
        Value::Object(map) if new == "(none)" => drop(map.shift_remove(key)),
        Value::Object(map) => drop(map.insert(key.into(), new)),
        other => other[key.parse::<usize>().unwrap()] = new,
    }
    let found = ComposeOptions::from_value(example).unwrap_err();
    assert_eq!(found.to_string(), error);
    assert!(found.hint().contains(hint), "{}", found.hint());
}

fn example() -> Value {
    json!({
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
        "mode": "run",
        "agent": {"id": "a", "name": "Ada", "role": "analyst", "principles": ["p"]},
        "toolPolicy": {"allowedTools": ["read"], "deniedTools": []},
        "runContext": {
            "packageName": "p",
            "workflowName": "w",
            "currentStep": {"id": "1", "name": "s", "instruction": "do"},
            "state": {"variables": {"x": 1}, "stepsCompleted": ["0"], "artifacts": ["f"]},
            "graph": {"outgoingEdges": [{"label": "l", "targetNodeId": "2", "isDefault": true}]},
        },
        "settings": {"includeSystemPrompt": false, "maxMessages": 5},
    })
}

#[test]
fn errors_name_their_place() {
    check(
        "/messages/1",
        json!({"role": "robot"}),
        "messages[1].role: unknown role `robot`",
        "assistant",
    );
    check(
        "/messages/0",
        json!(3),
        "messages[0]: must be an object, is a number",
        "",
    );
    check(
        "/messages",
        json!("(none)"),
        "messages: is missing",
        "`messages`",
    );
    check(
        "/messages",
        json!({}),
        "messages: must be an array, is an object",
        "",
    );
    check("/mode", json!("runs"), "mode: unknown mode `runs`", "run");
    check(
        "/agent/name",
        json!("(none)"),
        "agent.name: is missing",
        "`name`",
    );
    check(
        "/agent/name",
        json!(7),
        "agent.name: must be a string, is 7",
        "",
    );
    check(
        "/agent/principles",
        json!([1]),
        "agent.principles[0]: must be a string, is 1",
        "",
    );
    check(
        "/agent/principles",
        json!(1),
        "agent.principles: must be a string or an array of strings, is 1",
        "",
    );
    check(
        "/agent/system_prompt",
        json!("x"),
        "agent.system_prompt: is no known key",
        "`systemPrompt`",
    );
    check(
        "/tool_policy",
        json!({}),
        "tool_policy: is no known key",
        "`toolPolicy`",
    );
    check(
        "/toolPolicy/allowTools",
        json!([]),
        "toolPolicy.allowTools: is no known key",
        "`allowedTools`",
    );
    check(
        "/toolPolicy/allowedTools",
        json!("read"),
        "toolPolicy.allowedTools: must be an array, is a string",
        "brackets",
    );
    check(
        "/runContext/graph/outgoingEdges/0",
        json!({"label": "l"}),
        "runContext.graph.outgoingEdges[0].targetNodeId: is missing",
        "",
    );
    check(
        "/settings/maxMessages",
        json!(-1),
        "settings.maxMessages: must be a whole number of 0 or more, is -1",
        "",
    );
    check(
        "/settings/maxMessages",
        json!(1.5),
        "settings.maxMessages: must be a whole number of 0 or more, is 1.5",
        "",
    );
    check(
        "/settings/includeSystemPrompt",
        json!("true"),
        "settings.includeSystemPrompt: must be true or false, is a string",
        "quotation",
    );
}

#[test]
fn the_options_are_an_object() {
    let error = ComposeOptions::from_value(json!([])).unwrap_err();
    assert_eq!(error.to_string(), "options: must be an object, is an array");
}

#[test]
fn a_full_example_survives_the_round_trip() {
    let options = ComposeOptions::from_value(example()).unwrap();
    assert_eq!(serde_json::to_value(&options).unwrap(), example());
    let again: ComposeOptions = serde_json::from_value(example()).unwrap();
    assert_eq!(again, options);
}

#[test]
fn what_is_absent_has_its_default() {
    let options = json!({"messages": [], "mode": "chat", "agent": null});
    let options = ComposeOptions::from_value(options).unwrap();
    assert_eq!(options.settings, Settings::default());
    assert_eq!(
        (options.agent, options.tool_policy, options.run_context),
        (None, None, None)
    );
    assert!(options.settings.include_system_prompt);
}

#[test]
fn absent_and_empty_lists_differ() {
    let policy = ToolPolicy::from_value(json!({"allowedTools": []})).unwrap();
    assert_eq!(policy.allowed_tools, Some(vec![]));
    assert_eq!(policy.allowed_categories, None);
}

#[test]
fn principles_may_be_a_string() {
    let read = |value: Value| principles(value).unwrap();
    assert_eq!(read(json!("Be brief.")), ["Be brief."]);
    assert_eq!(read(json!("- a\n\n  * b\nc - d\n")), ["a", "b", "c - d"]);
    assert_eq!(read(json!(["- a\nb"])), ["- a\nb"]);
    assert!(read(json!("")).is_empty());
}
