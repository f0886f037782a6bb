//! What is PostgreSQL's own: connecting, the schema, many writers, a server that goes away.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod connecting;
mod outage;
mod proxy;
mod schema;
#[path = "../common/postgres.rs"]
mod server;
mod streams;

use contexture_store::{Key, Record, Stream};
use serde_json::json;

fn stream(name: &str) -> Stream {
    Stream::session(Key::new(name).unwrap())
}

fn record(id: &str) -> Record {
    Record::new(&json!({"id": id, "type": "custom", "payload": {}})).unwrap()
}
