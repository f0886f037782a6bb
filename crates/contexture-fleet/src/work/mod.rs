//! Work: tasks go out to executors, and what comes back is written down.
//!
//! The [`Dispatcher`] has the board (`contexture::task`) and its log. It alone decides; a hub carries what it says to
//! [`Worker`]s and back. A worker is an executor's process, or a part of this one: it says that it is here, takes what
//! it is offered, asks before it begins, has its [`Executor`] do it, and reports.
//!
//! Everything that a worker says is sealed with its own key ([`seal`]): nobody speaks for another, whatever the hub
//! lets through. What it may speak of is decided by the board: the attempt that it was handed, once.

mod dispatcher;
mod executor;
mod hear;
mod message;
mod offers;
mod presence;
pub mod seal;
mod staff;
mod worker;

pub use dispatcher::{Dispatcher, WorkOptions};
pub use executor::{Came, Executor, Job, Working};
pub use staff::came;
pub use worker::{Worker, WorkerOptions};

/// The module that hands out tasks.
pub const DISPATCHER: &str = "dispatcher";
