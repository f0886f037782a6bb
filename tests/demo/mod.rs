//! `ctx demo`, with the real small model: what it says is so.

mod plain;
mod scene;
mod steps;
mod stopped;
