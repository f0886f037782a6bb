//! A project's daemon with agents: the real `ctx serve`, spoken with as people and agents do. Most agents
//! here have no model: `agent.py` does what its prompts say. Real ones are in `real.rs`.

mod any_model;
mod attacks;
mod browser;
mod daemon;
mod goose;
mod life;
mod log;
mod migrate;
mod prompts;
mod questions;
mod real;
mod recorded;
pub mod scene;
mod secrets;
mod sign_in;
mod token;
mod told;
mod tools;
