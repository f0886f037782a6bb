use std::fmt;

/// What the core can refuse to do.
///
/// Two kinds and no more: what came in is wrong, or what came in cannot fit. A compaction that a compactor
/// cannot make is made by the next one, and at last the span is dropped, so there is no third.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The input is not what it must be. Nothing was built.
    #[error("{place}: {what}")]
    InvalidInput {
        /// Where in the input: a line and column, a path such as `messages[3].role`, a template.
        place: String,
        /// What is wrong there.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// What may not be left out does not fit.
    #[error("{0}")]
    Overflow(Box<Overflow>),
}

impl ContextError {
    /// An [`ContextError::InvalidInput`].
    pub fn invalid(
        place: impl Into<String>,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::InvalidInput {
            place: place.into(),
            what: what.into(),
            hint: hint.into(),
        }
    }

    /// A short, stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidInput { .. } => "ContextInvalidInput",
            Self::Overflow(_) => "ContextOverflow",
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::InvalidInput { hint, .. } => hint.clone(),
            Self::Overflow(overflow) => overflow.hint(),
        }
    }

    /// The same error, found inside `outer`: `messages[3]` + `role` gives `messages[3].role`.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        if let Self::InvalidInput { place, .. } = &mut self {
            *place = if place.is_empty() {
                outer.to_owned()
            } else if place.starts_with('[') {
                format!("{outer}{place}")
            } else if outer.starts_with("line ") {
                format!("{outer}, {place}")
            } else {
                format!("{outer}.{place}")
            };
        }
        self
    }
}

/// The floor of a request, what may never leave it, against what there is room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overflow {
    /// What is measured.
    pub unit: Unit,
    /// The most there may be, after the reserve for the output.
    pub limit: usize,
    /// What the floor needs.
    pub needed: usize,
    /// Its parts, each with its size.
    pub parts: Vec<(&'static str, usize)>,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Tokens of the request.
    Tokens,
    /// Bytes of the request's body.
    Bytes,
    /// Messages in the request.
    Messages,
}

impl Overflow {
    fn hint(&self) -> String {
        let over = self.needed.saturating_sub(self.limit);
        let flag = match self.unit {
            Unit::Tokens => "--budget",
            Unit::Bytes => "--max-bytes",
            Unit::Messages => "--max-messages",
        };
        format!(
            "raise {flag} by at least {over}, unpin something, or shorten the largest part above"
        )
    }
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "what may not be left out needs {} {}, and there is room for {}:",
            self.needed, self.unit, self.limit
        )?;
        for (i, (name, size)) in self.parts.iter().enumerate() {
            write!(f, "{} {name} {size}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens => "tokens",
            Self::Bytes => "bytes",
            Self::Messages => "messages",
        })
    }
}
