use serde_json::{Map, Value};

use super::conversation::verbatim;
use crate::message::anthropic as form;
use crate::message::openai as chat;
use crate::{ContextError, View, build};

/// The conversation in OpenAI's chat form: `messages`, and `tools` where there are any.
///
/// As a build would send it with all the room in the world: calls and results are paired, what
/// nobody may be shown is left out.
pub fn openai(view: &View) -> Result<Value, ContextError> {
    let whole = verbatim(view)?;
    let messages = build::messages(&whole)?;
    let messages: Vec<Value> = messages
        .iter()
        .map(|message| {
            let mut bytes = Vec::new();
            chat::write(message, &mut bytes);
            serde_json::from_slice(&bytes).unwrap_or_default()
        })
        .collect();
    let mut out = Map::from_iter([("messages".to_owned(), messages.into())]);
    if !whole.tools().is_empty() {
        out.insert("tools".to_owned(), whole.tools().to_vec().into());
    }
    Ok(Value::Object(out))
}

/// The conversation in Anthropic's form: `system` and `tools` where there are any, and `messages`.
pub fn anthropic(view: &View) -> Result<Value, ContextError> {
    let whole = verbatim(view)?;
    let messages = build::messages(&whole)?;
    let messages: Vec<_> = messages.iter().collect();
    let head = form::Head {
        model: None,
        max_tokens: 0,
        params: None,
    };
    let mut bytes = Vec::new();
    form::write_body(&head, whole.tools(), &messages, &mut bytes);
    let mut body: Map<String, Value> = serde_json::from_slice(&bytes).unwrap_or_default();
    // How long an answer may be is no part of what was said.
    let fields = ["system", "messages", "tools"];
    let out = fields.map(|key| (key.to_owned(), body.shift_remove(key)));
    let there = out
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)));
    Ok(Value::Object(there.collect()))
}
