use std::time::Duration;

/// Why an agent did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcpError {
    /// Its program is not there.
    #[error("the agent `{command}` is not installed")]
    NotInstalled {
        /// Its command.
        command: String,
        /// How to install it.
        install: Option<String>,
    },
    /// Its program cannot be started.
    #[error("the agent `{command}` cannot be started: {why}")]
    NotStarted {
        /// Its command.
        command: String,
        /// What the system said.
        why: String,
    },
    /// It did not answer in time.
    #[error("the agent `{command}` did not answer `{method}` within {} s", .after.as_secs_f32())]
    TimedOut {
        /// Its command.
        command: String,
        /// What was asked.
        method: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// It ended, or closed its output, before it answered.
    #[error("the agent `{command}` did not answer `{method}`: {how}")]
    Ended {
        /// Its command.
        command: String,
        /// What was asked.
        method: &'static str,
        /// How it ended and what it said last.
        how: String,
    },
    /// It speaks another version of the protocol.
    #[error("the agent `{command}` speaks version {theirs} of the protocol, and we speak {ours}", ours = super::PROTOCOL_VERSION)]
    Version {
        /// Its command.
        command: String,
        /// Its version.
        theirs: String,
    },
    /// Somebody has to sign in first.
    #[error("the agent `{command}` asks for a sign-in{}", in_brackets(.methods))]
    SignIn {
        /// Its command.
        command: String,
        /// The ways to sign in that it offers.
        methods: Vec<String>,
    },
    /// It answered with an error.
    #[error("the agent `{command}` refused `{method}`: {message}")]
    Refused {
        /// Its command.
        command: String,
        /// What was asked.
        method: &'static str,
        /// The code that it gave.
        code: i64,
        /// Its words.
        message: String,
    },
    /// Its answer is not one.
    #[error("the agent `{command}` answered `{method}` without {what}")]
    Malformed {
        /// Its command.
        command: String,
        /// What was asked.
        method: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// It cannot do this at all.
    #[error("the agent `{command}` cannot {what}")]
    Lacks {
        /// Its command.
        command: String,
        /// What.
        what: &'static str,
    },
    /// There is no such session.
    #[error("the agent `{command}` has no session `{session_id}`")]
    NoSession {
        /// Its command.
        command: String,
        /// Which.
        session_id: String,
    },
    /// It is at work on another prompt of the session.
    #[error("the agent `{command}` is at work on another prompt of this session")]
    Busy {
        /// Its command.
        command: String,
    },
    /// Too much is asked of it at once.
    #[error("the agent `{command}` has {many} answers outstanding")]
    TooMany {
        /// Its command.
        command: String,
        /// How many.
        many: usize,
    },
}

fn in_brackets(all: &[String]) -> String {
    match all {
        [] => String::new(),
        all => format!(" ({})", all.join(", ")),
    }
}

impl AcpError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotInstalled { command, install } => match install {
                Some(install) => format!("install it: {install}"),
                None => format!("check that `{command}` is a program in your PATH"),
            },
            Self::NotStarted { .. } => "check its command and its workspace".to_owned(),
            Self::TimedOut { command, .. } => {
                format!("run `{command}` by hand to see what it waits for")
            }
            Self::Ended { command, .. } => {
                format!("run `{command}` by hand to see what it says; then start the agent again")
            }
            Self::Version { .. } => "install another version of the agent".to_owned(),
            Self::SignIn { command, .. } => {
                format!("sign in with `{command}`'s own program, or set its key in the environment")
            }
            Self::Refused { .. } => "see what the agent expects".to_owned(),
            Self::Malformed { .. } => {
                "it does not keep to the protocol: install another version of it".to_owned()
            }
            Self::Lacks { .. } => "begin a new session instead".to_owned(),
            Self::NoSession { .. } => "begin a session first".to_owned(),
            Self::Busy { .. } => "wait for its end, or cancel it".to_owned(),
            Self::TooMany { .. } => "wait for its answers".to_owned(),
        }
    }
}
