//! The methods, in one table.

mod agents;
mod canvas;
mod context;
pub(crate) mod hub;
mod internal;
mod pool;
mod sessions;
mod tasks;
mod use_tool;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::fleet::Fleet;
use crate::{Answering, Call, Method, RpcError, Who, Why};

/// A method and what it does.
pub(crate) struct Entry {
    pub method: Method,
    pub run: fn(Arc<Fleet>, Call) -> Answering,
}

/// All of them.
pub(crate) fn table() -> Vec<Entry> {
    let mut all = context::table();
    all.extend(sessions::table());
    all.extend(agents::table());
    all.extend(internal::table());
    all.extend(canvas::table());
    all.extend(pool::table());
    all.extend(tasks::table());
    all.extend(hub::table());
    all
}

/// A line of the table.
fn method(
    name: &'static str,
    about: &'static str,
    who: Who,
    params: Value,
    result: Value,
    run: fn(Arc<Fleet>, Call) -> Answering,
) -> Entry {
    Entry {
        method: Method {
            name,
            about,
            who,
            streams: false,
            polled: false,
            params,
            result,
        },
        run,
    }
}

/// One that tells something before its answer.
fn streaming(entry: Entry) -> Entry {
    Entry {
        method: Method {
            streams: true,
            ..entry.method
        },
        ..entry
    }
}

/// One that programs ask again and again.
fn polled(entry: Entry) -> Entry {
    Entry {
        method: Method {
            polled: true,
            ..entry.method
        },
        ..entry
    }
}

/// The schema of an object with these fields; a name that ends with `?` may be absent.
fn object(fields: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = fields
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.ends_with('?'))
        .collect();
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, schema)| (name.trim_end_matches('?').to_owned(), schema.clone()))
        .collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn any_object(about: &str) -> Value {
    json!({"type": "object", "description": about})
}

fn list(of: &Value) -> Value {
    json!({"type": "array", "items": of})
}

/// The parameters of a call. None at all are an empty object.
fn params<T: DeserializeOwned>(call: &mut Call) -> Result<T, RpcError> {
    let given = match call.params.take() {
        Value::Null => json!({}),
        given => given,
    };
    serde_json::from_value(given).map_err(|error| {
        let what = format!("{}: {error}", call.method);
        RpcError::new(Why::Invalid, what).hint("/openapi.json has the parameters of each method")
    })
}

/// What serialises, as an answer.
fn answer(value: impl serde::Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(value).map_err(|error| RpcError::new(Why::Failed, error.to_string()))
}

/// Does something that blocks, such as reading the log.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
) -> Result<T, RpcError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(RpcError::new(Why::Failed, "it ended in the middle")),
    }
}
