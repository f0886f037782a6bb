//! What may go wrong with a database: whether it is worth another try, and how to say it.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::target::Target;
use crate::StoreError;

/// Why one attempt did not get through.
pub enum Failure {
    /// The server said so, or the way to it broke.
    Failed(Error),
    /// There is no way to it.
    Unreached(io::Error),
    /// No answer came in this time.
    Silent(Duration),
    /// Every connection was in use for this time.
    Busy(Duration),
    /// The database is not one that we can use.
    Unusable { what: String, hint: &'static str },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Unreached(error)
    }
}

impl Failure {
    /// Whether it may pass by itself. What never worked before (`met` is whether it did) is more
    /// likely a wrong address than a server that comes back, and somebody waits to be told.
    pub fn may_pass(&self, met: bool) -> bool {
        let error = match self {
            Self::Failed(error) => error,
            Self::Unreached(error) => return met && is_lost(error),
            _ => return met && matches!(self, Self::Silent(_)),
        };
        match error.code() {
            // It says itself that it is about to start.
            Some(code) if *code == SqlState::CANNOT_CONNECT_NOW => true,
            Some(code) => met && passing(code),
            None => met && (error.is_closed() || io_error(error).is_some_and(is_lost)),
        }
    }

    /// The error for the caller, who may have waited for the server to come back.
    pub fn into_error(self, target: &Target, waited: Option<Duration>) -> StoreError {
        let (mut what, hint) = self.words();
        if let Some(waited) = waited {
            what = format!("{what}; tried again for {waited:.1?}");
        }
        StoreError::Database {
            what: format!("{target}: {what}"),
            hint: hint.to_owned(),
        }
    }

    fn words(self) -> (String, &'static str) {
        match self {
            Self::Unusable { what, hint } => (what, hint),
            Self::Silent(limit) => (
                format!("no answer within {limit:.1?}"),
                "see whether the server is overloaded, or a firewall is in the way",
            ),
            Self::Busy(limit) => (
                format!("all connections were in use for {limit:.1?}"),
                "see whether the server is overloaded, or allow more connections",
            ),
            Self::Failed(error) => words(&error),
            Self::Unreached(error) => unreached(&error),
        }
    }
}

fn words(error: &Error) -> (String, &'static str) {
    if let Some(said) = error.as_db_error() {
        return (said.message().to_owned(), remedy(said.code()));
    }
    let cause = error.source().map(ToString::to_string);
    let cause = cause.as_deref().unwrap_or("no reason given");
    let kind = error.to_string();
    // The driver has no other way to tell these apart.
    if kind.contains("TLS") {
        let what = format!("no encrypted connection: {cause}");
        return (
            what,
            "check sslmode, sslrootcert and the server's certificate",
        );
    }
    if cause.contains("password missing") {
        return (
            "it wants a password, and store.url has none".to_owned(),
            "write it as postgres://user:password@host/database",
        );
    }
    match io_error(error) {
        Some(error) => unreached(error),
        None if error.is_closed() => (
            "the connection was lost".to_owned(),
            "see whether the server runs",
        ),
        None => (format!("{kind}: {cause}"), "see the server's log"),
    }
}

fn unreached(error: &io::Error) -> (String, &'static str) {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => (
            "nothing listens there".to_owned(),
            "start the server, or correct host and port in store.url",
        ),
        _ => (
            format!("cannot be reached: {error}"),
            "check host and port in store.url, and that the server runs",
        ),
    }
}

fn remedy(code: &SqlState) -> &'static str {
    match *code {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "correct user and password in store.url; the server's pg_hba.conf says who may connect"
        }
        SqlState::INVALID_CATALOG_NAME => {
            "create it with createdb, or correct its name in store.url"
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "let the user create a schema there (GRANT CREATE ON DATABASE), or take its owner"
        }
        SqlState::QUERY_CANCELED => "see what else keeps the server busy, or allow more time",
        SqlState::DISK_FULL | SqlState::OUT_OF_MEMORY => {
            "nothing was lost: make room and try again"
        }
        SqlState::TOO_MANY_CONNECTIONS => "raise max_connections, or allow us fewer of them",
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            "name the server that takes writes, or add target_session_attrs=read-write"
        }
        SqlState::CANNOT_CONNECT_NOW => "wait until the server is up",
        _ => "see the server's log",
    }
}

/// Goes away when the server is up again, or when another one has taken over.
fn passing(code: &SqlState) -> bool {
    let again = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    code.code().starts_with("08") || again.contains(code)
}

/// A certificate that is refused comes as bad data, and will be refused again.
fn is_lost(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::InvalidData
}

fn io_error(error: &Error) -> Option<&io::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref() {
            return Some(io);
        }
        cause = error.source();
    }
    None
}
