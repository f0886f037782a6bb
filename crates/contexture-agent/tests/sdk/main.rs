//! The official SDKs as witnesses: their types take every request that we send, and their clients
//! read every stream that our tests are made of as we do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

mod checker;
#[path = "../run/harness.rs"]
#[allow(dead_code, reason = "each test binary uses its own share")]
mod harness;
mod histories;
#[path = "../../../contexture/tests/properties/history.rs"]
#[allow(dead_code, reason = "each test binary uses its own share")]
mod history;
#[path = "../../../../tests/common/model_server.rs"]
mod model_server;
mod python;
mod runs;
mod streams;
