//! A model that agents of any make can speak with: what a request offers and asks, in whatever form it came.

use serde_json::{Value, json};

use crate::model_server::{Answer, Piece, Seen};

/// A request as a model sees it: the offered tools, and the last words.
pub struct Asked {
    /// The tools that are offered; one of a namespace as `space::name`.
    pub tools: Vec<String>,
    /// True if it brings the result of a call.
    pub brings_result: bool,
    /// The last words of whoever asks.
    pub words: String,
}

impl Asked {
    /// Nothing where it asks for no reply.
    pub fn read(seen: &Seen) -> Option<Self> {
        let path = seen.path.split('?').next().unwrap_or_default();
        if path.ends_with("/chat/completions") {
            Some(Self::chat(&seen.json()))
        } else if path.ends_with("/responses") {
            Some(Self::responses(&seen.json()))
        } else if path.ends_with("/messages") {
            Some(Self::messages(&seen.json()))
        } else if path.ends_with(":streamGenerateContent") {
            Some(Self::gemini(&seen.json()))
        } else {
            None
        }
    }

    fn chat(body: &Value) -> Self {
        let last = last(&body["messages"]);
        Self {
            tools: all(&body["tools"])
                .filter_map(|tool| text(&tool["function"]["name"]))
                .collect(),
            brings_result: last["role"] == "tool",
            words: last["content"].to_string(),
        }
    }

    fn responses(body: &Value) -> Self {
        let last = last(&body["input"]);
        let names = |tool: &Value| -> Vec<String> {
            let space = text(&tool["name"]);
            let inside = all(&tool["tools"]).filter_map(|tool| text(&tool["name"]));
            let inside = inside.map(|name| format!("{}::{name}", space.as_deref().unwrap_or("")));
            inside.chain(space.clone()).collect()
        };
        Self {
            tools: all(&body["tools"]).flat_map(names).collect(),
            brings_result: last["type"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("_output")),
            words: last["content"].to_string(),
        }
    }

    fn messages(body: &Value) -> Self {
        // Reminders come as messages of their own behind the user's.
        let messages: Vec<&Value> = all(&body["messages"]).collect();
        let said = messages
            .rsplit(|message| message["role"] == "assistant")
            .next();
        let content = said
            .into_iter()
            .flatten()
            .flat_map(|message| match &message["content"] {
                Value::Array(blocks) => blocks.clone(),
                text => vec![json!({"type": "text", "text": text})],
            });
        let content = Value::Array(content.collect());
        Self {
            tools: all(&body["tools"])
                .filter_map(|tool| text(&tool["name"]))
                .collect(),
            brings_result: all(&content).any(|block| block["type"] == "tool_result"),
            words: content.to_string(),
        }
    }

    fn gemini(body: &Value) -> Self {
        let parts = &last(&body["contents"])["parts"];
        let declared = all(&body["tools"]).flat_map(|tool| all(&tool["functionDeclarations"]));
        Self {
            tools: declared.filter_map(|tool| text(&tool["name"])).collect(),
            brings_result: all(parts).any(|part| part.get("functionResponse").is_some()),
            words: parts.to_string(),
        }
    }
}

/// The answer to a request that asks for no reply: a list of models, a count.
pub fn beside(seen: &Seen) -> Answer {
    if seen.body.is_empty() && !seen.path.ends_with("/models") {
        return Answer::Status(200, vec![], String::new());
    }
    let said = [Piece::Text("A title")];
    let body = match &seen.path {
        path if path.contains(":generateContent") => crate::model_server::gemini(&said),
        _ => json!({
            "object": "list", "data": [{"id": "scripted-1", "object": "model"}], "models": [],
            "input_tokens": 10, "totalTokens": 10,
        }),
    };
    let kind = ("content-type", "application/json".to_owned());
    Answer::Status(200, vec![kind], body.to_string())
}

fn all(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn last(value: &Value) -> &Value {
    all(value).last().unwrap_or(&Value::Null)
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
