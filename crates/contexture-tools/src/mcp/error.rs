use std::time::Duration;

use contexture::text::nearest;
use rmcp::service::ServiceError;

/// Why something that was asked of a server did not come.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// There is no server of this name.
    #[error("there is no MCP server `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The server is not running now.
    #[error("the MCP server `{server}` is not running: {why}")]
    NotRunning {
        /// Which.
        server: String,
        /// Why not.
        why: String,
    },
    /// The server does not have this.
    #[error("the MCP server `{server}` has no {what}")]
    Lacks {
        /// Which.
        server: String,
        /// What.
        what: &'static str,
    },
    /// It did not answer in time.
    #[error("the MCP server `{server}` did not answer within {} s", .after.as_secs_f32())]
    TimedOut {
        /// Which.
        server: String,
        /// How long was waited.
        after: Duration,
    },
    /// It ended before it answered. What was asked may have been done.
    #[error(
        "the MCP server `{server}` ended before it answered; what was asked may have been done"
    )]
    Ended {
        /// Which.
        server: String,
    },
    /// It sent more than is read, and was ended. What was asked may have been done.
    #[error("the MCP server `{server}` was ended: {what}; what was asked may have been done")]
    TooMuch {
        /// Which.
        server: String,
        /// The limit that it is above.
        what: String,
    },
    /// It asks for something that is not given: a task to poll, an input from the user.
    #[error("the MCP server `{server}` answered with {what}, which is not supported")]
    Unsupported {
        /// Which.
        server: String,
        /// What it answered with.
        what: &'static str,
    },
    /// It refused.
    #[error("the MCP server `{server}` refused: {what}")]
    Refused {
        /// Which.
        server: String,
        /// Its words.
        what: String,
    },
}

impl McpError {
    /// What SDK errors mean here.
    pub(super) fn from_service(server: &str, error: &ServiceError) -> Self {
        let server = server.to_owned();
        match error {
            ServiceError::McpError(data) => Self::Refused {
                server,
                what: super::bounded(&data.message, 2_000),
            },
            ServiceError::TransportClosed
            | ServiceError::TransportSend(_)
            | ServiceError::Cancelled { .. } => Self::Ended { server },
            ServiceError::UnexpectedResponse => Self::Refused {
                server,
                what: "its answer has another shape than it should".to_owned(),
            },
            other => Self::Refused {
                server,
                what: super::bounded(&other.to_string(), 2_000),
            },
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { name, known } => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                match nearest(name, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if known.is_empty() => "no server is configured".to_owned(),
                    None => format!("there are {}", known.join(", ")),
                }
            }
            Self::NotRunning { .. } => "`ctx mcp list` shows the state of each".to_owned(),
            Self::Lacks { .. } | Self::Unsupported { .. } => String::new(),
            Self::TimedOut { .. } => "set `timeoutSeconds` for slow servers".to_owned(),
            Self::Ended { .. } | Self::TooMuch { .. } => {
                "look at what was done before you ask again".to_owned()
            }
            Self::Refused { .. } => "see what the server expects".to_owned(),
        }
    }
}
