//! Agents as they are, and as nobody wants them to be.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod beginning;
mod common;
mod faults;
mod files;
#[path = "../../../../tests/common/model_server.rs"]
mod model_server;
mod permission;
mod real;
mod terminals;
mod transcript;
mod turns;
