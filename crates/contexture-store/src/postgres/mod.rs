//! Streams in PostgreSQL: for more than one machine, and for those who have one anyway.
//!
//! Two tables in a schema of their own (`migrations/`), an append is one call of a function in the
//! database. Any number of processes write to a stream; its row is the lock.

mod batch;
mod connect;
mod failure;
mod ids;
mod migrate;
mod pages;
mod pool;
mod target;
mod tls;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use contexture::EntryId;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use self::batch::Batch;
use self::connect::rows;
use self::failure::Failure;
use self::pages::Pages;
use self::pool::Pool;
use self::target::Target;
use self::worker::Worker;
use crate::log::{From, Log, Records};
use crate::{Expected, Key, Kind, Record, StoreError, Stream, StreamInfo};

/// How a database is used.
#[derive(Debug, Clone)]
pub struct PgOptions {
    /// How long to wait for a server that was there and is gone. What was under way is done then.
    /// The first connection is tried once, unless the server says that it is starting.
    pub patience: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// How many connections there may be. They are opened when they are needed.
    pub connections: usize,
}

impl Default for PgOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            connections: 8,
        }
    }
}

/// The streams in a PostgreSQL database.
pub struct PgLog {
    worker: Worker,
}

impl PgLog {
    /// Connects to the database of a URL, and makes or updates our schema in it.
    ///
    /// `sslmode` in the URL is `disable`, `prefer` (when not said), `require`, `verify-ca` or
    /// `verify-full`, with the meaning that PostgreSQL's own clients give them: the first three do
    /// not check who the server is.
    pub fn connect(url: &str, options: PgOptions) -> Result<Self, StoreError> {
        let target = Target::parse(url)?;
        let tls = tls::connector(&target)?;
        let worker = Worker::start(Pool::new(target, tls, options))?;
        worker.call(async |client: &Client| migrate::run(client).await)?;
        Ok(Self { worker })
    }

    /// Whether a URL names a database on this machine: what goes there goes nowhere else.
    pub fn is_local(url: &str) -> Result<bool, StoreError> {
        Ok(Target::parse(url)?.is_local())
    }
}

const APPEND: &str = "SELECT outcome, at, body, tail, long_body
    FROM contexture.append($1, $2, $3, $4, $5, $6)";

const REPLACE: &str = "SELECT outcome, tail, long_body
    FROM contexture.replace($1, $2, $3, $4, $5, $6)";

const TAIL: &str = "SELECT tail, contexture.long_body(id, tail) AS long_body
    FROM contexture.streams WHERE kind = $1 AND key = $2";

const LIST: &str = "SELECT key, bytes, updated
    FROM contexture.streams WHERE kind = $1 ORDER BY key";

const REMOVE: &str = "DELETE FROM contexture.streams WHERE kind = $1 AND key = $2 RETURNING id";

