//! The engine in this process, with the real small model: beside llama.cpp's own server, and alone.

mod answers;
mod calls;
mod prefix;
mod server;
mod sliding;
mod templates;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::small_model::weights;
use contexture_model::local::{LocalModel, LocalOptions};
use contexture_model::{Delta, Model, ModelError, Reply};
use serde_json::{Value, json};

/// One thread each: tests run beside one another.
pub const OPTIONS: LocalOptions = LocalOptions {
    window: None,
    resting: None,
    threads: Some(1),
};

/// A model of its own, with an empty cache.
pub fn open() -> Option<LocalModel> {
    let options = OPTIONS;
    Some(LocalModel::open("local:smollm2", &weights()?, options).unwrap())
}

/// Has a body answered; gives the reply and what was shown on the way.
pub fn ask(model: &dyn Model, body: &Value) -> (Result<Reply, ModelError>, String) {
    let mut shown = String::new();
    let mut on_delta = |delta| {
        if let Delta::Text(text) = delta {
            shown.push_str(&text);
        }
    };
    let reply = runtime().block_on(model.call(body.to_string().into_bytes(), &mut on_delta));
    (reply, shown)
}

pub fn runtime() -> MutexGuard<'static, tokio::runtime::Runtime> {
    static RUNTIME: OnceLock<Mutex<tokio::runtime::Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Mutex::new(runtime.unwrap())
    });
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A body with these messages, answered in at most so many tokens, always alike.
pub fn body(messages: Value, most: usize) -> Value {
    json!({"model": "local:smollm2", "messages": messages, "temperature": 0, "max_tokens": most})
}

/// The tokens of a reply's request, and those of them that were in the cache.
pub fn read(reply: &Reply) -> (u64, u64) {
    let usage = reply.usage.as_ref().unwrap();
    (usage.input().unwrap(), usage.cached().unwrap())
}
