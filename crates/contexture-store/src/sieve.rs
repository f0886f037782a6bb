//! Which entries of a damaged log belong to it.
//!
//! An entry names the one that it follows. Where that one is missing, either the entry is a stray
//! from another log, or the one before it was lost. The next entry tells: what others follow belongs.

use contexture::{Entry, EntryId, View};
use serde_json::Map;

use crate::{Record, StoreError};

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// The entry's id.
    pub id: EntryId,
    /// What is odd about it.
    pub why: String,
    /// Whether it counts all the same.
    pub kept: bool,
}

/// Takes the records of a session one after another and folds those that belong to it.
#[derive(Default)]
pub(crate) struct Sieve {
    pub view: View,
    /// Whose parent is missing: the next one tells whether it belongs.
    doubtful: Option<Entry>,
}

impl Sieve {
    /// Takes the next record. Errors are for what a newer program wrote; all else is judged, by
    /// `judged`, in the order of the log.
    pub fn take(
        &mut self,
        record: &Record,
        judged: &mut dyn FnMut(Judged),
    ) -> Result<(), StoreError> {
        let entry = match record.entry() {
            Ok(entry) => entry,
            Err(error) if is_newer(&error) => return Err(error),
            Err(error) => {
                judged(Judged::out(record.id(), error.to_string()));
                return Ok(());
            }
        };
        if let Some(doubtful) = self.doubtful.take() {
            let followed = entry.parent_id.as_ref() == Some(&doubtful.id);
            self.settle(doubtful, followed, judged);
        }
        match &entry.parent_id {
            Some(parent) if self.lacks(parent) => self.doubtful = Some(entry),
            _ => self.push(entry, None, judged),
        }
        Ok(())
    }

    /// There are no more.
    pub fn end(&mut self, judged: &mut dyn FnMut(Judged)) {
        if let Some(doubtful) = self.doubtful.take() {
            self.settle(doubtful, false, judged);
        }
        self.view.fold_up();
    }

    fn lacks(&self, parent: &EntryId) -> bool {
        !self.view.log().is_empty() && self.view.position(parent).is_none()
    }

    fn settle(&mut self, mut entry: Entry, belongs: bool, judged: &mut dyn FnMut(Judged)) {
        let Some(lost) = entry.parent_id.clone() else {
            return;
        };
        if !belongs {
            let why = format!(
                "entry {}: its parent `{lost}` is not in the log before it",
                entry.id
            );
            judged(Judged::out(&entry.id, why));
            return;
        }
        let meta = entry.meta.get_or_insert_with(Map::new);
        meta.insert("lostParentId".to_owned(), lost.as_str().into());
        entry.parent_id = self.view.tail().cloned();
        let why = format!("entry {}: the entry `{lost}` before it is lost", entry.id);
        self.push(entry, Some(why), judged);
    }

    fn push(&mut self, entry: Entry, odd: Option<String>, judged: &mut dyn FnMut(Judged)) {
        let id = entry.id.clone();
        let before = self.view.log().len();
        match self.view.push_unfolded(entry) {
            Ok(_) if self.view.log().len() == before => {
                judged(Judged::out(
                    &id,
                    format!("entry `{id}` stands here a second time"),
                ));
            }
            Ok(_) => judged(Judged {
                id,
                odd,
                kept: true,
            }),
            Err(error) => judged(Judged::out(&id, error.to_string())),
        }
    }
}

/// What became of a record.
pub(crate) struct Judged {
    pub id: EntryId,
    /// What is odd about it, if anything is.
    pub odd: Option<String>,
    /// Whether it is in the view.
    pub kept: bool,
}

impl Judged {
    fn out(id: &EntryId, why: String) -> Self {
        Self {
            id: id.clone(),
            odd: Some(why),
            kept: false,
        }
    }
}

/// Whether the entry is of a version, or of a type, that came after this program.
pub(crate) fn is_newer(error: &StoreError) -> bool {
    use contexture::ContextError::InvalidInput;
    let StoreError::Context(InvalidInput { place, what, .. }) = error else {
        return false;
    };
    place == "payload.version" || (place == "type" && what.starts_with("unknown entry type"))
}
