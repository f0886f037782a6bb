use contexture_fleet::{Method, Who};
use serde_json::{Map, Value, json};

/// The description of everything that can be asked over HTTP, as OpenAPI 3.1. Methods have no paths of
/// their own: each is one of the bodies that `/rpc` takes.
pub fn openapi(methods: &[Method]) -> Value {
    let mut schemas = Map::new();
    for method in methods {
        schemas.insert(format!("{}.request", method.name), request(method));
        schemas.insert(format!("{}.result", method.name), method.result.clone());
    }
    let requests: Vec<Value> = methods
        .iter()
        .map(|method| refer(&format!("{}.request", method.name)))
        .collect();
    // A choice among none would be no schema.
    let request = match requests.is_empty() {
        true => json!({"type": "object"}),
        false => json!({"oneOf": requests}),
    };
    schemas.insert("Request".to_owned(), request);
    schemas.insert("Response".to_owned(), response());
    schemas.insert("Error".to_owned(), error());
    schemas.insert("Refusal".to_owned(), refusal());
    let either = |what: &str| {
        let many = json!({"type": "array", "items": refer(what), "minItems": 1, "maxItems": 64});
        json!({"oneOf": [refer(what), many]})
    };
    let refused = |about: &str| {
        let content = json!({"application/json": {"schema": refer("Refusal")}});
        json!({"description": about, "content": content})
    };
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Contexture",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A fleet of agents: JSON-RPC 2.0 at /rpc, what happens at /events.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "security": [{"secret": []}],
        "paths": {
            "/rpc": {"post": {
                "operationId": "rpc",
                "summary": "Calls a method, or several in one batch",
                "description": "A method that streams answers with server-sent events where the client accepts them: `update` notifications, and last the response.",
                "requestBody": {"required": true, "content": {"application/json": {"schema": either("Request")}}},
                "responses": {
                    "200": {
                        "description": "What came of it",
                        "content": {
                            "application/json": {"schema": either("Response")},
                            "text/event-stream": {"schema": {"type": "string"}},
                        },
                    },
                    "204": {"description": "There were notifications alone"},
                    "401": refused("Nobody who is known"),
                    "403": refused("Not for this caller, or from another site"),
                    "413": refused("Longer than 1 MiB"),
                    "429": refused("Too many wrong secrets, or too many calls at once"),
                },
            }},
            "/events": {"get": {
                "operationId": "events",
                "summary": "What happens, as server-sent events, for the owner",
                "parameters": [
                    query("after", "Begin behind the event of this number", &json!({"type": "integer", "minimum": 0})),
                    query("agent", "Events of this agent alone", &json!({"type": "string"})),
                    query("type", "Events whose type begins so", &json!({"type": "string"})),
                ],
                "responses": {
                    "200": {"description": "Events as they come", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
                    "401": refused("Nobody who is known"),
                    "403": refused("Not the owner"),
                },
            }},
            "/healthz": {"get": {
                "operationId": "health",
                "summary": "Whether the daemon runs",
                "security": [],
                "responses": {"200": {"description": "It does", "content": {"application/json": {"schema": {
                    "type": "object",
                    "properties": {"status": {"const": "ok"}, "version": {"type": "string"}},
                    "required": ["status", "version"],
                }}}}},
            }},
        },
        "components": {
            "securitySchemes": {"secret": {
                "type": "http",
                "scheme": "bearer",
                "description": "A session's token, or the owner's secret",
            }},
            "schemas": schemas,
        },
    })
}

fn request(method: &Method) -> Value {
    let who = match method.who {
        Who::Owner => "For the owner.",
        Who::Session => "For a session.",
        Who::Either => "For the owner and for sessions.",
    };
    let streams = match method.streams {
        true => " Streams.",
        false => "",
    };
    json!({
        "title": method.name,
        "description": format!("{} {who}{streams}", method.about),
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer", "null"]},
            "method": {"const": method.name},
            "params": method.params,
        },
        "required": ["jsonrpc", "method"],
    })
}

fn response() -> Value {
    json!({
        "type": "object",
        "description": "`result` is as the schema METHOD.result says.",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer", "null"]},
            "result": {},
            "error": refer("Error"),
        },
        "required": ["jsonrpc", "id"],
    })
}

fn error() -> Value {
    json!({
        "type": "object",
        "properties": {
            "code": {"type": "integer"},
            "message": {"type": "string"},
            "data": {
                "type": "object",
                "properties": {"kind": {"type": "string"}, "hint": {"type": "string"}},
            },
        },
        "required": ["code", "message"],
    })
}

fn refusal() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {"error": {
            "type": "object",
            "properties": {"code": text, "message": text, "hint": text},
            "required": ["code", "message"],
        }},
        "required": ["error"],
    })
}

fn query(name: &str, about: &str, schema: &Value) -> Value {
    json!({"name": name, "in": "query", "description": about, "schema": schema})
}

fn refer(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}
