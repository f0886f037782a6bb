use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a command was not run.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// The project root cannot be used.
    #[error("the project root {}: {why}", .root.display())]
    BadRoot {
        /// Which folder.
        root: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The arguments of a call make no sense.
    #[error("`{name}` {why}")]
    BadArgument {
        /// Which argument.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// No sandbox works, and none is not enough.
    #[error("no sandbox works here: {why}")]
    NoSandbox {
        /// What is missing.
        why: String,
    },
    /// The sandbox failed where it had worked before.
    #[error("the sandbox could not be set up: {what}")]
    Sandbox {
        /// What the system said.
        what: String,
    },
    /// The system failed.
    #[error("{place}: {error}")]
    Io {
        /// What was being done.
        place: String,
        /// What the system said.
        error: Arc<io::Error>,
    },
}

impl ShellError {
    pub(crate) fn io(place: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let place = place.into();
        move |error| Self::Io {
            place,
            error: Arc::new(error),
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::BadRoot { .. } => {
                "start in the folder of a project: not in the home folder, and not above it"
            }
            Self::BadArgument { .. } => "call exec_shell again with other arguments",
            Self::NoSandbox { .. } => {
                "use Linux 6.2 or newer with Landlock, or install bubblewrap; or allow commands \
                 without a sandbox, if the machine itself is one"
            }
            Self::Sandbox { .. } => "try again; if it stays so, see docs/shell.md",
            Self::Io { .. } => "check that the folder exists, is writable and has room",
        }
    }
}
