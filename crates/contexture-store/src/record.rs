use contexture::json::{self, MAX_BYTES, ReadError};
use contexture::{Entry, EntryId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::StoreError;

/// One line of a stream: a JSON object with an `id`, in the bytes in which it came.
///
/// The store keeps the text, not a reading of it, so that nothing is lost that it does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    id: EntryId,
    text: String,
}

impl Record {
    /// A record from JSON text. Line breaks between tokens are taken out: a record is one line.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let value = json::parse(text.as_bytes(), 1)?;
        let text = text.trim();
        if text.contains(['\n', '\r']) {
            return Self::new(&value);
        }
        Ok(Self {
            id: id_of(&value)?,
            text: text.to_owned(),
        })
    }

    /// A record from a value.
    pub fn new(value: &Value) -> Result<Self, StoreError> {
        Ok(Self {
            id: id_of(value)?,
            text: bounded(value.to_string())?,
        })
    }

    /// A record that is known to be sound: it was one before.
    pub(crate) fn trusted(id: EntryId, text: String) -> Self {
        Self { id, text }
    }

    /// Its id.
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// Its JSON, in one line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its JSON as a value.
    pub fn value(&self) -> Result<Value, StoreError> {
        Ok(json::parse(self.text.as_bytes(), 1)?)
    }

    /// What it says, as a type that reads it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        json::from_text(&self.text)
    }

    /// The entry that it is.
    pub fn entry(&self) -> Result<Entry, StoreError> {
        Ok(Entry::from_value(self.value()?)?)
    }

    /// Whether both say the same. The bytes may differ in blanks and in how numbers are written.
    pub(crate) fn says(&self, other: &str) -> bool {
        self.text == other
            || json::parse(other.as_bytes(), 1).is_ok_and(|b| self.value().is_ok_and(|a| a == b))
    }
}

impl TryFrom<&Entry> for Record {
    type Error = StoreError;

    fn try_from(entry: &Entry) -> Result<Self, StoreError> {
        if entry.id.as_str().is_empty() {
            return Err(bad("its `id` must be text, and not empty"));
        }
        let text = serde_json::to_string(entry).map_err(|error| bad(&error.to_string()))?;
        Ok(Self {
            id: entry.id.clone(),
            text: bounded(text)?,
        })
    }
}

/// What is longer could be written, and not be read again.
fn bounded(text: String) -> Result<String, StoreError> {
    match text.len() <= MAX_BYTES {
        true => Ok(text),
        false => Err(bad(&format!("it is longer than {} MiB", MAX_BYTES >> 20))),
    }
}

fn id_of(value: &Value) -> Result<EntryId, StoreError> {
    match value {
        Value::Object(map) => match map.get("id") {
            Some(Value::String(id)) if !id.is_empty() => Ok(EntryId::from(id.as_str())),
            Some(_) => Err(bad("its `id` must be text, and not empty")),
            None => Err(bad("it has no `id`")),
        },
        _ => Err(bad("it is no JSON object")),
    }
}

fn bad(what: &str) -> StoreError {
    StoreError::BadRecord {
        what: what.to_owned(),
    }
}
