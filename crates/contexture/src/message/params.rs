//! Which of the caller's parameters go out in which form, and under which name.
//!
//! A session can change its provider and keep its parameters. A provider refuses a request for one
//! that it does not know, so in the forms of a single provider only what stands in the table goes
//! out. The chat form is spoken by many servers with parameters of their own: there, all do.

use serde_json::{Map, Value, json};

use To::{As, No, Same};

/// The one parameter that depends on the tools: see [`ToolChoice`](super::tool_choice::ToolChoice).
pub(super) const TOOL_CHOICE: &str = "tool_choice";

/// The parameters of a chat request. A list, because what else stands beside `messages` in a
/// transcript would make a provider refuse the request.
pub(crate) fn chat() -> impl Iterator<Item = &'static str> {
    TABLE
        .iter()
        .filter(|(_, from, ..)| *from == From::Chat)
        .map(|(name, ..)| *name)
}

/// The parameters of an Anthropic body.
pub(super) fn anthropic(given: &Map<String, Value>) -> Map<String, Value> {
    sent(given, |(.., to)| to)
}

/// The parameters of a responses body.
pub(super) fn responses(given: &Map<String, Value>) -> Map<String, Value> {
    sent(given, |(_, _, to, _)| to)
}

/// Who knows a parameter of that name.
#[derive(PartialEq)]
enum From {
    /// The chat form, and others perhaps.
    Chat,
    /// Others alone.
    Other,
}

/// What becomes of a parameter.
enum To {
    /// It is not sent.
    No,
    /// It is sent as it is.
    Same,
    /// It is sent under this name, in this form; not at all when it has none.
    As(&'static str, fn(&Value) -> Option<Value>),
}

/// Name, who knows it, what becomes of it in a responses body, and in an Anthropic body.
type Row = (&'static str, From, To, To);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("background", From::Other, Same, No),
    ("container", From::Other, No, Same),
    ("frequency_penalty", From::Chat, No, No),
    ("include", From::Other, Same, No),
    ("inference_geo", From::Other, No, Same),
    ("logit_bias", From::Chat, No, No),
    ("logprobs", From::Chat, No, No),
    ("max_completion_tokens", From::Chat, As("max_output_tokens", count), As("max_tokens", count)),
    ("max_output_tokens", From::Other, As("max_output_tokens", count), As("max_tokens", count)),
    ("max_tokens", From::Chat, As("max_output_tokens", count), As("max_tokens", count)),
    ("max_tool_calls", From::Other, Same, No),
    ("metadata", From::Chat, Same, As("metadata", who)),
    ("modalities", From::Chat, No, No),
    ("n", From::Chat, No, No),
    ("output_config", From::Other, No, Same),
    ("parallel_tool_calls", From::Chat, Same, No),
    ("prediction", From::Chat, No, No),
    ("presence_penalty", From::Chat, No, No),
    ("prompt_cache_key", From::Chat, Same, No),
    ("prompt_cache_options", From::Other, Same, No),
    ("prompt_cache_retention", From::Other, Same, No),
    ("reasoning", From::Other, Same, No),
    ("reasoning_effort", From::Chat, As("reasoning", effort), No),
    ("response_format", From::Chat, As("text", format), No),
    ("safety_identifier", From::Chat, Same, No),
    ("seed", From::Chat, No, No),
    ("service_tier", From::Chat, Same, As("service_tier", tier)),
    ("stop", From::Chat, No, As("stop_sequences", stops)),
    ("stop_sequences", From::Other, No, As("stop_sequences", stops)),
    ("store", From::Chat, Same, No),
    ("stream", From::Chat, Same, Same),
    ("stream_options", From::Chat, As("stream_options", obfuscation), No),
    ("temperature", From::Chat, Same, As("temperature", unit)),
    ("text", From::Other, Same, No),
    ("thinking", From::Other, No, Same),
    (TOOL_CHOICE, From::Chat, Same, Same),
    ("top_k", From::Other, No, Same),
    ("top_logprobs", From::Chat, Same, No),
    ("top_p", From::Chat, Same, Same),
    ("truncation", From::Other, Same, No),
    ("user", From::Chat, Same, As("metadata", user)),
    ("verbosity", From::Chat, As("text", verbosity), No),
];

fn sent(given: &Map<String, Value>, to: impl Fn(&Row) -> &To) -> Map<String, Value> {
    let known = |(name, value): (&String, &Value)| {
        let row = TABLE.iter().find(|(known, ..)| known == name)?;
        match to(row) {
            No => None,
            Same => Some((name.clone(), value.clone())),
            As(name, form) => Some(((*name).to_owned(), form(value)?)),
        }
    };
    // What goes by the form's own name comes first, so that what is put into it gives way to it.
    let (own, others): (Vec<_>, Vec<_>) = given
        .iter()
        .filter(|(_, value)| !value.is_null())
        .filter_map(|param| Some((known(param)?, param.0)))
        .partition(|((name, _), given)| name == *given);
    let mut out = Map::from_iter(own.into_iter().map(|(param, _)| param));
    for ((name, value), _) in others {
        match (out.get_mut(&name), value) {
            (None, value) => drop(out.insert(name, value)),
            (Some(Value::Object(there)), Value::Object(more)) => {
                for (key, value) in more {
                    there.entry(key).or_insert(value);
                }
            }
            (Some(_), _) => {}
        }
    }
    out
}

fn count(value: &Value) -> Option<Value> {
    value.as_u64().filter(|&n| n > 0).map(Value::from)
}

/// Anthropic's temperature ends at 1, OpenAI's at 2.
fn unit(value: &Value) -> Option<Value> {
    let unit = value.as_f64().is_some_and(|t| (0.0..=1.0).contains(&t));
    unit.then(|| value.clone())
}

/// Anthropic takes one thing to know about a request.
fn who(value: &Value) -> Option<Value> {
    user(value.get("user_id")?)
}

fn user(value: &Value) -> Option<Value> {
    let id = value.as_str().filter(|id| id.chars().count() <= 256)?;
    Some(json!({ "user_id": id }))
}

fn tier(value: &Value) -> Option<Value> {
    matches!(value.as_str()?, "auto" | "standard_only").then(|| value.clone())
}

/// Anthropic takes no stop that is blank.
fn stops(value: &Value) -> Option<Value> {
    let one = std::slice::from_ref(value);
    let all = value.as_array().map_or(one, Vec::as_slice);
    let stops: Vec<&str> = all
        .iter()
        .filter_map(Value::as_str)
        .filter(|stop| !super::words::is_blank(stop))
        .collect();
    (!stops.is_empty()).then(|| stops.into())
}

fn effort(value: &Value) -> Option<Value> {
    value.as_str().map(|effort| json!({ "effort": effort }))
}

fn verbosity(value: &Value) -> Option<Value> {
    value
        .as_str()
        .map(|verbosity| json!({ "verbosity": verbosity }))
}

/// The chat form keeps a schema one level deeper.
fn format(value: &Value) -> Option<Value> {
    let mut format = value.as_object()?.clone();
    if let Some(Value::Object(schema)) = format.shift_remove("json_schema") {
        format.extend(schema);
    }
    Some(json!({ "format": format }))
}

/// The chat form's other option asks for usage, which a responses stream ends with anyway.
fn obfuscation(value: &Value) -> Option<Value> {
    let told = value.get("include_obfuscation")?.as_bool()?;
    Some(json!({ "include_obfuscation": told }))
}
