//! Hostile names, files and bytes, numbered as in the list of attacks. Those against parts that are
//! not there yet come with them; 12 (a template that yields a key) has no template to try.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod a09_keys;
mod a10_equal_keys;
mod a13_links;
mod a14_modes;
mod a23_terminal;
mod a28_templates;
mod a31_trust;
mod a36_sizes;
mod a38_skills;
#[path = "../common/mod.rs"]
mod common;
