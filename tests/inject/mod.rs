//! The beginning of a session: `ctx inject`, the tools of providers, and what our own agent is told.

mod archetypes;
mod calls;
mod configured;
mod own_agent;
mod prompts;
mod spec_000;
mod templates;
