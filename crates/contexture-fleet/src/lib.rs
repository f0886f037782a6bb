//! Agents of any make, each started with the right context.
//!
//! **Lives here:** agents and their lifecycle, connections to them over the Agent Client Protocol, session
//! tokens, providers that look something up, the internal tools, and what happened ([`Bus`]).
//!
//! **Never lives here:** HTTP. What can be asked of a fleet is [`Service`], whatever it is asked over.

mod bus;
mod event;
mod rpc;
pub mod tokens;

pub use bus::{Bus, Happened, Subscription};
pub use event::Event;
pub use rpc::{Answering, Call, Caller, Method, RpcError, Service, Updates, Who, Why};
