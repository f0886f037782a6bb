//! What a request asks of the engine, read from its chat body.

use contexture::Message;
use serde::Deserialize;
use serde_json::{Value, json};

use super::words::function;
use crate::ModelError;

/// A request, as far as an engine in this process can follow it.
#[derive(Debug)]
pub(super) struct Ask {
    pub messages: Vec<Message>,
    pub tools: Vec<Value>,
    pub wanted: Wanted,
    pub taste: Taste,
    /// The most tokens of the answer, where the request says so.
    pub max_tokens: Option<usize>,
    pub stop: Vec<String>,
}

/// What form the answer has.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    /// Text.
    Text,
    /// Text, or a call of one of the tools.
    Any,
    /// A call: of this tool, or of any.
    Call(Option<String>),
    /// A value that this schema describes.
    Json(Value),
}

/// How the next token is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Taste {
    /// 0 takes the likeliest.
    pub temperature: f32,
    pub top_p: f32,
    pub seed: u32,
    /// What has been said lately is less likely to be said again; 1 changes nothing.
    pub repeats: f32,
}

/// What the makers of small models recommend; a fixed seed, so that equal requests have equal answers;
/// and something against going round in circles, unless the request says how it wants to be answered.
const TASTE: Taste = Taste {
    temperature: 0.2,
    top_p: 0.9,
    seed: 0,
    repeats: 1.1,
};

#[derive(Deserialize)]
struct Body {
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<Value>,
    tool_choice: Option<Value>,
    response_format: Option<Value>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    seed: Option<i64>,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    stop: Option<Stops>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stops {
    One(String),
    Many(Vec<String>),
}

impl Ask {
    pub fn read(body: &[u8]) -> Result<Self, ModelError> {
        let body: Body = serde_json::from_slice(body).map_err(|error| ModelError::Invalid {
            what: format!("the body cannot be read: {error}"),
        })?;
        let wanted = wanted(&body)?;
        let number = |value: Option<f32>, most: f32, other: f32| match value {
            Some(value) if value.is_finite() => value.clamp(0.0, most),
            _ => other,
        };
        let stop = match body.stop {
            None => Vec::new(),
            Some(Stops::One(one)) => vec![one],
            Some(Stops::Many(many)) => many,
        };
        Ok(Self {
            messages: body.messages,
            tools: body.tools,
            wanted,
            taste: Taste {
                temperature: number(body.temperature, 10.0, TASTE.temperature),
                top_p: number(body.top_p, 1.0, TASTE.top_p),
                #[expect(clippy::cast_possible_truncation, reason = "a seed is any number")]
                seed: body.seed.map_or(TASTE.seed, |seed| seed as u32),
                repeats: match body.temperature {
                    Some(_) => 1.0,
                    None => TASTE.repeats,
                },
            },
            max_tokens: body.max_completion_tokens.or(body.max_tokens),
            stop: stop.into_iter().filter(|stop| !stop.is_empty()).collect(),
        })
    }

    /// Returns true if a call may come.
    pub fn may_call(&self) -> bool {
        matches!(self.wanted, Wanted::Any | Wanted::Call(_))
    }

    /// The tools whose calls may be written: all, or the one that must be.
    pub fn callable(&self) -> impl Iterator<Item = &Value> {
        let only = match &self.wanted {
            Wanted::Call(Some(name)) => Some(name.as_str()),
            _ => None,
        };
        let named = move |tool: &&Value| only.is_none_or(|only| name(tool) == Some(only));
        self.tools.iter().filter(named)
    }
}

pub(super) fn name(tool: &Value) -> Option<&str> {
    function(tool).get("name")?.as_str()
}

fn wanted(body: &Body) -> Result<Wanted, ModelError> {
    let format = body.response_format.as_ref();
    match format.and_then(|format| format.get("type")?.as_str()) {
        Some("json_object") => return Ok(Wanted::Json(json!({"type": "object"}))),
        Some("json_schema") => {
            let schema = format.and_then(|format| format.get("json_schema")?.get("schema"));
            return Ok(Wanted::Json(schema.cloned().unwrap_or_else(|| json!({}))));
        }
        _ => {}
    }
    if body.tools.is_empty() {
        return Ok(Wanted::Text);
    }
    let choice = match &body.tool_choice {
        None => return Ok(Wanted::Any),
        Some(choice) => choice,
    };
    match choice.as_str() {
        Some("none") => Ok(Wanted::Text),
        Some("required") => Ok(Wanted::Call(None)),
        Some(_) => Ok(Wanted::Any),
        None => {
            let wish = choice
                .get("function")
                .and_then(|function| function.get("name"));
            let wish = wish.and_then(Value::as_str).unwrap_or_default();
            if !body.tools.iter().any(|tool| name(tool) == Some(wish)) {
                return Err(ModelError::Invalid {
                    what: format!("tool_choice names `{wish}`, which is not among the tools"),
                });
            }
            Ok(Wanted::Call(Some(wish.to_owned())))
        }
    }
}
