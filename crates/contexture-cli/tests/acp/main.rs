//! `ctx acp`, as an editor sees it: the built program, a client with the official crate, a scripted
//! model, real tools, a real log.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

#[path = "../../../../tests/common/mod.rs"]
mod common;
mod host;
mod hostile;
mod js;
mod load;
#[path = "../../../../tests/common/model_server.rs"]
mod model_server;
mod permission;
#[path = "../../../../tests/agent/scene.rs"]
mod scene;
mod servers;
mod stop;
mod turns;
