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
mod mask;
pub mod read;
mod reply;
mod sse;
pub mod weights;

use std::future::Future;
use std::pin::Pin;

pub use client::{Client, Patience};
pub use endpoint::{Api, Endpoint, Provider};
pub use error::ModelError;
pub use mask::{Secret, mask};
pub use reply::{Delta, Reply, Stop, Usage};

/// Something that answers requests.
pub trait Model: Send + Sync {
    /// The model's name, as requests name it.
    fn name(&self) -> &str;

    /// The form of the requests that it takes.
    fn api(&self) -> Api;

    /// Sends a request's body, byte for byte, and gives what the model said. What arrives on the way
    /// is shown to `on_delta`. Dropping the future ends the call.
    fn call<'a>(&'a self, body: Vec<u8>, on_delta: &'a mut (dyn FnMut(Delta) + Send))
    -> Called<'a>;
}

/// A call under way.
pub type Called<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;
