//! What every home of a log promises, asked of each of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod chats;
mod files;
mod postgres;
#[path = "../common/postgres.rs"]
#[allow(dead_code)]
mod server;
mod suite;
