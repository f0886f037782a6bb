//! `ctx run`, the whole of it: a scripted model, real tools, a real MCP server, a skill, a real log.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

#[path = "../common/mod.rs"]
mod common;
mod config;
mod crash;
#[path = "../common/model_server.rs"]
mod model_server;
mod real_model;
mod run;
mod scene;
#[path = "../common/small_model.rs"]
mod small_model;
mod usage;
