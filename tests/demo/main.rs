//! `ctx demo`, with the real small model: what it says is so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

#[path = "../common/mod.rs"]
mod common;
mod plain;
mod scene;
#[path = "../common/small_model.rs"]
mod small_model;
mod steps;
mod stopped;
