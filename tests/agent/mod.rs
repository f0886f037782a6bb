//! `ctx run`, the whole of it: a scripted model, real tools, a real MCP server, a skill, a real log.

mod causes;
mod config;
mod crash;
mod persona;
mod real_model;
mod redirects;
mod run;
pub mod scene;
mod spec_001;
mod usage;
