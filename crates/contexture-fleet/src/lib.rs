//! Agents of any make, each started with the right context.
//!
//! **Lives here:** agents and their lifecycle, connections to them over the Agent Client Protocol, session
//! tokens, providers that look something up, the internal tools, tasks and who does them ([`work`]), and what
//! happened ([`Bus`]).
//!
//! **Never lives here:** HTTP. What can be asked of a fleet is [`Service`], whatever it is asked over.

pub mod acp;
mod agents;
pub mod backends;
mod bus;
mod canvas;
mod event;
mod fleet;
pub mod hub;
mod journal;
mod live;
mod methods;
mod prepare;
mod rpc;
pub mod tokens;
pub mod work;

pub use agents::{Permissions, Record, Spec, State};
pub use bus::{Bus, Happened, Subscription};
pub use canvas::{Canvas, MOST_BYTES as CANVAS_BYTES};
pub use event::Event;
pub use fleet::{Fleet, FleetError, Options, URL_VARIABLE, room};
pub use journal::Hook;
pub use live::ToolDelta;
pub use methods::hub::{delivered, hub_error};
pub use prepare::{MOST_BYTES, PATIENCE, PrepareError, Prepared, SessionInjector};
pub use rpc::{Answering, Call, Caller, Method, RpcError, Service, Updates, Who, Why};
