use std::time::Duration;

use contexture::json;
use serde_json::Value;

use crate::mask::mask;

/// The most bytes that are read of the body of an error.
pub(crate) const MAX_ERROR_BYTES: usize = 256 << 10;
/// The most memory that it may take while it is read.
const MAX_HELD_BYTES: usize = 16 << 20;
/// The most bytes of its words that are looked at.
const MAX_WORDS: usize = 4_000;

/// Why a model did not answer. Whoever called decides by the kind, never by the words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The request is too long for the model.
    #[error("the request is too long for the model: {what}")]
    Overflow {
        /// The provider's words.
        what: String,
        /// The most tokens that it takes, where it says so.
        limit: Option<u64>,
    },
    /// Too many requests. The client has tried again as often as it may.
    #[error("the provider asks to wait: {what}")]
    RateLimited {
        /// The provider's words.
        what: String,
        /// How long, where it says so.
        retry_after: Option<Duration>,
    },
    /// The key is missing or wrong, or may not do this.
    #[error("the provider does not let us in: {what}")]
    Auth {
        /// The provider's words.
        what: String,
    },
    /// There is no key for the provider, and without one it answers nothing.
    #[error("no key: {variable} is not set")]
    NoKey {
        /// The environment's name of the key.
        variable: &'static str,
    },
    /// There is no credit left. Trying again changes nothing.
    #[error("the account is used up: {what}")]
    Quota {
        /// The provider's words.
        what: String,
    },
    /// The provider refuses the request as it is.
    #[error("the provider refuses the request: {what}")]
    Invalid {
        /// The provider's words.
        what: String,
    },
    /// The provider failed, and may not fail again.
    #[error("the provider failed: {what}")]
    Transient {
        /// Its words, or what was seen.
        what: String,
        /// How long to wait, where it says so.
        retry_after: Option<Duration>,
    },
    /// Nobody answers at the address.
    #[error("{place} cannot be reached: {what}")]
    Unreachable {
        /// The address.
        place: String,
        /// What the system said.
        what: String,
    },
    /// Nothing came for too long.
    #[error("nothing came for {} s", .after.as_secs())]
    Stalled {
        /// How long.
        after: Duration,
    },
    /// The answer ended before it was whole.
    #[error("the answer was cut off")]
    Cut,
    /// The answer is larger than what is read.
    #[error("the answer is too large: {what}")]
    TooLarge {
        /// The limit that it is above.
        what: String,
    },
    /// The answer makes no sense.
    #[error("the answer makes no sense: {what}")]
    Garbage {
        /// What is wrong with it.
        what: String,
    },
}

