//! The built-in tools, called as an agent calls them.

mod chat;
mod recall;
mod scene;
mod skills;
