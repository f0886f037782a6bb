//! What every home of a log promises, asked of each of them.

mod chats;
mod files;
mod postgres;
mod suite;
