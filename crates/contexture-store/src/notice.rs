use std::fmt;
use std::sync::Arc;

use crate::Stream;

/// Something that the store met and dealt with, and that somebody may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// What an append that never ended had left behind was taken away.
    Healed {
        /// Where.
        stream: Stream,
        /// How much.
        bytes: u64,
    },
    /// A line that is no record was skipped.
    BadLine {
        /// Where.
        stream: Stream,
        /// At which byte the line begins.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Healed { stream, bytes } => write!(
                f,
                "{stream}: the last append was cut off; its {bytes} bytes, never acknowledged, were taken away"
            ),
            Self::BadLine {
                stream,
                offset,
                what,
            } => write!(
                f,
                "{stream}: the line at byte {offset} is skipped: {what}; `ctx doctor` can repair it"
            ),
        }
    }
}

/// Who hears of notices.
pub type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;
