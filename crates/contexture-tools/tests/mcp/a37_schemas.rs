//! Attack 37: a schema with a remote reference, a cycle or a catastrophic pattern: no fetch, bounded time.

use std::time::{Duration, Instant};

use contexture_tools::mcp::Notice;
use contexture_tools::schema::{Schema, SchemaError};
use serde_json::{Map, Value, json};

use crate::mcp::common::*;

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

/// Compiles and checks, in bounded time.
#[track_caller]
fn check(schema: &Value, arguments: &Value) -> Result<(), String> {
    let begun = Instant::now();
    let schema = Schema::compile(schema).map_err(|error| error.to_string());
    let checked = schema.and_then(|schema| schema.check(&object(arguments.clone())));
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    checked
}

#[test]
fn nothing_is_fetched() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}/s.json", listener.local_addr().unwrap());
    for schema in [
        json!({ "type": "object", "$ref": address }),
        json!({ "type": "object", "properties": { "a": { "items": { "$ref": address } } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "file:///etc/passwd" } } }),
        json!({ "type": "object", "properties": { "a": { "$dynamicRef": address } } }),
        json!({ "type": "object", "properties": { "a": { "$id": address, "$ref": "#/x" } } }),
    ] {
        let error = Schema::compile(&schema).unwrap_err();
        assert!(
            matches!(error, SchemaError::Outside { .. }),
            "{schema}: {error}"
        );
    }
    // Where nothing is applied nothing refuses it, and nothing is fetched either.
    let _ = Schema::compile(&json!({ "type": "object", "$defs": { "a": { "$ref": address } } }));
    let _ = Schema::compile(&json!({ "type": "object", "$schema": address }));
    assert!(listener.accept().is_err(), "somebody called");
}

#[test]
fn cycles_end() {
    for schema in [
        json!({ "type": "object", "$ref": "#" }),
        json!({ "type": "object", "allOf": [{ "$ref": "#" }] }),
        json!({ "type": "object", "$ref": "#/$defs/a", "$defs": {
            "a": { "$ref": "#/$defs/b" }, "b": { "not": { "$ref": "#/$defs/a" } } } }),
        json!({ "type": "object", "properties": { "x": { "anyOf": [{ "$ref": "#/properties/x" }] } } }),
    ] {
        let error = Schema::compile(&schema).unwrap_err();
        assert!(
            matches!(error, SchemaError::Cycle { .. }),
            "{schema}: {error}"
        );
    }
    // A tree is no cycle.
    let tree = json!({ "type": "object", "properties": {
        "value": { "type": "integer" }, "next": { "$ref": "#" } } });
    assert_eq!(
        check(&tree, &json!({ "next": { "next": { "value": 1 } } })),
        Ok(())
    );
    let wrong = check(&tree, &json!({ "next": { "next": { "value": "x" } } })).unwrap_err();
    assert!(
        wrong.contains("/next/next/value") && wrong.contains("integer"),
        "{wrong}"
    );
}

#[test]
fn patterns_take_linear_time() {
    let schema = json!({ "type": "object", "properties": { "a": { "pattern": "^(a+)+$" } } });
    let long = format!("{}!", "a".repeat(100_000));
    assert!(check(&schema, &json!({ "a": long })).is_err());
    let back = json!({ "type": "object", "properties": { "a": { "pattern": "^(a+)\\1$" } } });
    assert!(
        Schema::compile(&back).is_err(),
        "no engine in linear time can do this"
    );
    let big = json!({ "type": "object", "properties": { "a": { "pattern": "(a{1000}){1000}" } } });
    assert!(Schema::compile(&big).is_err());
}

#[test]
fn work_that_doubles_with_every_line_is_refused() {
    let mut defs = Map::new();
    for n in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        defs.insert(format!("d{n}"), json!({ "allOf": [next, next] }));
    }
    defs.insert("d40".to_owned(), json!({ "type": "object" }));
    let schema = json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": defs });
    assert!(check(&schema, &json!({ "a": 1 })).is_err());

    let schema = json!({ "type": "object", "anyOf": [
        { "properties": { "a": { "$ref": "#" } }, "required": ["x"] },
        { "properties": { "a": { "$ref": "#" } }, "required": ["y"] } ] });
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({ "a": deep });
    }
    assert!(check(&schema, &deep).is_err());
}

#[test]
fn size_and_depth_are_bounded() {
    let long = json!({ "type": "object", "description": "x".repeat(200_000) });
    assert!(matches!(
        Schema::compile(&long),
        Err(SchemaError::TooLong { .. })
    ));
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({ "properties": { "a": deep } });
    }
    deep["type"] = json!("object");
    assert!(matches!(
        Schema::compile(&deep),
        Err(SchemaError::TooDeep { .. })
    ));
    let mut chain = Map::new();
    for n in 0..1_000 {
        chain.insert(
            format!("d{n}"),
            json!({ "$ref": format!("#/$defs/d{}", n + 1) }),
        );
    }
    chain.insert("d1000".to_owned(), json!({}));
    let chain = json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": chain });
    assert!(matches!(
        Schema::compile(&chain),
        Err(SchemaError::TooDeep { .. })
    ));
    assert!(matches!(
        Schema::compile(&json!({ "type": "string" })),
        Err(SchemaError::NotAnObject)
    ));
    assert!(Schema::compile(&json!({ "type": "object", "properties": 5 })).is_err());
}

#[test]
fn a_fault_names_its_place_and_never_the_value() {
    let schema = json!({ "type": "object", "required": ["path"], "additionalProperties": false,
        "properties": { "path": { "type": "string" }, "n": { "type": "integer", "minimum": 1 } } });
    assert_eq!(check(&schema, &json!({ "path": "x", "n": 1 })), Ok(()));
    let told = check(&schema, &json!({ "n": "sk-secret" })).unwrap_err();
    assert!(
        told.contains("/n: ") && told.contains("integer") && told.contains("path"),
        "{told}"
    );
    assert!(!told.contains("sk-secret"), "{told}");
    let told = check(&schema, &json!({ "path": "x", "pth": 1 })).unwrap_err();
    assert!(told.contains("pth"), "{told}");
}

#[tokio::test]
async fn a_tool_with_a_hostile_schema_can_be_called_unchecked_and_is_named() {
    let (servers, _root) = ready("schemas").await;
    let unchecked: Vec<String> = servers
        .take_notices()
        .into_iter()
        .map(|notice| match notice {
            Notice::Unchecked { tool, .. } => tool,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(unchecked, ["h:far", "h:loop"]);
    assert_eq!(
        tool(&servers, "h:far").spec().parameters,
        Schema::permissive()
    );
    assert!(!call(&servers, "h:far", json!({ "any": 1 })).await.failed);
    assert!(!call(&servers, "h:good", json!({ "n": 1 })).await.failed);
    let refused = call(&servers, "h:good", json!({ "n": "1" })).await;
    assert!(
        refused.failed && text(&refused).contains("/n"),
        "{refused:?}"
    );
}
