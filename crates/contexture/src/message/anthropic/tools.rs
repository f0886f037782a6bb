use serde_json::{Map, Value};

use super::block::Marked;
use crate::message::names::ToolNames;
use crate::message::tool_spec::{description, function, is_native, name, schema};

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
                custom(tool, names)
            }
        })
        .map(Marked::from)
        .collect()
}

fn native(tool: &Map<String, Value>) -> Map<String, Value> {
    let mut tool = tool.clone();
    // There are only so many marks, and where they go is decided for the body as a whole.
    tool.shift_remove("cache_control");
    tool
}

fn custom(tool: &Map<String, Value>, names: &mut ToolNames) -> Map<String, Value> {
    let inner = function(tool);
    let own = name(inner).unwrap_or_default();
    let mut out = Map::new();
    out.insert("name".into(), names.declare(own).into());
    if let Some(text) = description(inner) {
        out.insert("description".into(), text.into());
    }
    out.insert("input_schema".into(), schema(inner).into());
    out
}
