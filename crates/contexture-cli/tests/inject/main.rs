//! `ctx inject`: what each kind of agent begins with, from the core, the configuration and the project.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod archetypes;
#[path = "../../../../tests/common/mod.rs"]
mod common;
mod configured;
