use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use contexture::ContextError;
use contexture_agent::AgentError;
use contexture_fleet::{RpcError, Why};
use contexture_model::weights::WeightsError;
use contexture_server::{ClientError, DaemonError, Fault};
use contexture_store::StoreError;
use serde_json::json;

use crate::args;
use crate::output::note;
use crate::view::safe;

/// Why a command failed. The exit code follows from the kind.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The core refused.
    #[error("{}", match .place { Some(place) => format!("{}: {error}", place.display()), None => error.to_string() })]
    Context {
        place: Option<PathBuf>,
        error: ContextError,
    },
    /// A file or stream could not be read or written.
    #[error("{place}: {error}")]
    Io {
        place: String,
        error: std::io::Error,
    },
    /// The command cannot do what was asked.
    #[error("{what}")]
    Usage { what: String, hint: String },
    /// A recorded request could not be made again.
    #[error("request {request} (entry {entry}) differs: recorded {recorded}, made {made}")]
    Differs {
        request: usize,
        entry: String,
        recorded: String,
        made: String,
        hint: String,
    },
    /// No request was recorded.
    #[error("nothing to verify: {place} has no record of a request")]
    NothingToVerify { place: String },
    /// The store refused, or could not.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// It could be done, and may not be.
    #[error("{what}")]
    NotAllowed { what: String, hint: String },
    /// The doctor found something.
    #[error("{what}")]
    Unhealthy { what: String, hint: String },
    /// A run that did not come to an answer.
    #[error("{what}")]
    Unfinished { what: String, hint: String },
    /// An agent could not go on.
    #[error("{0}")]
    Agent(AgentError),
    /// A model's file is not there, or cannot be.
    #[error("{0}")]
    Weights(#[from] WeightsError),
    /// The file of a model is of no use.
    #[error("{what}")]
    BadModel { what: String, hint: String },
    /// The daemon refused, or could not, or is not there.
    #[error("{0}")]
    Daemon(#[from] ClientError),
    /// The daemon is not found.
    #[error("{0}")]
    NoDaemon(#[from] DaemonError),
    /// Whoever reads our output went away.
    #[error("the reader went away")]
    Pipe,
}

impl CliError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Context {
                error: ContextError::Overflow(_),
                ..
            } => 4,
            Self::Context {
                error: ContextError::InvalidInput { .. },
                ..
            } => 3,
            Self::Context { .. } | Self::Io { .. } | Self::Differs { .. } | Self::Pipe => 1,
            Self::NothingToVerify { .. } => 1,
            Self::Store(error) => match error {
                StoreError::Context(ContextError::Overflow(_)) => 4,
                StoreError::BadKey { .. }
                | StoreError::BadRecord { .. }
                | StoreError::IdTaken { .. }
                | StoreError::NoEntry { .. }
                | StoreError::NoState
                | StoreError::Context(_) => 3,
                StoreError::NotOurs { .. }
                | StoreError::Forked { .. }
                | StoreError::Foreign { .. } => 5,
                StoreError::State(error) if error.is_not_private() => 5,
                _ => 1,
            },
            Self::Weights(error) => match error {
                WeightsError::Taken { .. } | WeightsError::Missing { .. } => 2,
                WeightsError::BadName { .. } | WeightsError::NoModel(_) => 3,
                _ => 1,
            },
            Self::BadModel { .. } => 3,
            Self::Daemon(error) => match error.why {
                Fault::Unauthorized | Fault::Said(Why::NotAllowed) => 5,
                Fault::Said(Why::TooLarge) => 4,
                Fault::Said(Why::Invalid) => 3,
                _ => 1,
            },
            Self::NoDaemon(DaemonError::NotPrivate { .. }) => 5,
            Self::NoDaemon(_) => 1,
            Self::NotAllowed { .. } => 5,
            Self::Unhealthy { .. } | Self::Unfinished { .. } | Self::Agent(_) => 1,
            Self::Usage { .. } => 2,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Context { error, .. } => error.code(),
            Self::Io { .. } => "Io",
            Self::Usage { .. } => "Usage",
            Self::Differs { .. } => "Differs",
            Self::NothingToVerify { .. } => "NothingToVerify",
            Self::Store(error) => error.code(),
            Self::NotAllowed { .. } => "NotAllowed",
            Self::Unhealthy { .. } => "Unhealthy",
            Self::Unfinished { .. } => "Unfinished",
            Self::Agent(_) => "Model",
            Self::Weights(error) => error.code(),
            Self::BadModel { .. } => "BadModel",
            Self::Daemon(error) => match error.why {
                Fault::Said(Why::NotAllowed) => "NotAllowed",
                Fault::Said(Why::Invalid) => "Invalid",
                Fault::Said(Why::NotFound | Why::NoMethod) => "NotFound",
                Fault::Said(Why::Conflict) => "Conflict",
                Fault::Said(Why::TooLarge) => "TooLarge",
                Fault::Said(Why::Failed) => "Failed",
                Fault::Unauthorized => "Unauthorized",
                Fault::Refused => "Refused",
                Fault::Unreachable => "Unreachable",
                Fault::Broken => "Broken",
            },
            Self::NoDaemon(_) => "NoDaemon",
            Self::Pipe => "Pipe",
        }
    }

    fn hint(&self) -> String {
        match self {
            Self::Context { error, .. } => error.hint(),
            Self::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
                "check the path; `-` reads standard input".to_owned()
            }
            Self::Io { .. } | Self::Pipe => String::new(),
            Self::NothingToVerify { .. } => {
                "sessions of `ctx chat`, `ctx run` and `ctx sessions import` have records; without --verify the \
                 requests are made as they would have been"
                    .to_owned()
            }
            Self::Store(error) => error.hint(),
            Self::Usage { hint, .. }
            | Self::Differs { hint, .. }
            | Self::NotAllowed { hint, .. }
            | Self::Unfinished { hint, .. }
            | Self::BadModel { hint, .. }
            | Self::Unhealthy { hint, .. } => hint.clone(),
            Self::Agent(error) => error.hint(),
            Self::Weights(error) => error.hint(),
            Self::Daemon(error) => error.hint.clone().unwrap_or_default(),
            Self::NoDaemon(error) => error.hint().to_owned(),
        }
    }
}

