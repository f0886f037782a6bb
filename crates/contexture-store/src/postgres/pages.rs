//! Reading, a page at a time: memory stays flat, and no connection is held while the reader thinks.

use std::vec;

use contexture::EntryId;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::connect::rows;
use super::worker::Worker;
use super::{ids, names};
use crate::log::From;
use crate::{Record, StoreError, Stream};

/// The records of a stream from some position to what was its end when reading began.
pub struct Pages<'l> {
    worker: &'l Worker,
    stream: Stream,
    /// The stream's row. Another one has its name when it was replaced.
    row: i64,
    /// The last position that was read.
    at: i64,
    end: i64,
    page: vec::IntoIter<Record>,
}

/// A page ends at so many rows or bytes, whichever comes first, but has one row at least.
const ROWS: i64 = 1_000;
const BYTES: i64 = 4 << 20;

const OPEN: &str = "SELECT s.id, s.entries,
        (SELECT e.position FROM contexture.entries e WHERE e.stream = s.id AND e.id = $3) AS after
    FROM contexture.streams s WHERE s.kind = $1 AND s.key = $2";

const PAGE: &str = "SELECT position, id, body FROM (
        SELECT position, id, body, octet_length(body) AS bytes,
            sum(octet_length(body)) OVER (ORDER BY position) AS total
        FROM (
            SELECT position, id, body FROM contexture.entries
            WHERE stream = $1 AND position > $2 AND position <= $3
            ORDER BY position LIMIT $4
        ) AS rows
    ) AS page WHERE total - bytes < $5 ORDER BY position";

const STILL_THERE: &str = "SELECT 1 FROM contexture.streams WHERE id = $1";

impl<'l> Pages<'l> {
    pub fn open(worker: &'l Worker, stream: &Stream, from: From<'_>) -> Result<Self, StoreError> {
        let (kind, key) = names(stream);
        let after = match from {
            From::Start => None,
            From::After(id) => Some(ids::encode(id)),
        };
        let found = worker.call(async move |client: &Client| {
            let name = [
                (&kind as _, Type::TEXT),
                (&key as _, Type::TEXT),
                (&after as _, Type::TEXT),
            ];
            let row = client.query_typed_opt(OPEN, &name).await?;
            let Some(row) = row else { return Ok(None) };
            let after: Option<i64> = row.try_get("after")?;
            Ok(Some((row.try_get("id")?, row.try_get("entries")?, after)))
        })?;
        let (row, end, after) = found.unwrap_or_default();
        let at = match (from, after) {
            (From::Start, _) => 0,
            (From::After(_), Some(position)) => position,
            (From::After(id), None) => return Err(no_entry(stream, id)),
        };
        Ok(Self {
            worker,
            stream: stream.clone(),
            row,
            at,
            end,
            page: Vec::new().into_iter(),
        })
    }

    fn turn(&mut self) -> Result<(), StoreError> {
        let (row, at, end) = (self.row, self.at, self.end);
        let read = self.worker.call(async move |client: &Client| {
            let range = [
                (&row as _, Type::INT8),
                (&at as _, Type::INT8),
                (&end as _, Type::INT8),
                (&ROWS as _, Type::INT8),
                (&BYTES as _, Type::INT8),
            ];
            let mut records = Vec::new();
            let mut last = None;
            for row in rows(client, PAGE, &range).await? {
                last = Some(row.try_get("position")?);
                let body: String = row.try_get("body")?;
                let id = ids::decode(row.try_get("id")?, Some(&body));
                records.push(Record::trusted(id, body));
            }
            if let Some(last) = last {
                return Ok(Some((last, records)));
            }
            let there = client
                .query_typed_opt(STILL_THERE, &[(&row, Type::INT8)])
                .await?;
            // Somebody deleted rows by hand: what is left was read.
            Ok(there.map(|_| (end, records)))
        })?;
        let Some((last, records)) = read else {
            self.at = self.end;
            return Err(StoreError::Replaced {
                stream: self.stream.clone(),
            });
        };
        self.at = last;
        self.page = records.into_iter();
        Ok(())
    }
}

impl Iterator for Pages<'_> {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.page.next() {
                return Some(Ok(record));
            }
            if self.at >= self.end {
                return None;
            }
            if let Err(error) = self.turn() {
                // One error, and then the end.
                self.at = self.end;
                return Some(Err(error));
            }
        }
    }
}

fn no_entry(stream: &Stream, id: &EntryId) -> StoreError {
    StoreError::NoEntry {
        stream: stream.clone(),
        id: id.to_string(),
        candidates: Vec::new(),
    }
}
