//! `ctx chat`, as people use it: in a real terminal (tmux), and through a pipe. The model is a server
//! that says what it is told to.

mod ahead;
mod commands;
mod look;
mod piped;
mod resume;
mod talk;
pub mod terminal;
