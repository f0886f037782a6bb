use serde_json::{Map, Value, json};

use crate::message::names::ToolNames;
use crate::message::tool_spec::{description, function, is_native, name, schema};

/// The tools as they are sent. What is no object is left out: it names nothing to call.
pub(super) fn specs(tools: &[Value], names: &mut ToolNames) -> Vec<Map<String, Value>> {
    let tools = || tools.iter().filter_map(Value::as_object);
    // The provider's own tools keep their names, so others of the same name have to give way.
    for name in tools().filter(|tool| is_native(tool)).filter_map(name) {
        names.fix(name);
    }
    tools()
        .map(|tool| {
            if is_native(tool) {
                tool.clone()
            } else {
                flat(tool, names)
            }
        })
        .collect()
}

fn flat(tool: &Map<String, Value>, names: &mut ToolNames) -> Map<String, Value> {
    let inner = function(tool);
    let name = names.declare(name(inner).unwrap_or_default());
    // Anthropic calls every tool of the caller's custom, and gives it a schema.
    let plain =
        tool.get("type").is_some_and(|tag| tag == "custom") && !inner.contains_key("input_schema");
    let mut out = Map::new();
    let kind = if plain { "custom" } else { "function" };
    out.insert("type".into(), kind.into());
    out.insert("name".into(), name.into());
    if let Some(text) = description(inner) {
        out.insert("description".into(), text.into());
    }
    if plain {
        if let Some(Value::Object(format)) = inner.get("format") {
            out.insert("format".into(), grammar(format).into());
        }
        return out;
    }
    let mut schema = schema(inner);
    // An object without properties has to say so.
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".into(), json!({}));
    }
    out.insert("parameters".into(), schema.into());
    // What the chat form takes for no is yes here.
    let strict = inner.get("strict").and_then(Value::as_bool);
    out.insert("strict".into(), strict.unwrap_or_default().into());
    out
}

/// The chat form keeps a grammar one level deeper.
fn grammar(format: &Map<String, Value>) -> Map<String, Value> {
    let mut format = format.clone();
    if let Some(Value::Object(grammar)) = format.shift_remove("grammar") {
        format.extend(grammar);
    }
    format
}
