//! MCP servers as they are, and as nobody wants them to be.

mod a24_changed;
mod a25_shadow;
mod a37_schemas;
mod common;
mod deferred;
mod f7_servers;
mod hostile;
mod real;
