//! Model clients against a scripted server, model files, and the engine in this process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::needless_pass_by_value,
    missing_docs
)]

#[path = "../../../tests/common/model_server.rs"]
mod model_server;
#[path = "../../../tests/common/small_model.rs"]
mod small_model;

mod client;
mod gguf;
#[cfg(feature = "local")]
mod local;
