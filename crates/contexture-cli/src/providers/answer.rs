//! A program's output, as an offer or as the answer to a call.

use contexture::inject::{Audience, Item, McpServerStdio, Offer, ToolDefinition};
use contexture::json;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The keys of an answer that fills more than one socket.
const SOCKETS: [&str; 3] = ["mcpServers", "tools", "systemContext"];

/// Text is system context; an object with one of the three keys fills the sockets that it names.
pub fn read(output: Vec<u8>) -> Result<Offer, String> {
    let text = String::from_utf8(output).map_err(|_| "it said what is not UTF-8".to_owned())?;
    let text = text.trim();
    let parsed = match text.starts_with('{') {
        true => json::parse(text.as_bytes(), 1).ok(),
        false => None,
    };
    match parsed {
        Some(Value::Object(map)) if SOCKETS.iter().any(|key| map.contains_key(*key)) => {
            sockets(map)
        }
        _ if text.is_empty() => Ok(Offer::default()),
        _ => Ok(Offer {
            system_context: vec![text.to_owned().into()],
            ..Offer::default()
        }),
    }
}

/// The content of an answer to a call: an object or a list is data, and anything else is text.
pub fn content(output: Vec<u8>) -> Result<Value, String> {
    let text = String::from_utf8(output).map_err(|_| "it said what is not UTF-8".to_owned())?;
    let text = text.trim();
    let parsed = if text.starts_with(['{', '[']) {
        json::parse(text.as_bytes(), 1).ok()
    } else {
        None
    };
    Ok(parsed.unwrap_or_else(|| Value::String(text.to_owned())))
}

fn sockets(mut map: Map<String, Value>) -> Result<Offer, String> {
    if let Some(unknown) = map.keys().find(|key| !SOCKETS.contains(&key.as_str())) {
        return Err(format!(
            "`{unknown}` in what it said is unknown: the keys are {}",
            SOCKETS.join(", ")
        ));
    }
    let mut list = |key: &str| match map.remove(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list),
        Some(text @ Value::String(_)) if key == "systemContext" => Ok(vec![text]),
        Some(_) => Err(format!("`{key}` in what it said must be a list")),
    };
    let (servers, tools, texts) = (list("mcpServers")?, list("tools")?, list("systemContext")?);
    Ok(Offer {
        mcp_servers: items::<McpServerStdio>(servers, "mcpServers")?,
        tools: items::<ToolDefinition>(tools, "tools")?,
        system_context: texts
            .into_iter()
            .map(said)
            .collect::<Result<Vec<_>, String>>()?,
    })
}

fn items<T: DeserializeOwned>(list: Vec<Value>, key: &str) -> Result<Vec<Item<T>>, String> {
    let one = |(n, mut value): (usize, Value)| {
        let audience = audience(&mut value)?;
        let value =
            serde_json::from_value(value).map_err(|error| format!("{key}[{n}]: {error}"))?;
        Ok(Item { value, audience })
    };
    list.into_iter().enumerate().map(one).collect()
}

/// A text, or `{"text", "audience"?}`.
fn said(mut value: Value) -> Result<Item<String>, String> {
    if let Value::String(text) = value {
        return Ok(text.into());
    }
    let audience = audience(&mut value)?;
    match value.get_mut("text").map(Value::take) {
        Some(Value::String(value)) => Ok(Item { value, audience }),
        _ => Err("`systemContext` in what it said must be a list of texts".to_owned()),
    }
}

/// For whom something is: `{"agent"?, "sessionId"?}`. What cannot be read is for nobody.
fn audience(value: &mut Value) -> Result<Audience, String> {
    let Some(given) = value
        .as_object_mut()
        .and_then(|map| map.shift_remove("audience"))
    else {
        return Ok(Audience::default());
    };
    let wrong = || "an `audience` must be {\"agent\"?, \"sessionId\"?}, both texts".to_owned();
    let Value::Object(mut map) = given else {
        return Err(wrong());
    };
    let mut text = |key: &str| match map.shift_remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong()),
    };
    let (agent, session_id) = (text("agent")?, text("sessionId")?);
    match map.is_empty() {
        true => Ok(Audience { agent, session_id }),
        false => Err(wrong()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(text: &(impl ToString + ?Sized)) -> Result<Offer, String> {
        read(text.to_string().into_bytes())
    }

    #[test]
    fn text_is_system_context() {
        for text in [
            "Be kind.",
            "{not json",
            r#"{"some": "other object"}"#,
            "[1]",
        ] {
            let offer = of(text).unwrap();
            assert_eq!(offer.system_context, [text.to_owned().into()], "{text}");
        }
        assert_eq!(of(" \n ").unwrap(), Offer::default());
        assert!(read(vec![0xff]).is_err());
    }

    #[test]
    fn an_answer_to_a_call_is_data_or_text() {
        let said = |text: &str| content(text.as_bytes().to_vec()).unwrap();
        assert_eq!(said("{\"a\": [1]}\n"), json!({"a": [1]}));
        assert_eq!(said("[1, 2]"), json!([1, 2]));
        for text in ["plain", "{no json", "7", ""] {
            assert_eq!(said(text), json!(text));
        }
        assert!(content(vec![0xff]).is_err());
    }

    #[test]
    fn an_object_fills_the_sockets() {
        let offer = of(&json!({
            "mcpServers": [{"name": "fs", "command": "node", "args": ["x"]}],
            "tools": [{"name": "look", "description": "Looks.", "parameters": {}, "rpcMethod": "x.look", "scope": "all"}],
            "systemContext": ["One.", {"text": "Two.", "audience": {"agent": "ada"}}],
        }))
        .unwrap();
        assert_eq!(offer.mcp_servers[0].value.command, "node");
        assert_eq!(offer.tools[0].value.rpc_method, "x.look");
        assert_eq!(
            offer.system_context[1].audience.agent.as_deref(),
            Some("ada")
        );
        let one = of(&json!({"systemContext": "One."})).unwrap();
        assert_eq!(one.system_context.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (value, words) in [
            (json!({"tools": {}}), "must be a list"),
            (json!({"tools": [{"name": "x"}]}), "tools[0]"),
            (json!({"systemContext": [7]}), "list of texts"),
            (
                json!({"systemContext": ["x"], "sytemContext": []}),
                "sytemContext",
            ),
            (
                json!({"systemContext": [{"text": "x", "audience": {"session": "s"}}]}),
                "audience",
            ),
            (
                json!({"mcpServers": [{"name": "a", "command": "b", "audience": 7}]}),
                "audience",
            ),
        ] {
            let why = of(&value).unwrap_err();
            assert!(why.contains(words), "{value}: {why}");
        }
    }
}
