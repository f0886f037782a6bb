use std::io;
use std::sync::Arc;

use contexture::{ContextError, EntryId};

use crate::{StateError, Stream};

/// Why the store refused, or could not.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The stream does not end where the caller thinks it does. Nothing was appended.
    #[error("{stream} ends with {}, not with {}", named(.actual.as_ref()), named(.expected.as_ref()))]
    WrongTail {
        /// Which stream.
        stream: Stream,
        /// What the caller thought.
        expected: Option<EntryId>,
        /// Where it ends.
        actual: Option<EntryId>,
    },
    /// An id that the stream has already, for something else. Nothing was appended.
    #[error("{stream} has an entry `{id}` already, and it says something else")]
    IdTaken {
        /// Which stream.
        stream: Stream,
        /// Which id.
        id: EntryId,
    },
    /// Another process writes to the stream.
    #[error("{stream} is being written by {}", match .pid { Some(pid) => format!("process {pid}"), None => "another process".to_owned() })]
    Held {
        /// Which stream.
        stream: Stream,
        /// Who.
        pid: Option<u32>,
    },
    /// A key that no stream may have.
    #[error("`{key}` cannot be a key: it {why}")]
    BadKey {
        /// The key, its beginning.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// A record that no stream may have.
    #[error("this cannot be logged: {what}")]
    BadRecord {
        /// What is wrong with it.
        what: String,
    },
    /// There is no such stream.
    #[error("there is no {stream}")]
    NoStream {
        /// Which.
        stream: Stream,
        /// One that is called nearly so.
        nearest: Option<String>,
    },
    /// There is such a stream already.
    #[error("there is a {stream} already")]
    Exists {
        /// Which.
        stream: Stream,
    },
    /// The stream has no such entry.
    #[error("{stream} has no entry `{id}`{}", if .candidates.is_empty() { String::new() } else { format!("; it could be {}", .candidates.join(", ")) })]
    NoEntry {
        /// Which stream.
        stream: Stream,
        /// What was asked for.
        id: String,
        /// The entries whose ids begin so, when it is more than one.
        candidates: Vec<String>,
    },
    /// Others build on the stream, so it must stay.
    #[error("{stream} is the beginning of {}", .forks.join(", "))]
    Forked {
        /// Which stream.
        stream: Stream,
        /// What was forked from it.
        forks: Vec<String>,
    },
    /// The stream was put in another's place, or removed, while it was read.
    #[error("{stream} was replaced or removed while it was read")]
    Replaced {
        /// Which stream.
        stream: Stream,
    },
    /// Something stands in the data folder that we did not put there, such as a link.
    #[error("{place}: {what}")]
    NotOurs {
        /// Where.
        place: String,
        /// What it is.
        what: String,
    },
    /// The stream came with the project's folder from somebody else, so it is not continued.
    #[error("{stream} was not created by you here: it came with the folder")]
    Foreign {
        /// Which stream.
        stream: Stream,
    },
    /// There is nowhere to keep what makes us act.
    #[error("there is no state folder for agents, tasks and keys")]
    NoState,
    /// The state folder cannot be used.
    #[error("{0}")]
    State(Arc<StateError>),
    /// The disk failed.
    #[error("{place}: {error}")]
    Io {
        /// What was being read or written.
        place: String,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// The database failed.
    #[error("database: {what}")]
    Database {
        /// Which one, and what it said, without any password.
        what: String,
        /// What the user can do about it.
        hint: String,
    },
    /// An entry is not what it must be.
    #[error("{0}")]
    Context(#[from] ContextError),
}

impl StoreError {
    /// What the disk said; where something that is not ours is in the way, that.
    pub(crate) fn io(place: impl Into<String>, error: io::Error) -> Self {
        let place = place.into();
        let link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
        let what = match error.kind() {
            _ if link => "is a link".to_owned(),
            io::ErrorKind::NotADirectory => "is a link, or no folder".to_owned(),
            io::ErrorKind::InvalidInput => error.to_string(),
            _ => {
                return Self::Io {
                    place,
                    error: Arc::new(error),
                };
            }
        };
        Self::NotOurs { place, what }
    }

    /// A short, stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::WrongTail { .. } => "WrongTail",
            Self::IdTaken { .. } => "IdTaken",
            Self::Held { .. } => "Held",
            Self::BadKey { .. } => "BadKey",
            Self::BadRecord { .. } => "BadRecord",
            Self::NoStream { .. } => "NoStream",
            Self::Exists { .. } => "Exists",
            Self::NoEntry { .. } => "NoEntry",
            Self::Forked { .. } => "Forked",
            Self::Replaced { .. } => "Replaced",
            Self::NotOurs { .. } => "NotOurs",
            Self::Foreign { .. } => "Foreign",
            Self::NoState => "NoState",
            Self::State(_) => "State",
            Self::Io { .. } => "Io",
            Self::Database { .. } => "Database",
            Self::Context(error) => error.code(),
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::WrongTail { .. } => "read what was added, and append again behind it".to_owned(),
            Self::IdTaken { .. } => "give the new entry an id of its own, or none".to_owned(),
            Self::Held { .. } => "wait for it to end, or end it".to_owned(),
            Self::BadKey { .. } => "name it with letters, digits, `-`, `_`, `:` or `/`".to_owned(),
            Self::BadRecord { .. } => "a record is a JSON object with an `id`".to_owned(),
            Self::NoStream { nearest, .. } => match nearest {
                Some(name) => format!("did you mean `{name}`?"),
                None => "`ctx sessions list` shows those there are".to_owned(),
            },
            Self::Exists { .. } => "choose another name".to_owned(),
            Self::NoEntry { .. } => {
                "`ctx sessions show` lists the entries; the beginning of an id will do".to_owned()
            }
            Self::Forked { .. } => "remove the forks first".to_owned(),
            Self::Replaced { .. } => "read it again".to_owned(),
            Self::NotOurs { .. } => {
                "links are not followed: move it away, then try again".to_owned()
            }
            Self::Foreign { .. } => {
                "`ctx trust` shows what is in it, and makes it yours if you agree".to_owned()
            }
            Self::NoState => "set HOME or XDG_STATE_HOME to an absolute path".to_owned(),
            Self::State(error) => error.hint(),
            Self::Io { error, .. } => match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "nothing was lost: make room and try again".to_owned()
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "make the folder writable, or choose another with --dir".to_owned()
                }
                _ => String::new(),
            },
            Self::Database { hint, .. } => hint.clone(),
            Self::Context(error) => error.hint(),
        }
    }
}

impl From<StateError> for StoreError {
    fn from(error: StateError) -> Self {
        Self::State(Arc::new(error))
    }
}

fn named(id: Option<&EntryId>) -> String {
    match id {
        Some(id) => format!("`{id}`"),
        None => "nothing".to_owned(),
    }
}
