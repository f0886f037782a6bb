//! What is PostgreSQL's own: connecting, the schema, many writers, a server that goes away.

mod connecting;
mod outage;
mod proxy;
mod schema;
mod streams;

use contexture_store::{Key, Record, Stream};
use serde_json::json;

fn stream(name: &str) -> Stream {
    Stream::session(Key::new(name).unwrap())
}

fn record(id: &str) -> Record {
    Record::new(&json!({"id": id, "type": "custom", "payload": {}})).unwrap()
}
