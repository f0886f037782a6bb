use contexture::{Entry, EntryId, Payload, View};

use super::Sessions;
use crate::{Expected, Key, Record, StoreError, Stream};

/// A session that is being continued.
pub struct SessionLog {
    pub(super) sessions: Sessions,
    pub(super) stream: Stream,
    pub(super) tail: EntryId,
    /// Folded only when an entry speaks of others, or somebody asks.
    pub(super) view: Option<View>,
    /// The header of a session that is not written yet: it goes out with what comes first.
    pub(super) header: Option<Record>,
}

impl SessionLog {
    /// Its name.
    pub fn key(&self) -> &Key {
        &self.stream.key
    }

    /// Its last entry.
    pub fn tail(&self) -> &EntryId {
        &self.tail
    }

    /// The log and its fold.
    pub fn view(&mut self) -> Result<&View, StoreError> {
        if self.view.is_none() {
            self.view = Some(match &self.header {
                Some(header) => View::fold([header.entry()?])?,
                None => self.sessions.load(&self.stream.key)?.view,
            });
        }
        Ok(self.view.get_or_insert_default())
    }

    /// Drops the fold, for whoever keeps the log and does not look at it: it is made again when somebody asks.
    pub fn release(&mut self) {
        self.view = None;
    }

    /// Appends entries, all or none, once it is sure that they make sense in this log.
    pub fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let entries = records
            .iter()
            .map(Record::entry)
            .collect::<Result<Vec<_>, _>>()?;
        let mut last = self.tail.clone();
        for entry in &entries {
            if speaks_of_others(entry, &last) {
                self.view()?;
            }
            last = entry.id.clone();
        }
        let before = self.view.as_ref().map(|view| view.log().len());
        match self.push_all(entries).and_then(|()| self.write(records)) {
            Ok(tail) => {
                // Not the last of these, where some were there before.
                self.tail = tail.unwrap_or(last);
                Ok(())
            }
            Err(error) => {
                if let (Some(view), Some(before)) = (&mut self.view, before) {
                    view.truncate(before);
                }
                Err(error)
            }
        }
    }

    /// Gives where the log ends now.
    fn write(&mut self, records: &[Record]) -> Result<Option<EntryId>, StoreError> {
        let log = self.sessions.log();
        let Some(header) = &self.header else {
            return log.append(&self.stream, Expected::after(&self.tail), records);
        };
        let all: Vec<Record> = [header].into_iter().chain(records).cloned().collect();
        match log.append(&self.stream, Expected::EMPTY, &all) {
            Err(StoreError::WrongTail { stream, .. } | StoreError::IdTaken { stream, .. }) => {
                Err(StoreError::Exists { stream })
            }
            other => {
                let tail = other?;
                self.header = None;
                Ok(tail)
            }
        }
    }

    /// Appends one entry that follows the last, and gives its id.
    pub fn say(&mut self, now: &str, payload: Payload) -> Result<EntryId, StoreError> {
        let entry = Entry::derived(Some(&self.tail), now, payload);
        self.append(&[Record::try_from(&entry)?])?;
        Ok(entry.id)
    }

    fn push_all(&mut self, entries: Vec<Entry>) -> Result<(), StoreError> {
        if let Some(view) = &mut self.view {
            for entry in entries {
                view.push_unfolded(entry)?;
            }
            view.fold_up();
        }
        Ok(())
    }
}

/// Whether the entry only makes sense where others are: it cannot be checked alone.
fn speaks_of_others(entry: &Entry, last: &EntryId) -> bool {
    let branches = entry
        .parent_id
        .as_ref()
        .is_some_and(|parent| parent != last);
    branches
        || matches!(
            entry.payload,
            Payload::Pin(_)
                | Payload::Unpin(_)
                | Payload::Redaction(_)
                | Payload::Revert(_)
                | Payload::CompactionSummary(_)
        )
}