impl From<ContextError> for CliError {
    fn from(error: ContextError) -> Self {
        Self::Context { place: None, error }
    }
}

impl From<RpcError> for CliError {
    /// What a fleet says is the same, whether it is here or behind a daemon.
    fn from(error: RpcError) -> Self {
        Self::Daemon(ClientError {
            why: Fault::Said(error.why),
            message: error.message,
            hint: error.hint,
        })
    }
}

impl From<AgentError> for CliError {
    /// What the core or the store refused is the same, whoever asked it.
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Context(error) => error.into(),
            AgentError::Store(error) => error.into(),
            other => Self::Agent(other),
        }
    }
}

impl From<std::io::Error> for CliError {
    /// Only writing to standard output converts by itself.
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::Pipe;
        }
        Self::Io {
            place: "standard output".to_owned(),
            error,
        }
    }
}

/// What went wrong and what to do, harmless for a terminal.
pub fn words(error: &CliError) -> (String, String) {
    (safe(&error.to_string()), safe(&error.hint()))
}

/// Says what went wrong and what to do, on standard error.
pub fn report(error: &CliError, json: bool) -> ExitCode {
    let (message, hint) = words(error);
    note!("ctx: {message}");
    if !hint.is_empty() {
        note!("     {hint}");
    }
    if json {
        last_line(error.code(), &message, &hint);
    }
    ExitCode::from(error.exit_code())
}

/// Wrong usage, as the parser of the command line saw it; or its help.
pub fn usage(error: &clap::Error) -> ExitCode {
    // What was typed, or pasted, is repeated there: so it is read again as it may be shown.
    let shown = std::env::args_os().map(|arg| safe(&arg.to_string_lossy()));
    let again = args::parse(shown).err();
    let error = again.as_ref().unwrap_or(error);
    // Help and version go to standard output, everything else to standard error.
    let printed = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match printed {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                report(&error.into(), false)
            }
            _ => ExitCode::SUCCESS,
        },
        _ => {
            if std::env::args().any(|arg| arg == "--json") {
                let text = error.to_string();
                let what = text.lines().next().unwrap_or_default();
                let what = what.strip_prefix("error: ").unwrap_or(what);
                last_line("Usage", what, "see `ctx --help`");
            }
            ExitCode::from(2)
        }
    }
}

/// The error as data.
pub fn as_json(error: &CliError) -> serde_json::Value {
    let (message, hint) = words(error);
    coded(error.code(), &message, &hint)
}

fn coded(code: &str, message: &str, hint: &str) -> serde_json::Value {
    json!({ "error": { "code": code, "message": message, "hint": hint } })
}

fn last_line(code: &str, message: &str, hint: &str) {
    note!("{}", coded(code, message, hint));
}
