//! Counting tokens: the models' table, the bounds, files of others, and hostile texts.

mod estimate;
mod file;
mod hostile;
mod model;
mod real;
mod samples;
mod vocabularies;
