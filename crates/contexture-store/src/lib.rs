//! The log: streams of JSON records that survive anything.
//!
//! **Lives here:** the log on disk and in PostgreSQL, and what is kept in it: sessions, chat
//! transcripts, execution memory, the pool's events.
//!
//! **Never lives here:** any idea of what a message means. A record is a JSON object with an id; of
//! an entry only its id, its parent and the header of a session are looked at.
//!
//! What is acknowledged is durable. An append is all or nothing. A stream has one order, and whoever
//! appends says behind what.
//!
//! ```
//! use contexture_store::{Expected, FileLog, FileOptions, From, Key, Log, Record, Stream};
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let log = FileLog::new(folder, FileOptions::default());
//! let stream = Stream::session(Key::new("main")?);
//! let hello = Record::parse(r#"{"id":"1","type":"custom","payload":{"hello":"world"}}"#)?;
//! let tail = log.append(&stream, Expected::EMPTY, &[hello.clone()])?;
//! assert_eq!(tail.as_ref(), Some(hello.id()));
//!
//! // The answer was lost on the way? Say it again: it is there once.
//! log.append(&stream, Expected::EMPTY, &[hello.clone()])?;
//! assert_eq!(log.read(&stream, From::Start)?.count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod board;
mod derive;
pub mod disk;
pub mod doctor;
mod error;
mod files;
mod key;
mod log;
mod memory;
mod notice;
mod postgres;
mod project;
mod record;
mod sessions;
mod sieve;
mod state;
mod stream;
mod transcript;

pub use board::{BoardLog, LoadedBoard};
pub use error::StoreError;
pub use files::{Durability, FileLog, FileOptions};
pub use key::Key;
pub use log::{Expected, From, Log, Records, check_own};
pub use memory::{COMPACTED, Compacted, Execution, Memories, ToolCount, ToolOutcome};
pub use notice::{Listener, Notice};
pub use postgres::{PgLog, PgOptions};
pub use project::{Earlier, Foreign, HUB_KEY, ProjectLog};
pub use record::Record;
pub use sessions::{Fork, Loaded, SessionLog, Sessions, resolve};
pub use sieve::Oddity;
pub use state::{
    ProjectState, StateError, UserState, clear_private, create_private, read_private, write_private,
};
pub use stream::{Kind, Stream, StreamInfo};
pub use transcript::{ReadBack, Said, Transcripts};
