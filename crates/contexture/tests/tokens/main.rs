//! Counting tokens: the models' table, the bounds, files of others, and hostile texts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod estimate;
mod file;
mod hostile;
mod model;
mod real;
mod samples;
mod vocabularies;