impl ModelError {
    /// Whether the same request may well be answered when it is sent again.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Transient { .. }
            | Self::Unreachable { .. }
            | Self::Stalled { .. }
            | Self::Cut
            | Self::Garbage { .. } => true,
            Self::Overflow { .. }
            | Self::Auth { .. }
            | Self::NoKey { .. }
            | Self::Quota { .. }
            | Self::Invalid { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// How long the provider asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Transient { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// The words in it that came from outside.
    pub(crate) fn words(&mut self) -> Option<&mut String> {
        match self {
            Self::Overflow { what, .. }
            | Self::RateLimited { what, .. }
            | Self::Auth { what }
            | Self::Quota { what }
            | Self::Invalid { what }
            | Self::Transient { what, .. }
            | Self::Unreachable { what, .. }
            | Self::TooLarge { what }
            | Self::Garbage { what } => Some(what),
            Self::NoKey { .. } | Self::Stalled { .. } | Self::Cut => None,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Overflow { .. } => "lower context.maxInputTokens to what the model takes",
            Self::RateLimited { .. } => "wait, or ask the provider for a higher limit",
            Self::Auth { .. } => "check the key in the environment",
            Self::NoKey { .. } => "set it, or name another model or address: --model, --base-url",
            Self::Quota { .. } => "check the account's plan and billing",
            Self::Invalid { .. } => "check the model's name and the parameters",
            Self::TooLarge { .. } => "check what answers at the address",
            Self::Transient { .. } | Self::Cut | Self::Garbage { .. } => "try again later",
            Self::Unreachable { .. } => "check the address and that the server runs",
            Self::Stalled { .. } => "try again, or allow more time",
        }
    }

    /// What an answer other than success means. Codes decide; words only where there is no code.
    pub fn of_status(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let said = Said::read(body);
        let what = match said.message.is_empty() {
            true => format!("status {status}"),
            false => said.message.clone(),
        };
        if said.is_overflow(status) {
            return Self::Overflow {
                what,
                limit: said.limit,
            };
        }
        match (status, said.code.as_str()) {
            (_, "insufficient_quota" | "billing_error" | "billing_hard_limit_reached")
            | (402, _) => Self::Quota { what },
            (401 | 403, _) => Self::Auth { what },
            (429, _) => Self::RateLimited { what, retry_after },
            (408 | 409 | 425 | 500.., _) => Self::Transient { what, retry_after },
            _ => Self::Invalid { what },
        }
    }

    /// What an error inside a stream means.
    pub fn of_event(error: &Value) -> Self {
        let said = Said::of(error);
        let what = said.message.clone();
        match said.code.as_str() {
            _ if said.is_overflow(400) => Self::Overflow {
                what,
                limit: said.limit,
            },
            "insufficient_quota" | "billing_error" => Self::Quota { what },
            "rate_limit_error" | "rate_limit_exceeded" => Self::RateLimited {
                what,
                retry_after: None,
            },
            "authentication_error" | "permission_error" | "invalid_api_key" => Self::Auth { what },
            "invalid_request_error" | "invalid_prompt" | "not_found_error" => {
                Self::Invalid { what }
            }
            _ => Self::Transient {
                what,
                retry_after: None,
            },
        }
    }
}

/// What a provider says of an error, in any of their forms.
struct Said {
    message: String,
    /// The code, or else the type: what programs are meant to look at.
    code: String,
    kind: String,
    limit: Option<u64>,
}

impl Said {
    fn read(body: &[u8]) -> Self {
        match json::read::<Value>(body, MAX_HELD_BYTES) {
            Ok(Value::Array(mut all)) if !all.is_empty() => Self::of(&all.swap_remove(0)),
            Ok(value) => Self::of(&value),
            Err(_) => {
                let text = String::from_utf8_lossy(&body[..body.len().min(2_000)]);
                // Gateways answer with pages.
                let plain = !text.trim_start().starts_with('<');
                let message = if plain {
                    mask(text.trim())
                } else {
                    String::new()
                };
                Self {
                    message: cut(message),
                    code: String::new(),
                    kind: String::new(),
                    limit: None,
                }
            }
        }
    }

    fn of(value: &Value) -> Self {
        let inner = match value.get("error") {
            Some(inner) if !inner.is_null() => inner,
            _ => value,
        };
        let text = |name: &str| match inner.get(name) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
        let message = match inner {
            Value::String(text) => text.clone(),
            _ => text("message"),
        };
        let message = &message[..message.floor_char_boundary(MAX_WORDS)];
        let (code, kind) = (text("code"), text("type"));
        Self {
            message: cut(mask(message)),
            code: if code.is_empty() { kind.clone() } else { code },
            kind,
            limit: inner.get("n_ctx").and_then(Value::as_u64),
        }
    }

    fn is_overflow(&self, status: u16) -> bool {
        const CODES: [&str; 4] = [
            "context_length_exceeded",
            "exceed_context_size_error",
            "request_too_large",
            "string_above_max_length",
        ];
        if CODES.contains(&self.code.as_str())
            || CODES.contains(&self.kind.as_str())
            || status == 413
        {
            return true;
        }
        // Anthropic and several servers give no code of their own for this.
        let unsaid = matches!(
            self.code.as_str(),
            "" | "invalid_request_error" | "BadRequestError"
        );
        let lower = self.message.to_ascii_lowercase();
        status == 400
            && unsaid
            && [
                "prompt is too long",
                "maximum context length",
                "context window",
                "input is too long",
            ]
            .iter()
            .any(|words| lower.contains(words))
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(500) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
