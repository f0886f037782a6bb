//! The log, the board and the doctor, on files and in a real PostgreSQL.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

#[path = "common/postgres.rs"]
mod server;

mod board;
mod conformance;
mod doctor;
mod postgres;
mod project;
