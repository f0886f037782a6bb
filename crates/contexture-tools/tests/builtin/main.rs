//! The built-in tools, called as an agent calls them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chat;
mod recall;
mod scene;
mod skills;
