//! A project's daemon with agents: the real `ctx serve`, spoken with as people and agents do. Most agents
//! here have no model: `agent.py` does what its prompts say. Real ones are in `real.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod attacks;
#[path = "../common/mod.rs"]
mod common;
mod daemon;
mod life;
#[path = "../common/model_server.rs"]
mod model_server;
mod prompts;
mod real;
mod scene;
mod tools;
