/// Why a hub did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// It is longer than a message can be.
    #[error("a message of {bytes} bytes is longer than the hub takes ({most})")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// Nobody answered.
    #[error("`{module}` did not answer")]
    NoAnswer {
        /// Who was asked.
        module: String,
    },
    /// The hub is away.
    #[error("the hub is away: {why}")]
    Away {
        /// What it says.
        why: String,
    },
    /// The hub does not let us.
    #[error("the hub refused: {why}")]
    Refused {
        /// What it says.
        why: String,
    },
    /// The worker's key no longer counts.
    #[error("the key of `{module}` was revoked")]
    Revoked {
        /// Whose.
        module: String,
    },
}

impl HubError {
    /// Whether the same may work later.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::NoAnswer { .. } | Self::Away { .. })
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => {
                "say less, and keep long things in files that the executor can read"
            }
            Self::NoAnswer { .. } => "is the desk running? `ctx serve` runs it",
            Self::Away { .. } => "check `hub.url`, and that the NATS server runs with JetStream",
            Self::Revoked { .. } => "`ctx pool key ID`, where the project is, gives the next one",
            Self::Refused { .. } => "check `hub.url`, and what the server allows this user",
        }
    }
}
