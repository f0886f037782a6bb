//! The descriptions that `ctx` gives of itself: schemas, settings, events, manual pages, the health of the machine; and
//! a build of many sessions.

mod batch;
mod config;
mod doctor;
mod events;
mod man;
mod schema;
