//! Reads an object field by field, so that every error can name its place.

use serde_json::{Map, Value};

use crate::ContextError;
use crate::json::{kind, object};
use crate::text::nearest;

/// An object whose keys are known, being read.
///
/// Null means the same as absent, as it does for most programs that write such objects.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Opens `value`. A key outside `known` is refused: an option that is silently ignored is worse
    /// than an error, above all in a policy.
    pub(crate) fn open(value: Value, known: &[&str]) -> Result<Self, ContextError> {
        let map = object(value)?;
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(unknown(key, known)),
            None => Ok(Self(map)),
        }
    }

    /// What stands under `key`, read by `read`.
    pub(crate) fn take<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Value) -> Result<T, ContextError>,
    ) -> Result<Option<T>, ContextError> {
        match self.0.shift_remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).map_err(|error| error.within(key)),
        }
    }

    /// The same, where it may not be missing.
    pub(crate) fn need<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Value) -> Result<T, ContextError>,
    ) -> Result<T, ContextError> {
        self.take(key, read)?.ok_or_else(|| {
            ContextError::invalid(key, "is missing", format!("`{key}` must be given here"))
        })
    }
}

pub(crate) fn string(value: Value) -> Result<String, ContextError> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(mismatch("a string", &other)),
    }
}

pub(crate) fn boolean(value: Value) -> Result<bool, ContextError> {
    match value {
        Value::Bool(flag) => Ok(flag),
        other => Err(mismatch("true or false", &other)),
    }
}

pub(crate) fn count(value: Value) -> Result<usize, ContextError> {
    let whole = value
        .as_u64()
        .and_then(|number| usize::try_from(number).ok());
    match (whole, value) {
        (Some(number), _) => Ok(number),
        (None, other) => Err(mismatch("a whole number of 0 or more", &other)),
    }
}

pub(crate) fn list<T>(
    read: impl Fn(Value) -> Result<T, ContextError>,
) -> impl FnOnce(Value) -> Result<Vec<T>, ContextError> {
    move |value| match value {
        Value::Array(items) => items
            .into_iter()
            .enumerate()
            .map(|(i, item)| read(item).map_err(|error| error.within(&format!("[{i}]"))))
            .collect(),
        other => Err(mismatch("an array", &other)),
    }
}

pub(crate) fn mismatch(wanted: &str, found: &Value) -> ContextError {
    let hint = match found {
        Value::String(_) if wanted == "an array" => "put the string into brackets: [\"…\"]",
        Value::String(_) => "leave the quotation marks out",
        _ => "see `--help` of the command for what is read",
    };
    let found = match found {
        Value::Number(number) => format!("{number}"),
        other => kind(other).to_owned(),
    };
    ContextError::invalid("", format!("must be {wanted}, is {found}"), hint)
}

fn unknown(key: &str, known: &[&str]) -> ContextError {
    let shown: String = key.chars().take(40).flat_map(char::escape_debug).collect();
    let near = nearest(key, known).map_or_else(String::new, |near| {
        format!("the nearest known key is `{near}`; ")
    });
    ContextError::invalid(
        shown,
        "is no known key",
        format!("{near}known here: {}", known.join(", ")),
    )
}
