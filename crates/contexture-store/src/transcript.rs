//! What was said in a chat, as its people saw it. One line a message, appended run by run.

use std::sync::Arc;

use contexture::EntryId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::derive::derived;
use crate::{Expected, From, Key, Log, StoreError, Stream, check_own};

/// A message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// The form of the line.
    pub v: u64,
    /// When, in RFC 3339.
    pub ts: String,
    /// In which chat.
    pub chat_key: String,
    /// Who: `user`, `assistant`, `system` or `tool`.
    pub role: String,
    /// What.
    pub text: String,
    /// The run that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What else its writer wants to remember.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The form of a line that this program writes and reads.
const FORM: u64 = 1;

/// The transcripts of a log.
#[derive(Clone)]
pub struct Transcripts {
    log: Arc<dyn Log>,
}

/// What was read, and how many lines were not what they should be.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadBack<T> {
    /// The lines, oldest first.
    pub lines: Vec<T>,
    /// Lines that were skipped: of another chat, or no such line at all.
    pub skipped: usize,
}

impl Transcripts {
    /// The transcripts of this log.
    pub fn new(log: Arc<dyn Log>) -> Self {
        Self { log }
    }

    /// Appends what a run said, all or none. The lines are of this chat, whatever they say.
    pub fn append(&self, key: &Key, said: &[Said]) -> Result<(), StoreError> {
        let stream = Stream::chat(key.clone());
        let mut before: Option<EntryId> = self.log.tail(&stream)?;
        let mut records = Vec::with_capacity(said.len());
        for line in said {
            let line = Said {
                v: FORM,
                chat_key: key.as_str().to_owned(),
                ..line.clone()
            };
            let record = derived(before.as_ref(), &line)?;
            before = Some(record.id().clone());
            records.push(record);
        }
        self.log.append(&stream, Expected::Any, &records).map(drop)
    }

    /// The last `count` messages before the newest `offset` ones, oldest first, of those that
    /// `wanted` takes. A chat that is somebody else's is refused: a model would take it for the user's.
    pub fn last(
        &self,
        key: &Key,
        count: usize,
        offset: usize,
        wanted: impl Fn(&Said) -> bool,
    ) -> Result<ReadBack<Said>, StoreError> {
        let stream = Stream::chat(key.clone());
        check_own(self.log.as_ref(), &stream)?;
        let mut window = std::collections::VecDeque::new();
        let mut skipped = 0;
        for record in self.log.read(&stream, From::Start)? {
            let record = record?;
            match record.read::<Said>() {
                Ok(said) if said.v != FORM || said.chat_key != key.as_str() => skipped += 1,
                Ok(said) if wanted(&said) => {
                    window.push_back(said);
                    if window.len() > count.saturating_add(offset) {
                        window.pop_front();
                    }
                }
                Ok(_) => {}
                Err(_) => skipped += 1,
            }
        }
        window.truncate(window.len().saturating_sub(offset));
        Ok(ReadBack {
            lines: window.into(),
            skipped,
        })
    }
}
