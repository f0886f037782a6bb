//! What a tool's spec says, in whichever provider's form it is written.

use serde_json::{Map, Value, json};

use super::words::string;

/// Whether it is a tool that a provider defines, such as `web_search`.
pub(super) fn is_native(tool: &Map<String, Value>) -> bool {
    tool.get("type")
        .and_then(Value::as_str)
        .is_some_and(|tag| !matches!(tag, "function" | "custom"))
}

/// The object that describes the tool: an inner one in the chat form, the spec itself in others.
pub(super) fn function(tool: &Map<String, Value>) -> &Map<String, Value> {
    ["function", "custom"]
        .iter()
        .find_map(|key| tool.get(*key)?.as_object())
        .unwrap_or(tool)
}

pub(super) fn name(function: &Map<String, Value>) -> Option<&str> {
    function.get("name").and_then(Value::as_str)
}

/// What the tool is said to do, if it is said.
pub(super) fn description(function: &Map<String, Value>) -> Option<&str> {
    string(function, "description")
}

/// The schema of a tool's input, which has to be an object's.
pub(super) fn schema(function: &Map<String, Value>) -> Map<String, Value> {
    let given = ["parameters", "input_schema"]
        .iter()
        .find_map(|key| function.get(*key)?.as_object());
    let mut out = Map::from_iter([("type".to_owned(), json!("object"))]);
    match given {
        None => {
            out.insert("properties".into(), json!({}));
            out
        }
        Some(given) if given.contains_key("type") => {
            let mut given = given.clone();
            given.insert("type".into(), json!("object"));
            given
        }
        Some(given) => {
            out.extend(given.clone());
            out
        }
    }
}
