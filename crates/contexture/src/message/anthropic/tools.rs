use serde_json::{Map, Value, json};

use super::block::{Marked, is_blank};
use super::names::ToolNames;

/// The tools as they are sent. What is no object is left out: it names nothing to call.
pub(super) fn specs(tools: &[Value], names: &mut ToolNames) -> Vec<Marked<Map<String, Value>>> {
    let tools = || tools.iter().filter_map(Value::as_object);
    // The provider's own tools keep their names, so others of the same name have to give way.
    for name in tools().filter(|tool| is_native(tool)).filter_map(name) {
        names.fix(name);
    }
    tools()
        .map(|tool| {
            if is_native(tool) {
                native(tool)
            } else {
                function(tool, names)
            }
        })
        .map(Marked::from)
        .collect()
}

/// Whether it is a tool that the provider defines, such as `web_search_20250305`.
fn is_native(tool: &Map<String, Value>) -> bool {
    tool.get("type")
        .and_then(Value::as_str)
        .is_some_and(|tag| !matches!(tag, "function" | "custom"))
}

fn native(tool: &Map<String, Value>) -> Map<String, Value> {
    let mut tool = tool.clone();
    // There are only so many marks, and where they go is decided for the body as a whole.
    tool.shift_remove("cache_control");
    tool
}

fn function(tool: &Map<String, Value>, names: &mut ToolNames) -> Map<String, Value> {
    let inner = ["function", "custom"]
        .iter()
        .find_map(|key| tool.get(*key)?.as_object())
        .unwrap_or(tool);
    let own = name(inner).unwrap_or_default();
    let mut out = Map::new();
    out.insert("name".into(), names.declare(own).into());
    if let Some(Value::String(text)) = inner.get("description")
        && !is_blank(text)
    {
        out.insert("description".into(), text.as_str().into());
    }
    let schema = ["parameters", "input_schema"]
        .iter()
        .find_map(|key| inner.get(*key)?.as_object());
    out.insert("input_schema".into(), self::schema(schema).into());
    out
}

fn name(tool: &Map<String, Value>) -> Option<&str> {
    tool.get("name").and_then(Value::as_str)
}

/// The schema of a tool's input, which has to be an object's.
fn schema(given: Option<&Map<String, Value>>) -> Map<String, Value> {
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
