//! What tools say, with its hidden characters made visible: in results, in specs, and however deep inside.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::text::hidden::reveal;
use crate::{Content, Message, Part};

/// The message with nothing hidden in what it says; nothing where nothing was.
pub(crate) fn visible_message(message: &Message) -> Option<(Message, usize)> {
    let mut found = 0;
    let content = match &message.content {
        Content::Null => Content::Null,
        Content::Text(text) => Content::Text(shown(text, &mut found).into_owned()),
        Content::Parts(parts) => {
            let parts = parts.iter().map(|part| visible_part(part, &mut found));
            Content::Parts(parts.collect())
        }
    };
    let extra = visible_map(&message.extra, &mut found);
    let name = message.name.as_ref();
    let name = name.map(|name| shown(name, &mut found).into_owned());
    (found > 0).then(|| {
        let message = Message {
            content,
            name,
            extra,
            ..message.clone()
        };
        (message, found)
    })
}

/// The tool spec with nothing hidden in it, keys included, and how much was; nothing where nothing
/// was. Its name stays: it is what calls are told apart by.
fn visible_spec(spec: &Value) -> Option<(Value, usize)> {
    let mut found = 0;
    let mut out = visible_value(spec, &mut found);
    if found == 0 {
        return None;
    }
    for path in ["/name", "/function/name", "/custom/name"] {
        if let (Some(name), Some(shown)) = (spec.pointer(path), out.pointer_mut(path)) {
            shown.clone_from(name);
        }
    }
    Some((out, found))
}

/// All specs so, with what was hidden in each. No copy is made where nothing was.
pub(crate) fn visible_specs(specs: &Arc<Vec<Value>>) -> (Arc<Vec<Value>>, Vec<usize>) {
    let mut shown = Arc::clone(specs);
    let mut hidden = vec![0; specs.len()];
    for (at, spec) in specs.iter().enumerate() {
        if let Some((spec, found)) = visible_spec(spec) {
            Arc::make_mut(&mut shown)[at] = spec;
            hidden[at] = found;
        }
    }
    (shown, hidden)
}

fn visible_part(part: &Part, found: &mut usize) -> Part {
    match part {
        Part::Text { text, extra } => Part::Text {
            text: shown(text, found).into_owned(),
            extra: extra.clone(),
        },
        Part::Other(map) => Part::Other(visible_map(map, found)),
        other => other.clone(),
    }
}

/// The value with nothing hidden in it, keys included; counts what was.
pub fn visible_value(value: &Value, found: &mut usize) -> Value {
    match value {
        Value::String(text) => Value::String(shown(text, found).into_owned()),
        Value::Array(values) => values.iter().map(|v| visible_value(v, found)).collect(),
        Value::Object(map) => Value::Object(visible_map(map, found)),
        other => other.clone(),
    }
}

fn visible_map(map: &Map<String, Value>, found: &mut usize) -> Map<String, Value> {
    let fields = map.iter().map(|(key, value)| {
        let key = shown(key, found).into_owned();
        (key, visible_value(value, found))
    });
    fields.collect()
}

fn shown<'a>(text: &'a str, found: &mut usize) -> Cow<'a, str> {
    match reveal(text) {
        None => Cow::Borrowed(text),
        Some((shown, hidden)) => {
            *found += hidden;
            Cow::Owned(shown)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_spec_keeps_its_name_and_its_order() {
        let spec = json!({"type": "function", "function": {
            "name": "a\u{200b}",
            "description": "reads\u{202e}",
            "parameters": {"properties": {"b\u{200b}": {"enum": ["\u{2060}x"]}, "a": {"title": "t"}}}}});
        let (shown, found) = visible_spec(&spec).unwrap();
        assert_eq!(found, 4);
        let function = &shown["function"];
        assert_eq!(function["name"], "a\u{200b}");
        assert_eq!(function["description"], "reads⟨U+202E⟩");
        let properties = function["parameters"]["properties"].to_string();
        assert_eq!(
            properties,
            r#"{"b⟨U+200B⟩":{"enum":["⟨U+2060⟩x"]},"a":{"title":"t"}}"#
        );
    }
}
