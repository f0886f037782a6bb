use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Payload;

/// The identity of an entry. Cheap to clone: receipts name thousands of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct EntryId(Arc<str>);

impl EntryId {
    /// The id that follows from a parent and a content, as in a hash chain.
    pub fn derived(parent: Option<&EntryId>, payload: &Payload) -> Self {
        let mut hash = blake3::Hasher::new();
        hash.update(parent.map_or("", |p| p.as_str()).as_bytes());
        hash.update(&[0]);
        // Serialising to memory cannot fail for these types; a shorter hash input would still
        // give an id, only a less telling one.
        let written = serde_json::to_writer(&mut hash, payload);
        debug_assert!(written.is_ok());
        let hex = hash.finalize().to_hex();
        Self(hex[..16].into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for EntryId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for EntryId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<EntryId> for String {
    fn from(id: EntryId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
