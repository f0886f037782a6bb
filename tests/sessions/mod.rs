//! The log at the terminal: `ctx sessions`, `inspect`, `diff`, `replay` and `doctor`, on files, on
//! real transcripts and in PostgreSQL.

mod append;
mod diff;
mod doctor;
mod export;
mod fork;
mod import;
mod inspect;
mod newer;
mod numbers;
mod pin;
mod postgres;
mod project;
mod replay;
mod show;
mod transcripts;
mod undo;
