//! The daemon's HTTP side over real connections, with a small service behind it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod a48_no_cookie;
mod a49_idle;
mod access;
mod browser;
mod bytes;
mod client;
mod common;
mod events;
mod fake;
mod limits;
mod log;
mod openapi;
mod rpc;
mod stop;
mod streams;
