//! Entries: what the log is made of, and the view that folds it into the effective history.
//!
//! A log only grows. What undoes, hides or replaces something is an entry too, so the history in
//! effect is a fold over the log, and every earlier history is the same fold over a shorter one.

mod fold;
mod id;
mod payload;
mod place;
mod view;

use serde::Serialize;
use serde_json::{Map, Value};

pub use fold::{Change, Gone};
pub(crate) use fold::{add_tools, tool_name};
pub use id::EntryId;
pub use payload::{
    BranchSummary, Compaction, DeferredTool, Injection, Mask, Payload, Refused, RequestRecord,
    SessionHeader, Target, ToolDelta, VERSION,
};
pub use view::{Live, View};

use crate::json::{kind, object};
use crate::{ContextError, Message};

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its identity. Appending the same id twice is appending it once.
    pub id: EntryId,
    /// The entry it follows; absent means the one before it in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EntryId>,
    /// When it was made, as its maker wrote it (RFC 3339).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub timestamp: String,
    /// The run that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What it says.
    #[serde(flatten)]
    pub payload: Payload,
    /// What its maker wants to remember of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Fields we do not know: kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Entry {
    /// An entry whose id follows from its parent and its content: equal logs have equal ids.
    pub fn derived(parent: Option<&EntryId>, timestamp: &str, payload: Payload) -> Self {
        Self {
            id: EntryId::derived(parent, &payload),
            parent_id: parent.cloned(),
            timestamp: timestamp.to_owned(),
            run_id: None,
            payload,
            meta: None,
            extra: Map::new(),
        }
    }

    /// A message as an entry: under the message's own id where it has one.
    pub fn message(parent: Option<&EntryId>, timestamp: &str, message: Message) -> Self {
        let own = message.id.clone();
        let mut entry = Self::derived(parent, timestamp, Payload::Message { message });
        if let Some(own) = own {
            entry.id = EntryId::from(own);
        }
        entry
    }

    /// Reads an entry. The error names the field.
    pub fn from_value(value: Value) -> Result<Self, ContextError> {
        let mut map = object(value)?;
        let mut text = |key: &str| match map.shift_remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            // Other tools write times as numbers.
            Some(Value::Number(number)) if key == "timestamp" => Ok(Some(number.to_string())),
            Some(other) => Err(ContextError::invalid(
                key,
                format!("must be a string, is {}", kind(&other)),
                "an entry is `{\"id\",\"parentId\",\"type\",\"timestamp\",\"payload\"}`",
            )),
        };
        let id = text("id")?.filter(|id| !id.is_empty()).ok_or_else(|| {
            ContextError::invalid("id", "is missing", "every entry has an id of its own")
        })?;
        let parent_id = text("parentId")?;
        let timestamp = text("timestamp")?.unwrap_or_default();
        let run_id = text("runId")?;
        let tag = text("type")?
            .ok_or_else(|| ContextError::invalid("type", "is missing", Payload::known_types()))?;
        let meta = match map.shift_remove("meta") {
            None | Some(Value::Null) => None,
            Some(value) => Some(object(value).map_err(|e| e.within("meta"))?),
        };
        let payload = map
            .shift_remove("payload")
            .unwrap_or_else(|| Value::Object(Map::new()));
        Ok(Self {
            id: EntryId::from(id),
            parent_id: parent_id.map(EntryId::from),
            timestamp,
            run_id,
            payload: Payload::read(&tag, payload)?,
            meta,
            extra: map,
        })
    }
}
