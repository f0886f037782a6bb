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
#[allow(dead_code, reason = "the tests of PostgreSQL alone use the rest")]
mod server;
mod suite;
