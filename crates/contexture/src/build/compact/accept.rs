//! Whether a summary will do. Deterministic: no model judges a model here.

use std::fmt;

use super::Span;

/// Why a summary was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is nothing in it.
    Empty,
    /// It is no shorter than what it stands for, or than it may be.
    TooLong {
        /// Its tokens.
        tokens: usize,
        /// The most it may have.
        limit: usize,
    },
    /// It does not name something that it must.
    Missing(String),
}

/// Accepts a summary that is shorter than its span and names all that the probes ask for.
pub fn accept(summary: &str, span: &Span<'_>, span_tokens: usize) -> Result<(), Refusal> {
    if summary.trim().is_empty() {
        return Err(Refusal::Empty);
    }
    let tokens = span.tokenizer.count(summary);
    let limit = span.max_tokens.min(span_tokens.saturating_sub(1));
    if tokens > limit {
        return Err(Refusal::TooLong { tokens, limit });
    }
    match span
        .probes
        .iter()
        .find(|probe| !summary.contains(probe.as_str()))
    {
        Some(missing) => Err(Refusal::Missing(missing.clone())),
        None => Ok(()),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::TooLong { tokens, limit } => {
                write!(f, "it has {tokens} tokens and may have {limit}")
            }
            Self::Missing(probe) => write!(f, "it does not name `{probe}`"),
        }
    }
}
