//! `mcpServers`, in the shape that other programs use: one table of keys gives the reader, its errors
//! and the schema.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use contexture::ContextError;
use contexture::text::nearest;
use serde_json::{Map, Value, json};

use super::config::{Secret, ServerConfig, Transport};

/// A key of a server: its name, its type, and what it is for.
const KEYS: [(&str, &str, &str); 9] = [
    (
        "type",
        "string",
        "`stdio` or `http`; follows from the other keys.",
    ),
    (
        "command",
        "string",
        "The program that speaks MCP on its standard input and output.",
    ),
    ("args", "array", "Its arguments."),
    (
        "env",
        "object",
        "Its environment, beside the little that it inherits. `${NAME}` is taken from ours.",
    ),
    (
        "cwd",
        "string",
        "The folder that it starts in; the project's unless given.",
    ),
    (
        "url",
        "string",
        "The address of a server that speaks streamable HTTP.",
    ),
    (
        "headers",
        "object",
        "Headers sent with every request. `${NAME}` is taken from the environment.",
    ),
    ("disabled", "boolean", "Whether it is left alone."),
    (
        "timeoutSeconds",
        "integer",
        "How long a call may take; 60 unless given.",
    ),
];

/// How long a call may take, unless the configuration says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest time for a call: a day.
const MAX_TIMEOUT_SECONDS: u64 = 24 * 60 * 60;
const LONGEST_NAME: usize = 32;

/// Reads the value of `mcpServers`.
pub fn read(servers: &Value) -> Result<Vec<ServerConfig>, ContextError> {
    let Value::Object(servers) = servers else {
        return Err(wrong("mcpServers", "must be an object", "name each server"));
    };
    servers
        .iter()
        .map(|(name, value)| server(name, value))
        .collect()
}

/// The JSON Schema of `mcpServers`.
pub fn schema() -> Value {
    let mut properties = Map::new();
    for (name, kind, about) in KEYS {
        let mut key = json!({ "type": kind, "description": about });
        match kind {
            "array" => key["items"] = json!({ "type": "string" }),
            "object" => key["additionalProperties"] = json!({ "type": "string" }),
            "integer" => {
                key["minimum"] = json!(1);
                key["maximum"] = json!(MAX_TIMEOUT_SECONDS);
            }
            _ => {}
        }
        properties.insert(name.to_owned(), key);
    }
    json!({
        "type": "object",
        "description": "MCP servers, by name.",
        "propertyNames": { "pattern": format!("^[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}$") },
        "additionalProperties": {
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
        },
    })
}

fn server(name: &str, value: &Value) -> Result<ServerConfig, ContextError> {
    let place = format!("mcpServers.{}", super::bounded(name, LONGEST_NAME));
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(legal) {
        let hint = format!("use letters, digits, `_` and `-`, at most {LONGEST_NAME} of them");
        return Err(wrong(place, "is no name for a server", hint));
    }
    let Value::Object(map) = value else {
        return Err(wrong(place, "must be an object", "give `command` or `url`"));
    };
    check(&place, map)?;
    let transport = transport(&place, map)?;
    let timeout = match map.get("timeoutSeconds") {
        None => TIMEOUT,
        Some(given) => {
            let within = |seconds: &u64| (1..=MAX_TIMEOUT_SECONDS).contains(seconds);
            let seconds = given.as_u64().filter(within).ok_or_else(|| {
                let place = format!("{place}.timeoutSeconds");
                let what =
                    format!("must be a whole number from 1 to {MAX_TIMEOUT_SECONDS}, not {given}");
                wrong(place, what, "leave it out for 60")
            })?;
            Duration::from_secs(seconds)
        }
    };
    Ok(ServerConfig {
        name: name.to_owned(),
        transport,
        disabled: map.get("disabled") == Some(&Value::Bool(true)),
        timeout,
    })
}

/// Refuses a key that the table does not have, and a value of another type.
fn check(place: &str, map: &Map<String, Value>) -> Result<(), ContextError> {
    let known = KEYS.map(|(name, ..)| name);
    for (name, value) in map {
        let full = format!("{place}.{name}");
        let Some((_, kind, _)) = KEYS.iter().find(|key| key.0 == name) else {
            let hint = match nearest(name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys are {}", known.join(", ")),
            };
            return Err(wrong(full, "is an unknown key", hint));
        };
        let (fits, needs) = match *kind {
            "string" => (value.is_string(), "a text"),
            "boolean" => (value.is_boolean(), "true or false"),
            // Read with its range; here it only must not be long.
            "integer" => (value.is_number(), "a whole number"),
            "array" => {
                let texts = |items: &Vec<Value>| items.iter().all(Value::is_string);
                (value.as_array().is_some_and(texts), "a list of texts")
            }
            _ => {
                let texts = |map: &Map<String, Value>| map.values().all(Value::is_string);
                (value.as_object().is_some_and(texts), "an object of texts")
            }
        };
        if !fits {
            return Err(wrong(full, format!("must be {needs}"), "see docs/mcp.md"));
        }
    }
    Ok(())
}

