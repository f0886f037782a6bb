//! Calls of a model that never learned to call: they are valid all the same.

use contexture_model::Stop;
use serde_json::{Value, json};

use crate::local::{ask, body, open};

fn tools() -> Value {
    let tool = |name: &str, description: &str, parameters: Value| {
        json!({"type": "function", "function": {
            "name": name, "description": description, "parameters": parameters}})
    };
    json!([
        tool(
            "read_file",
            "Reads a file.",
            json!({"type": "object",
            "properties": {"path": {"type": "string", "maxLength": 40}, "lines": {"type": "integer", "minimum": 1, "maximum": 99}},
            "required": ["path"], "additionalProperties": false})
        ),
        tool(
            "set_light",
            "Sets a lamp.",
            json!({"type": "object",
            "properties": {"room": {"enum": ["kitchen", "hall"]}, "on": {"type": "boolean"},
                "colour": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}, "minItems": 3, "maxItems": 3}},
            "required": ["room", "on", "colour"], "additionalProperties": false})
        ),
    ])
}

fn asking(choice: Value, text: &str) -> Value {
    let mut all = body(json!([{"role": "user", "content": text}]), 120);
    all["tools"] = tools();
    all["tool_choice"] = choice;
    all
}

// needs: model
#[test]
fn a_call_that_must_come_is_valid() {
    let Some(model) = open() else { return };
    for (choice, text) in [
        (json!("required"), "Please read the file notes.txt."),
        (
            json!({"type": "function", "function": {"name": "set_light"}}),
            "Switch on the kitchen light, red.",
        ),
        (
            json!({"type": "function", "function": {"name": "read_file"}}),
            "The weather is nice.",
        ),
    ] {
        let (reply, shown) = ask(&model, &asking(choice.clone(), text));
        let reply = reply.unwrap();
        assert_eq!(reply.stop, Stop::Tools, "{reply:?}");
        assert_eq!(shown, "", "a call is not shown as text");
        let [call] = reply.message.tool_calls.as_slice() else {
            panic!("{reply:?}")
        };
        if let Some(wish) = choice.pointer("/function/name") {
            assert_eq!(*wish, call.name);
        }
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        let specs = tools();
        let spec = specs
            .as_array()
            .unwrap()
            .iter()
            .find(|t| t["function"]["name"] == *call.name);
        let schema = &spec.unwrap()["function"]["parameters"];
        for (name, value) in arguments.as_object().unwrap() {
            assert!(schema["properties"].get(name).is_some(), "{name}: {value}");
        }
        for name in schema["required"].as_array().unwrap() {
            assert!(
                arguments.get(name.as_str().unwrap()).is_some(),
                "{name} in {arguments}"
            );
        }
    }
}

// needs: model
#[test]
fn a_conversation_with_a_call_goes_on_in_the_cache() {
    let Some(model) = open() else { return };
    let first = asking(json!("required"), "Please read the file notes.txt.");
    let (reply, _) = ask(&model, &first);
    let reply = reply.unwrap();
    let (before, _) = crate::local::read(&reply);
    let call = &reply.message.tool_calls[0];
    let mut next = first.clone();
    next["tool_choice"] = json!("none");
    next["messages"] = json!([
        first["messages"][0],
        serde_json::to_value(&reply.message).unwrap(),
        {"role": "tool", "tool_call_id": call.id, "content": "Buy milk."},
    ]);
    let (then, _) = ask(&model, &next);
    let (_, cached) = crate::local::read(&then.unwrap());
    assert!(
        cached > before,
        "{cached}: the call was there, of {before} before it"
    );
}

// needs: model
#[test]
fn an_answer_is_held_to_its_schema() {
    let Some(model) = open() else { return };
    let schema = json!({"type": "object", "properties": {
        "city": {"type": "string", "maxLength": 20}, "people": {"type": "integer", "maximum": 100_000_000},
        "old": {"type": "boolean"}}, "required": ["city", "people", "old"], "additionalProperties": false});
    let mut asked = body(json!([{"role": "user", "content": "Describe Paris."}]), 80);
    asked["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "city", "schema": schema}});
    let (reply, shown) = ask(&model, &asked);
    let reply = reply.unwrap();
    let value: Value = serde_json::from_str(&reply.message.text()).unwrap();
    assert!(
        value["city"].is_string() && value["people"].is_u64() && value["old"].is_boolean(),
        "{value}"
    );
    assert_eq!(
        (reply.stop, shown.as_str()),
        (Stop::End, &*reply.message.text())
    );
    // A number is whole at its first digit and goes on.
    asked["response_format"]["json_schema"]["schema"] =
        json!({"type": "integer", "minimum": 1000, "maximum": 9999});
    let (reply, _) = ask(&model, &asked);
    let text = reply.unwrap().message.text().into_owned();
    assert!((1000..10000).contains(&text.parse().unwrap()), "{text}");
    asked["response_format"]["json_schema"]["schema"] = json!({"enum": ["red", "redder"]});
    asked["stop"] = json!(["red"]);
    let (reply, _) = ask(&model, &asked);
    let reply = reply.unwrap();
    assert_eq!((&*reply.message.text(), reply.stop), ("\"", Stop::End));
    asked["stop"] = json!([]);
    asked["response_format"]["json_schema"]["schema"] = json!({"type": "nonsense"});
    let (refused, _) = ask(&model, &asked);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("schema"), "{refused}");
}
