use contexture::EntryId;

use crate::{Kind, Record, StoreError, Stream, StreamInfo};

/// A home for streams. Every home passes one suite of tests (`tests/conformance`).
///
/// The calls block: the log is written before anything else happens, so there is nothing to do in
/// the meantime. A host with other work calls from a thread of its own.
pub trait Log: Send + Sync {
    /// Appends records, all or none, and returns when they would survive a power cut; gives the
    /// stream's last id.
    ///
    /// A record that the stream has already is not appended again, so repeating a call whose answer
    /// was lost is safe. The same id with another content is [`StoreError::IdTaken`]. What is new
    /// goes behind `expected`, or behind the records of this call that were there already; where
    /// the stream ends otherwise, that is [`StoreError::WrongTail`] with the end it has.
    fn append(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<Option<EntryId>, StoreError>;

    /// Puts these records in the place of all that the stream has, all or none. For streams that
    /// are a window on the latest, not for logs.
    fn replace(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<(), StoreError>;

    /// The records, one by one, in the order in which they were appended. A stream that does not
    /// exist is empty. What is damaged is skipped and reported as a [`crate::Notice`].
    fn read(&self, stream: &Stream, from: From<'_>) -> Result<Records<'_>, StoreError>;

    /// The last record's id.
    fn tail(&self, stream: &Stream) -> Result<Option<EntryId>, StoreError>;

    /// The streams of a kind, by key.
    fn list(&self, kind: Kind) -> Result<Vec<StreamInfo>, StoreError>;

    /// Removes a stream; whether it was there.
    fn remove(&self, stream: &Stream) -> Result<bool, StoreError>;

    /// Whether the user began the stream, or nobody has yet. What came with a project's folder from somebody else may
    /// be read, and is not continued.
    fn is_own(&self, stream: &Stream) -> Result<bool, StoreError>;
}

/// Refuses what somebody else began: a model must not see it as the user's.
pub fn check_own(log: &dyn Log, stream: &Stream) -> Result<(), StoreError> {
    if log.is_own(stream)? {
        return Ok(());
    }
    Err(StoreError::Foreign {
        stream: stream.clone(),
    })
}

/// Records as they are read.
pub type Records<'a> = Box<dyn Iterator<Item = Result<Record, StoreError>> + 'a>;

/// Where the caller thinks that a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected<'a> {
    /// With this record; `None` means that it is empty.
    Tail(Option<&'a EntryId>),
    /// Wherever it does.
    Any,
}

impl<'a> Expected<'a> {
    /// The stream is empty.
    pub const EMPTY: Self = Self::Tail(None);

    /// The stream ends with this record.
    pub fn after(id: &'a EntryId) -> Self {
        Self::Tail(Some(id))
    }
}

/// Where to begin to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From<'a> {
    /// At the first record.
    Start,
    /// Behind this one. [`StoreError::NoEntry`] when it is not there.
    After(&'a EntryId),
}
