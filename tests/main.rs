//! The built `ctx`, tried from outside: one binary for all of these tests, because each one links the whole
//! workspace. A folder is a group: `cargo nextest run --release -E 'test(/^fleet::/)'` runs one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    missing_docs
)]

#[path = "common/browser.rs"]
mod browser;
mod common;
#[path = "common/model_server.rs"]
mod model_server;
#[path = "common/nats_server.rs"]
#[allow(dead_code, reason = "the tests of the fleet use the rest")]
mod nats_server;
#[path = "../crates/contexture-store/tests/common/postgres.rs"]
#[allow(dead_code, reason = "the store's own tests use the rest")]
mod postgres_server;
#[path = "common/small_model.rs"]
mod small_model;
#[path = "common/terminal.rs"]
mod terminal;

mod acp;
mod agent;
mod attacks;
mod chat;
mod cli;
mod demo;
mod docs;
mod faults;
mod fleet;
mod inject;
mod json;
#[cfg(feature = "local")]
mod local;
mod model;
mod pool;
mod reference;
mod session_tools;
mod sessions;
mod work;