fn transport(place: &str, map: &Map<String, Value>) -> Result<Transport, ContextError> {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let kind = match (text("type"), text("command"), text("url")) {
        (None | Some("stdio"), Some(_), None) => "stdio",
        (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(_)) => "http",
        (Some("sse"), ..) => {
            let hint = "servers that speak it also speak `http` by now: give that address";
            return Err(wrong(
                format!("{place}.type"),
                "`sse` is not spoken any more",
                hint,
            ));
        }
        (Some(other), ..)
            if !matches!(
                other,
                "stdio" | "http" | "streamable-http" | "streamableHttp"
            ) =>
        {
            let what = format!("`{}` is unknown", super::bounded(other, 32));
            return Err(wrong(
                format!("{place}.type"),
                what,
                "use `stdio` or `http`",
            ));
        }
        _ => {
            let hint = "give `command` for a program, or `url` for an address";
            return Err(wrong(place, "needs one of `command` and `url`", hint));
        }
    };
    let foreign: &[&str] = match kind {
        "stdio" => &["headers"],
        _ => &["args", "env", "cwd"],
    };
    if let Some(key) = foreign.iter().find(|key| map.contains_key(**key)) {
        let what = format!("means nothing for a server over {kind}");
        return Err(wrong(format!("{place}.{key}"), what, "leave it out"));
    }
    let secrets = |key: &str| -> BTreeMap<String, Secret> {
        let pairs = map
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let secret = |(name, value): (&String, &Value)| {
            value
                .as_str()
                .map(|text| (name.clone(), Secret::configured(text)))
        };
        pairs.filter_map(secret).collect()
    };
    if kind == "http" {
        let url = text("url").unwrap_or_default().to_owned();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let hint = "it begins with https:// or http://";
            return Err(wrong(format!("{place}.url"), "is no address", hint));
        }
        let headers = secrets("headers");
        return Ok(Transport::Http { url, headers });
    }
    let args = map
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    Ok(Transport::Stdio {
        command: text("command").unwrap_or_default().to_owned(),
        args: args.filter_map(Value::as_str).map(str::to_owned).collect(),
        env: secrets("env"),
        cwd: text("cwd").map(PathBuf::from),
    })
}

fn wrong(
    place: impl Into<String>,
    what: impl Into<String>,
    hint: impl Into<String>,
) -> ContextError {
    ContextError::invalid(place, what, hint)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[track_caller]
    fn refused(value: &Value, place: &str, hint: &str) {
        let error = read(value).unwrap_err();
        assert!(error.to_string().contains(place), "{error}");
        assert!(error.hint().contains(hint), "{}", error.hint());
    }

    #[test]
    fn both_shapes_are_read() {
        let servers = read(&json!({
            "fs": { "command": "npx", "args": ["-y", "x"], "env": { "KEY": "secret-1" } },
            "far": { "type": "http", "url": "https://u:secret-2@h/mcp?key=secret-3",
                     "headers": { "Authorization": "Bearer secret-4" }, "timeoutSeconds": 5 },
            "off": { "command": "x", "disabled": true },
        }))
        .unwrap();
        assert_eq!(servers.len(), 3);
        assert_eq!(servers[0].timeout, Duration::from_secs(60));
        assert_eq!(servers[1].timeout, Duration::from_secs(5));
        assert!(servers[2].disabled);
        assert_eq!(servers[0].shown(), "npx …");
        assert_eq!(servers[1].shown(), "https://…@h/mcp");
        let debug = format!("{:?} {:?}", servers[0], servers[1].transport);
        assert!(
            !debug.contains("secret-1") && !debug.contains("secret-4"),
            "{debug}"
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_a_remedy() {
        refused(
            &json!({ "a": { "comand": "x" } }),
            "mcpServers.a.comand",
            "`command`",
        );
        refused(
            &json!({ "a b": { "command": "x" } }),
            "mcpServers.a b",
            "letters",
        );
        refused(
            &json!({ "a": {} }),
            "mcpServers.a",
            "`command` for a program",
        );
        refused(
            &json!({ "a": { "command": "x", "url": "http://x" } }),
            "mcpServers.a",
            "`url`",
        );
        refused(
            &json!({ "a": { "type": "sse", "url": "http://x" } }),
            "a.type",
            "`http`",
        );
        refused(
            &json!({ "a": { "type": "pipe", "command": "x" } }),
            "a.type",
            "`stdio`",
        );
        refused(&json!({ "a": { "url": "file:///x" } }), "a.url", "https://");
        refused(
            &json!({ "a": { "url": "http://x", "args": [] } }),
            "a.args",
            "leave it out",
        );
        refused(
            &json!({ "a": { "command": "x", "args": [1] } }),
            "a.args",
            "docs/mcp.md",
        );
    }

    #[test]
    fn variables_come_from_the_environment() {
        let path = std::env::var("PATH").unwrap();
        let secret = |text: &str| Secret::configured(text).resolve();
        assert_eq!(secret("a${PATH}b"), Ok(format!("a{path}b")));
        assert_eq!(secret("$PATH ${"), Ok("$PATH ${".to_owned()));
        assert_eq!(
            secret("${NO_SUCH_VARIABLE_1}"),
            Err("NO_SUCH_VARIABLE_1".to_owned())
        );
    }
}
