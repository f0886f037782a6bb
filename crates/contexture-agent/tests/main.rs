//! The loop against a scripted model server, and the official SDKs as witnesses of what it sends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

#[path = "../../../tests/common/model_server.rs"]
mod model_server;

mod run;
mod sdk;
