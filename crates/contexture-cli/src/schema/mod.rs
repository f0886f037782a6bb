//! JSON Schemas of what commands read and print: a file for each, and one with what they share.
//!
//! They are strict (`additionalProperties: false`) wherever the fields are ours, so that the test which holds them against
//! real output fails for a field that nobody described.

use contexture::{ContextError, json};
use serde_json::{Map, Value, json};

use crate::args::SchemaName;
use crate::config;

/// The definitions that several schemas refer to as `#/$defs/NAME`.
const SHARED: &str = include_str!("shared.json");

/// The schema of this name, with the definitions that it refers to.
pub fn document(name: SchemaName) -> Result<Value, ContextError> {
    let text = match name {
        SchemaName::Config => return Ok(config::schema()),
        // An inspected request is a build's result.
        SchemaName::Build | SchemaName::Inspect => include_str!("build.json"),
        SchemaName::Update => include_str!("update.json"),
        SchemaName::Replay => include_str!("replay.json"),
        SchemaName::Diff => include_str!("diff.json"),
        SchemaName::Compose => include_str!("compose.json"),
        SchemaName::Inject => include_str!("inject.json"),
        SchemaName::Pool => include_str!("pool.json"),
    };
    let own = json::parse(text.as_bytes(), 1)?;
    let shared = json::parse(SHARED.as_bytes(), 1)?;
    let mut needed = Map::new();
    collect(&own, &shared, &mut needed);
    let mut whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name.title(),
        "description": name.about(),
    });
    if let (Some(whole), Value::Object(own)) = (whole.as_object_mut(), own) {
        whole.extend(own);
    }
    if !needed.is_empty() {
        needed.sort_keys();
        whole["$defs"] = Value::Object(needed);
    }
    Ok(whole)
}

/// Takes what a schema refers to, and what that refers to.
fn collect(schema: &Value, shared: &Value, needed: &mut Map<String, Value>) {
    match schema {
        Value::Object(map) => {
            let name = map.get("$ref").and_then(Value::as_str);
            if let Some(name) = name.and_then(|name| name.strip_prefix("#/$defs/"))
                && !needed.contains_key(name)
            {
                needed.insert(name.to_owned(), shared[name].clone());
                collect(&shared[name], shared, needed);
            }
            map.values()
                .for_each(|inner| collect(inner, shared, needed));
        }
        Value::Array(list) => list.iter().for_each(|inner| collect(inner, shared, needed)),
        _ => {}
    }
}