impl Log for PgLog {
    fn append(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<Option<EntryId>, StoreError> {
        if records.is_empty() {
            return self.tail(stream);
        }
        let mut batch = Batch::new(stream, expected, records)?;
        loop {
            let sent = Arc::new(batch);
            let given = Arc::clone(&sent);
            let answer = self.worker.call(async move |client: &Client| {
                let rows = rows(client, APPEND, &given.parameters()).await?;
                rows.iter()
                    .map(Appended::read)
                    .collect::<Result<Vec<_>, _>>()
            })?;
            let mut differing = Vec::new();
            for row in answer {
                match row {
                    Appended::Ok(tail) => return Ok(tail),
                    Appended::WrongTail { first, actual } => {
                        // What stands before it in this call was there already.
                        let before = first.checked_sub(1).and_then(|at| records.get(at));
                        let expected = match expected {
                            Expected::Tail(given) => before.map(Record::id).or(given),
                            Expected::Any => None,
                        };
                        return Err(wrong_tail(stream, expected, actual));
                    }
                    Appended::Differs { at, body } => differing.push((at, body)),
                }
            }
            batch = Arc::unwrap_or_clone(sent);
            batch.take_over(stream, records, differing)?;
        }
    }

    fn replace(
        &self,
        stream: &Stream,
        expected: Expected<'_>,
        records: &[Record],
    ) -> Result<(), StoreError> {
        let batch = Batch::new(stream, expected, records)?.without_repeats();
        let actual: Result<(), Option<EntryId>> =
            self.worker.call(async move |client: &Client| {
                let row = client.query_typed_one(REPLACE, &batch.parameters()).await?;
                Ok(match row.try_get("outcome")? {
                    "ok" => Ok(()),
                    _ => Err(tail_of(&row)?),
                })
            })?;
        actual.map_err(|actual| match expected {
            Expected::Tail(given) => wrong_tail(stream, given, actual),
            Expected::Any => wrong_tail(stream, None, actual),
        })
    }

    fn read(&self, stream: &Stream, from: From<'_>) -> Result<Records<'_>, StoreError> {
        Ok(Box::new(Pages::open(&self.worker, stream, from)?))
    }

    fn tail(&self, stream: &Stream) -> Result<Option<EntryId>, StoreError> {
        let (kind, key) = names(stream);
        self.worker.call(async move |client: &Client| {
            let name = [(&kind as _, Type::TEXT), (&key as _, Type::TEXT)];
            match client.query_typed_opt(TAIL, &name).await? {
                Some(row) => Ok(tail_of(&row)?),
                None => Ok(None),
            }
        })
    }

    fn list(&self, kind: Kind) -> Result<Vec<StreamInfo>, StoreError> {
        self.worker.call(async move |client: &Client| {
            let rows = rows(client, LIST, &[(&kind.as_str(), Type::TEXT)]).await?;
            let mut out = Vec::with_capacity(rows.len());
            for row in rows {
                // A row that we did not write.
                let Ok(key) = Key::new(row.try_get::<_, String>("key")?) else {
                    continue;
                };
                out.push(StreamInfo {
                    stream: Stream { kind, key },
                    bytes: u64::try_from(row.try_get::<_, i64>("bytes")?).unwrap_or(0),
                    updated: Some(row.try_get("updated")?),
                });
            }
            Ok(out)
        })
    }

    /// As [`Log::remove`]; when the connection is lost right behind it, it may say that the stream
    /// was not there.
    fn remove(&self, stream: &Stream) -> Result<bool, StoreError> {
        let (kind, key) = names(stream);
        self.worker.call(async move |client: &Client| {
            let name = [(&kind as _, Type::TEXT), (&key as _, Type::TEXT)];
            let rows = rows(client, REMOVE, &name).await?;
            Ok(!rows.is_empty())
        })
    }

    fn is_own(&self, _: &Stream) -> Result<bool, StoreError> {
        // Only the user names a database, or a project that they trust.
        Ok(true)
    }
}

/// A row of the answer to an append.
enum Appended {
    Ok(Option<EntryId>),
    WrongTail {
        /// The first record that is new, counted from 0.
        first: usize,
        actual: Option<EntryId>,
    },
    Differs {
        at: usize,
        body: String,
    },
}

impl Appended {
    fn read(row: &Row) -> Result<Self, Failure> {
        let at = |row: &Row| -> Result<usize, Failure> {
            let at: i64 = row.try_get("at")?;
            Ok(usize::try_from(at - 1).unwrap_or(0))
        };
        Ok(match row.try_get("outcome")? {
            "ok" => Self::Ok(tail_of(row)?),
            "tail" => Self::WrongTail {
                first: at(row)?,
                actual: tail_of(row)?,
            },
            _ => Self::Differs {
                at: at(row)?,
                body: row.try_get("body")?,
            },
        })
    }
}

fn tail_of(row: &Row) -> Result<Option<EntryId>, Failure> {
    let tail: Option<&str> = row.try_get("tail")?;
    let body: Option<&str> = row.try_get("long_body")?;
    Ok(tail.map(|tail| ids::decode(tail, body)))
}

fn wrong_tail(stream: &Stream, expected: Option<&EntryId>, actual: Option<EntryId>) -> StoreError {
    StoreError::WrongTail {
        stream: stream.clone(),
        expected: expected.cloned(),
        actual,
    }
}

fn names(stream: &Stream) -> (&'static str, String) {
    (stream.kind.as_str(), stream.key.as_str().to_owned())
}
