//! `ctx chat`, as people use it: in a real terminal (tmux), and through a pipe. The model is a server
//! that says what it is told to.

mod commands;
mod piped;
mod talk;
mod terminal;
