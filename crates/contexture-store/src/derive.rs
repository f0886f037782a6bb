use contexture::{EntryId, Payload};
use serde::Serialize;
use serde_json::Value;

use crate::{Record, StoreError};

/// A record for something that has no id of its own: it follows from the content and from what
/// stands before, so that saying it again is saying it once and saying the same later is not.
pub fn derived(before: Option<&EntryId>, line: &impl Serialize) -> Result<Record, StoreError> {
    let value = serde_json::to_value(line).map_err(|error| StoreError::BadRecord {
        what: error.to_string(),
    })?;
    let Value::Object(mut map) = value else {
        return Err(StoreError::BadRecord {
            what: "it is no JSON object".to_owned(),
        });
    };
    map.shift_remove("id");
    let id = EntryId::derived(before, &Payload::Custom(map.clone()));
    map.shift_insert(0, "id".to_owned(), id.as_str().into());
    Record::new(&Value::Object(map))
}
