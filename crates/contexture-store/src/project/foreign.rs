//! What somebody else put into the project's folder.

use super::ProjectLog;
use crate::{Kind, Log, Record, StoreError, StreamInfo};

/// A stream that this user did not begin, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Which one, and how much it holds.
    pub info: StreamInfo,
    /// Its first record: the claim is for what begins so, and for nothing that is put in its place.
    pub first: Record,
}

impl ProjectLog {
    /// The sessions, chats, memories and canvases that this user did not begin here. [`Log::read`] gives what is in
    /// one.
    pub fn foreign(&self) -> Result<Vec<Foreign>, StoreError> {
        let mut all = Vec::new();
        for kind in Kind::DATA {
            for info in self.data.list(kind)? {
                if let Some(first) = self.data.first(&info.stream)?
                    && !self.claimed(&info.stream, &first)?
                {
                    all.push(Foreign { info, first });
                }
            }
        }
        Ok(all)
    }

    /// Makes a stream the user's own from now on: somebody said so who knows what is in it.
    pub fn claim_foreign(&self, foreign: &Foreign) -> Result<(), StoreError> {
        self.claim(&foreign.info.stream, &foreign.first)
    }

    /// Keeps a stream the user's own that was repaired: its first record may be another by now.
    pub fn claim_repaired(&self, stream: &crate::Stream) -> Result<(), StoreError> {
        match self.data.first(stream)? {
            Some(first) if !stream.kind.acts() => self.claim(stream, &first),
            _ => Ok(()),
        }
    }
}
