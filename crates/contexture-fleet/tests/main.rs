//! Agents over ACP, the hub, and the tasks that it carries.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    missing_docs
)]

#[path = "../../../tests/common/model_server.rs"]
mod model_server;
#[path = "../../../tests/common/nats_server.rs"]
mod nats_server;

mod acp;
mod hub;
mod providers;
mod secrets;
mod work;
