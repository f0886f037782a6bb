//! Runs against a scripted model server, in the three forms that providers speak, with real logs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../../tests/common/model_server.rs"]
mod model_server;

mod faults;
mod governance;
mod harness;
mod steps;
