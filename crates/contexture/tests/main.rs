//! The core through its public door. One binary, because each one links the vocabularies.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    missing_docs
)]

mod common;

mod anthropic;
mod chat_wire;
mod export;
mod fold;
mod fuzz_seeds;
mod hidden;
mod import;
mod inject;
mod peers_bugs;
mod pool;
mod properties;
mod readers;
mod responses;
mod scenarios;
mod task;
mod tokens;
mod transcripts;
