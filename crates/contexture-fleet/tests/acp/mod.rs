//! Agents as they are, and as nobody wants them to be.

mod beginning;
mod common;
mod faults;
mod files;
mod permission;
mod real;
mod terminals;
mod transcript;
mod turns;
