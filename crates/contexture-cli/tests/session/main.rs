//! A session's tools at the command line and over MCP, with a small daemon behind them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../../tests/common/mod.rs"]
mod common;
mod conformance;
mod daemon;
#[path = "../../../contexture-server/tests/http/fake.rs"]
mod fake;
mod inspector;
mod serve_mcp;
mod tool;
