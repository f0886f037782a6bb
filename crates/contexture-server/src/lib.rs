//! The daemon: a fleet's [`contexture_fleet::Service`] over HTTP.
//!
//! **Lives here:** JSON-RPC, events, health, who may come in; where a project's daemon is found
//! ([`Daemon`]), and how it is spoken with ([`Client`]).
//!
//! **Never lives here:** business rules. What a method does, and to whom, is the service's.

mod access;
mod body;
pub mod client;
mod connections;
mod daemon;
mod door;
mod events;
mod guard;
mod limits;
mod methods;
mod openapi;
mod pages;
mod patience;
mod refusal;
mod rpc;
mod secrets;
mod serve;
mod sign_in;
mod stream;
mod throttle;

pub use client::{Client, ClientError, Fault};
pub use daemon::{Daemon, DaemonError, DaemonLock};
pub use door::{Door, router};
pub use openapi::openapi;
pub use serve::{Options, ServerError, serve};
pub use sign_in::SignIns;
