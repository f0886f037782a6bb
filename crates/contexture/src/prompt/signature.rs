use serde_json::{Map, Value};

/// The most values of an enumeration that are named.
const NAMED: usize = 8;

/// A tool and its arguments as a person would write them: `read(path: string, from?: integer)`.
///
/// The parameters are a JSON Schema. What it says beyond types and alternatives is not here.
pub fn signature(name: &str, parameters: &Value) -> String {
    let arguments: Vec<String> = arguments(parameters)
        .map(|argument| {
            let mark = if argument.required { "" } else { "?" };
            format!("{}{mark}: {}", argument.name, kind(argument.schema))
        })
        .collect();
    format!("{name}({})", arguments.join(", "))
}

/// An argument of a tool.
pub(crate) struct Argument<'a> {
    pub name: &'a str,
    pub schema: &'a Value,
    pub required: bool,
}

/// The arguments that a JSON Schema names, in its order.
pub(crate) fn arguments(parameters: &Value) -> impl Iterator<Item = Argument<'_>> {
    let required = parameters.get("required").and_then(Value::as_array);
    let properties = parameters.get("properties").and_then(Value::as_object);
    let all = properties.into_iter().flat_map(Map::iter);
    all.map(move |(name, schema)| Argument {
        name,
        schema,
        required: required.is_some_and(|names| names.iter().any(|wanted| wanted == name)),
    })
}

/// What a schema wants, in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().take(NAMED).map(Value::to_string).collect();
        return values.join("|");
    }
    match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join("|")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_becomes_a_line() {
        let parameters = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "from": {"type": ["integer", "null"]},
            "how": {"enum": ["fast", "well"]}, "what": {}}});
        let line = signature("read", &parameters);
        insta::assert_snapshot!(line, @r#"read(path: string, from?: integer|null, how?: "fast"|"well", what?: any)"#);
        assert_eq!(signature("now", &Value::Null), "now()");
    }
}
