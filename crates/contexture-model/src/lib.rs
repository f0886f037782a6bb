//! Model clients: the exact bytes that a build made go out, a message comes back.
//!
//! **Lives here:** the addresses of providers and their keys, HTTP and event streams, replies in the
//! three forms that providers speak, errors as types, and how often to try again; the model files of
//! this machine and how they come there ([`weights`]).
//!
//! **Never lives here:** anything that makes or changes a request's body: its digest is in the log.
//! And nothing that runs a tool, so trying again never runs one twice.
//!
//! Reading a reply is apart from receiving it ([`read`]): what a stream says follows from its events
//! alone, and can be tested event by event.

mod client;
mod endpoint;
mod error;
pub mod gguf;
#[cfg(feature = "local")]
pub mod local;
mod mask;
pub mod read;
mod reply;
mod sse;
pub mod weights;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use contexture::tokens::Tokenizer;

pub use client::{Client, Patience};
pub use endpoint::{Api, Endpoint, Provider};
pub use error::ModelError;
pub use mask::{Secret, mask, names_key};
pub use reply::{Delta, MAX_CALLS, Reply, Stop, Usage};

/// Something that answers requests.
pub trait Model: Send + Sync {
    /// The model's name, as requests name it.
    fn name(&self) -> &str;

    /// The form of the requests that it takes.
    fn api(&self) -> Api;

    /// What counts as the model does, where that is known better than by its name.
    fn tokenizer(&self) -> Option<Arc<dyn Tokenizer>> {
        None
    }

    /// The most tokens of a request and its answer, where the model says so.
    fn window(&self) -> Option<usize> {
        None
    }

    /// Whether it is so small that it is told little: it reads slowly, and long instructions confuse it.
    fn is_small(&self) -> bool {
        false
    }

    /// Sends a request's body, byte for byte, and gives what the model said. What arrives on the way
    /// is shown to `on_delta`. Dropping the future ends the call.
    fn call<'a>(&'a self, body: Vec<u8>, on_delta: &'a mut (dyn FnMut(Delta) + Send))
    -> Called<'a>;
}

/// A call under way.
pub type Called<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;
