//! Runs against a scripted model server, in the three forms that providers speak, with real logs.

mod faults;
mod governance;
pub mod harness;
mod steps;
