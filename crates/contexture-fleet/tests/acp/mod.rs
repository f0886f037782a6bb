//! Agents as they are, and as nobody wants them to be.

mod beginning;
pub mod common;
mod faults;
mod files;
mod permission;
mod real;
mod terminals;
mod transcript;
mod turns;
