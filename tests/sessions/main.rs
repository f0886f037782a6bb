//! The log at the terminal: `ctx sessions`, `inspect`, `diff`, `replay` and `doctor`, on files, on
//! real transcripts and in PostgreSQL.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod append;
#[path = "../common/mod.rs"]
mod common;
mod diff;
mod doctor;
mod export;
mod fork;
mod import;
mod inspect;
mod newer;
mod pin;
mod postgres;
mod project;
mod replay;
mod show;
mod transcripts;
mod undo;
