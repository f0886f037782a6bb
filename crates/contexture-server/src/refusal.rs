use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A request that does not come as far as a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No secret, a wrong one, one that counts no more, two of them: it is not said which.
    Unknown,
    /// The code of a sign-in link that is used, expired or wrong.
    DeadLink,
    /// Too many of those from one address.
    Guessing {
        /// When to come again.
        seconds: u64,
    },
    /// The request names another host, or comes from another site's page.
    Foreign,
    /// Known, and not for this caller.
    NotAllowed,
    /// There is no such thing.
    NotFound,
    /// Something in the request cannot be read.
    Malformed(&'static str),
    /// The body is too long.
    TooLong,
    /// The body takes too long.
    TooSlow,
    /// A browser's request whose body is not said to be JSON.
    NotJson,
    /// This caller has too many calls under way.
    Busy,
    /// The service could not.
    Failed,
}

impl Refusal {
    fn status(self) -> StatusCode {
        match self {
            Self::Unknown | Self::DeadLink => StatusCode::UNAUTHORIZED,
            Self::Guessing { .. } | Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Foreign | Self::NotAllowed => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Unknown => (
                "Unauthorized",
                "not signed in, or what you came with counts no more",
                "send a session's token or the owner's secret as `Authorization: Bearer …`",
            ),
            Self::DeadLink => (
                "DeadLink",
                "the sign-in link was used before, or has expired",
                "run `ctx serve link` for a new one",
            ),
            Self::Guessing { .. } => (
                "Guessing",
                "too many wrong secrets from your address",
                "wait as long as Retry-After says; a right secret is let in at any time",
            ),
            Self::Foreign => (
                "Foreign",
                "the request is for another host, or from another site",
                "use the address that the daemon listens on",
            ),
            Self::NotAllowed => ("NotAllowed", "not for you", ""),
            Self::NotFound => ("NotFound", "there is no such thing", ""),
            Self::Malformed(what) => ("Malformed", what, ""),
            Self::TooLong => ("TooLong", "the body is too long", ""),
            Self::TooSlow => ("TooSlow", "the body did not come in time", ""),
            Self::NotJson => ("NotJson", "the content type must be application/json", ""),
            Self::Busy => (
                "Busy",
                "you have too many calls under way",
                "wait until one of them has ended",
            ),
            Self::Failed => ("Failed", "it failed", ""),
        }
    }

    fn body(self) -> Value {
        let (code, message, hint) = self.words();
        json!({"error": {"code": code, "message": message, "hint": hint}})
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status(), Json(self.body())).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Unknown => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::Guessing { seconds } => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                // Whoever guesses has to come again, which costs them and not us.
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Self::Busy => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
