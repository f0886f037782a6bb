//! `ctx inject`: what each kind of agent begins with, from the core, the configuration and the project.

mod archetypes;
mod configured;
