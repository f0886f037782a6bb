//! The daemon: a fleet's [`contexture_fleet::Service`] over HTTP.
//!
//! **Lives here:** JSON-RPC, events, health, who may come in.
//!
//! **Never lives here:** business rules.
