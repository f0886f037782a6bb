//! Tasks: what is to be done, by whom it is done, and what came of it (spec 003).
//!
//! A [`Board`] holds a pool and the [`Tasks`] that are handed out to it. It is a fold of [`BoardEvent`]s, in one
//! stream, because a task and the resources that it takes must change together. Whoever decides (the desk) has the
//! board do it: [`Board::create`], [`Board::dispatch`], [`Board::claim`], [`Board::finish`] and the others change it
//! and note the events, which are then logged, all or nothing.
//!
//! Each try at a task is an *attempt* with a number. What an executor says counts only for the attempt that was
//! handed to it, and only once: a late, repeated or foreign word is a [`Refusal`] and changes nothing.

mod board;
mod budget;
mod create;
mod dispatch;
mod error;
mod event;
mod fold;
mod read;
mod report;
mod state;

pub use board::Board;
pub use budget::{Limits, Spent};
pub use dispatch::{Handed, Recall};
pub use error::{Refusal, TaskError};
pub use event::{BoardEvent, TaskChange, TaskEvent};
pub use fold::{Task, Tasks};
pub use report::Word;
pub use state::{NewTask, Now, State};
