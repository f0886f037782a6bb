//! `ctx chat`, as people use it: in a real terminal (tmux), and through a pipe. The model is a server
//! that says what it is told to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod commands;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/model_server.rs"]
mod model_server;
mod piped;
mod talk;
mod terminal;
