//! Taking fields out of a line: what is taken has a place, what is left goes to `meta.source`.

use serde_json::Value;

use super::Object;

/// What is left of a nested object goes back to where it was.
pub(super) fn put_back(rest: &mut Object, key: &str, inner: Object) {
    if !inner.is_empty() {
        rest.insert(key.to_owned(), inner.into());
    }
}

/// The text at `key`, taken out.
pub(super) fn take_text(map: &mut Object, key: &str) -> Option<String> {
    match map.get(key)? {
        Value::String(_) => match map.shift_remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The same, if there is more than blanks in it.
pub(super) fn take_words(map: &mut Object, key: &str) -> Option<String> {
    let said = map.get(key)?.as_str()?;
    (!said.trim().is_empty()).then(|| take_text(map, key))?
}

/// The object at `key`, taken out.
pub(super) fn take_object(map: &mut Object, key: &str) -> Option<Object> {
    match map.get(key)? {
        Value::Object(_) => match map.shift_remove(key) {
            Some(Value::Object(inner)) => Some(inner),
            _ => None,
        },
        _ => None,
    }
}

/// The line's time, as written. A number stays in the line too.
pub(super) fn take_time(map: &mut Object) -> String {
    match map.get("timestamp") {
        Some(Value::Number(number)) => number.to_string(),
        _ => take_text(map, "timestamp").unwrap_or_default(),
    }
}

/// Whether the flag is set.
pub(super) fn flag(map: &Object, key: &str) -> bool {
    map.get(key)
        .is_some_and(|value| *value == Value::Bool(true))
}
