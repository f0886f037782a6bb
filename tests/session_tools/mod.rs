//! A session's tools at the command line and over MCP, with a small daemon behind them.

mod conformance;
mod daemon;
#[path = "../../crates/contexture-server/tests/http/fake.rs"]
mod fake;
mod inspector;
mod serve_mcp;
mod tool;
