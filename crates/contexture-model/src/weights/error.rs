use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::gguf::GgufError;

/// A name whose file or record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// Which name.
    pub name: String,
    /// What is wrong.
    pub what: String,
}

impl Damaged {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        let name = &self.name;
        format!("`ctx model rm {name}` removes what is there; then pull or add it again")
    }
}

/// Why a model's file is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// A name that no model may have.
    #[error(
        "`{name}` cannot be a model's name: it takes 1 to {} of `a-z`, `0-9`, `.`, `-`, `_`, and \
         begins with no dot",
        super::shelf::LONGEST_NAME
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// There is one of this name.
    #[error("there is a model `{name}` already")]
    Taken {
        /// The name.
        name: String,
    },
    /// There is none of this name.
    #[error("there is no model `{name}` on this machine")]
    Missing {
        /// The name.
        name: String,
    },
    /// Its file or its record cannot be used.
    #[error("the model `{}` is damaged: {}", .0.name, .0.what)]
    Damaged(Damaged),
    /// Another process adds, fetches or removes the same name.
    #[error("another process is at work on the model `{name}`")]
    Busy {
        /// The name.
        name: String,
    },
    /// Not the file of a model.
    #[error("{0}")]
    NoModel(GgufError),
    /// The disk is full.
    #[error("{}: the disk is full", .place.display())]
    NoRoom {
        /// The folder.
        place: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", .place.display())]
    Io {
        /// The file.
        place: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// One of pip's settings cannot be used.
    #[error("pip's setting `{key}` cannot be used: {what}")]
    Setting {
        /// Which one.
        key: &'static str,
        /// Why.
        what: String,
    },
    /// Nobody answers at an address.
    #[error("{place} cannot be reached: {what}")]
    Unreachable {
        /// The address.
        place: String,
        /// What the system said.
        what: String,
    },
    /// Nothing came for too long.
    #[error("nothing came from {place} for {} s", .after.as_secs())]
    Stalled {
        /// From where.
        place: String,
        /// How long.
        after: Duration,
    },
    /// A server answered, but not with what was asked for.
    #[error("{place} answers with status {status}")]
    Refused {
        /// Which server.
        place: String,
        /// Its answer.
        status: u16,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// An answer that ended before it was whole.
    #[error("the answer of {place} was cut off")]
    Cut {
        /// Whose answer.
        place: String,
    },
    /// A place that does not have the file.
    #[error("{place} does not have {file}")]
    NotThere {
        /// Which place.
        place: String,
        /// The file.
        file: String,
    },
    /// An answer that leads to no file.
    #[error("{place}: {what}")]
    Nonsense {
        /// Whose answer.
        place: String,
        /// What is wrong with it.
        what: String,
    },
    /// A file that is not what it should be. What was kept of it is removed.
    #[error("{place}: {what}")]
    Wrong {
        /// From where it is.
        place: String,
        /// What is wrong with it.
        what: String,
    },
    /// No place has it.
    #[error("the model `{name}` could not be fetched: {}", list(.tried))]
    Nowhere {
        /// The model.
        name: String,
        /// What became of each place.
        tried: Vec<WeightsError>,
    },
}

impl WeightsError {
    /// What the user can do about it; empty where the message says it.
    pub fn hint(&self) -> String {
        match self {
            Self::BadName { .. } => String::new(),
            Self::Taken { .. } => "choose another name, or replace it with --force".to_owned(),
            Self::Missing { .. } => "`ctx model list` names those there are".to_owned(),
            Self::Damaged(damaged) => damaged.hint(),
            Self::Busy { .. } => "wait until it is done, then try again".to_owned(),
            Self::NoModel(error) => error.hint().to_owned(),
            Self::NoRoom { .. } => {
                "make room, then try again; a pull goes on where it stopped".to_owned()
            }
            Self::Io { .. } => "check the path and who may use it".to_owned(),
            Self::Setting { .. } => "`python3 -m pip config list` shows the settings".to_owned(),
            Self::Wrong { .. } => "try again: it is fetched anew".to_owned(),
            _ => "check the network, and pip's settings: python3 -m pip config list; or use \
                  another model: `ctx model add NAME FILE.gguf`, --model ollama:NAME, \
                  --model openai:NAME, --model anthropic:NAME"
                .to_owned(),
        }
    }

    /// A word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName { .. } => "BadName",
            Self::Taken { .. } => "Taken",
            Self::Missing { .. } => "Missing",
            Self::Damaged(_) => "Damaged",
            Self::Busy { .. } => "Busy",
            Self::NoModel(_) => "NoModel",
            Self::NoRoom { .. } | Self::Io { .. } => "Io",
            _ => "Fetch",
        }
    }

    /// Whether the same may well work in a moment.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Stalled { .. } | Self::Cut { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
            _ => false,
        }
    }

    /// Whether it is this machine's fault, so that another server would not help.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::NoRoom { .. })
    }

    /// What the system said of a file.
    pub(super) fn io(place: &Path, error: io::Error) -> Self {
        let full = [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::FileTooLarge,
        ];
        let place = place.to_owned();
        match full.contains(&error.kind()) {
            true => Self::NoRoom { place },
            false => Self::Io { place, error },
        }
    }
}

/// What became of each place. One that only lacks the file is named where nothing worse happened.
fn list(errors: &[WeightsError]) -> String {
    let lacks = |error: &WeightsError| matches!(error, WeightsError::NotThere { .. });
    let all = errors.iter().all(lacks);
    let told = errors.iter().filter(|error| all || !lacks(error));
    let words: Vec<String> = told.map(WeightsError::to_string).collect();
    match words.is_empty() {
        true => "pip's settings name no place to fetch it from".to_owned(),
        false => words.join("; "),
    }
}
