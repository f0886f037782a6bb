//! What an append or a replacement sends.

use std::collections::HashMap;

use contexture::EntryId;
use tokio_postgres::types::{ToSql, Type};

use super::ids;
use crate::{Expected, Record, StoreError, Stream};

/// The parameters of the functions `append` and `replace` in the database.
#[derive(Clone)]
pub struct Batch {
    kind: &'static str,
    key: String,
    any: bool,
    expected: Option<String>,
    ids: Vec<String>,
    bodies: Vec<String>,
}

impl Batch {
    /// The records in the form of the columns. An id that stands there twice has the first one's
    /// text, and an error when it does not say the same.
    pub fn new(
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<Self, StoreError> {
        let mut bodies = Vec::with_capacity(records.len());
        let mut seen: HashMap<&EntryId, &Record> = HashMap::with_capacity(records.len());
        for record in records {
            let first = *seen.entry(record.id()).or_insert(record);
            if !record.says(first.text()) {
                return Err(taken(stream, record));
            }
            bodies.push(first.text().to_owned());
        }
        let (any, tail) = match expected {
            Expected::Any => (true, None),
            Expected::Tail(tail) => (false, tail),
        };
        Ok(Self {
            kind: stream.kind.as_str(),
            key: stream.key.as_str().to_owned(),
            any,
            expected: tail.map(ids::encode),
            ids: records
                .iter()
                .map(|record| ids::encode(record.id()))
                .collect(),
            bodies,
        })
    }

    /// Each id once.
    pub fn without_repeats(mut self) -> Self {
        let mut seen = std::collections::HashSet::new();
        let (ids, bodies) = self
            .ids
            .drain(..)
            .zip(self.bodies.drain(..))
            .filter(|(id, _)| seen.insert(id.clone()))
            .unzip();
        (self.ids, self.bodies) = (ids, bodies);
        self
    }

    /// Takes the texts that the stream has already for its own, when they say the same. That is
    /// found out here, because the database does not compare numbers as we do.
    pub fn take_over(
        &mut self,
        stream: &Stream,
        records: &[Record],
        differing: Vec<(usize, String)>,
    ) -> Result<(), StoreError> {
        for (at, body) in differing {
            let (Some(record), Some(own)) = (records.get(at), self.bodies.get_mut(at)) else {
                continue;
            };
            if !record.says(&body) {
                return Err(taken(stream, record));
            }
            *own = body;
        }
        Ok(())
    }

    /// In the order in which the functions take them.
    pub fn parameters(&self) -> [(&(dyn ToSql + Sync), Type); 6] {
        [
            (&self.kind, Type::TEXT),
            (&self.key, Type::TEXT),
            (&self.any, Type::BOOL),
            (&self.expected, Type::TEXT),
            (&self.ids, Type::TEXT_ARRAY),
            (&self.bodies, Type::TEXT_ARRAY),
        ]
    }
}

fn taken(stream: &Stream, record: &Record) -> StoreError {
    StoreError::IdTaken {
        stream: stream.clone(),
        id: record.id().clone(),
    }
}
