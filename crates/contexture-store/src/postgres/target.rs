//! Which database is meant: the URL, read once, and how it is named in messages.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::Check;
use crate::StoreError;

/// A database, as a URL names it.
pub struct Target {
    pub config: Config,
    pub check: Check,
    /// The authorities to trust instead of the system's: a PEM file.
    pub roots: Option<String>,
}

impl Target {
    /// Reads a URL. No part of it is repeated in an error, since any part may be of a password.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(bad("it does not begin with `postgres://`"));
        }
        // A password may have a `?` in it.
        let host = url.find('@').unwrap_or(0);
        let end = url[host..].find('?').map_or(url.len(), |at| host + at);
        let (address, query) = (&url[..end], url.get(end + 1..).unwrap_or(""));
        // The first `@` ends the password, so what is left of it would be taken for a host.
        if address.matches('@').count() > 1 {
            return Err(bad("it has more than one `@`"));
        }
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        // What the driver does not know is taken out before it sees the URL.
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(decoded(value)),
                _ => rest.push(pair),
            }
        }
        // `system` is libpq's word for what we do without it.
        let roots = roots.filter(|roots| roots != "system");
        let (ssl, check) = match mode {
            Some("disable") => (SslMode::Disable, Check::Nothing),
            None | Some("prefer") => (SslMode::Prefer, Check::Nothing),
            Some("require") if roots.is_none() => (SslMode::Require, Check::Nothing),
            Some("require" | "verify-ca") => (SslMode::Require, Check::Signer),
            Some("verify-full") => (SslMode::Require, Check::SignerAndName),
            Some(_) => {
                return Err(bad(
                    "its sslmode is none of disable, prefer, require, verify-ca and verify-full",
                ));
            }
        };
        let mut config: Config = format!("{address}?{}", rest.join("&"))
            .parse()
            .map_err(|error| bad(what_is_wrong(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(bad("it names no host"));
        }
        config.ssl_mode(ssl);
        // A connection that a router forgot is noticed in a minute, not in two hours.
        if config.get_keepalives_idle() > Duration::from_secs(60) {
            config.keepalives_idle(Duration::from_secs(60));
        }
        if config.get_application_name().is_none() {
            config.application_name("contexture");
        }
        Ok(Self {
            config,
            check,
            roots,
        })
    }

    /// Whether every host that it names is this machine.
    pub fn is_local(&self) -> bool {
        let local = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                name == "localhost"
                    || name
                        .parse()
                        .is_ok_and(|address: IpAddr| address.is_loopback())
            }
        };
        self.config.get_hosts().iter().all(local)
            && self.config.get_hostaddrs().iter().all(IpAddr::is_loopback)
    }
}

/// Host, port and database; never more.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(5432);
        let mut hosts: Vec<String> = Vec::new();
        for (n, host) in self.config.get_hosts().iter().enumerate() {
            hosts.push(match host {
                Host::Tcp(name) => format!("{name}:{}", port(n)),
                Host::Unix(path) => format!("{}:{}", path.display(), port(n)),
            });
        }
        if hosts.is_empty() {
            let addresses = self.config.get_hostaddrs().iter().enumerate();
            hosts.extend(addresses.map(|(n, address)| format!("{address}:{}", port(n))));
        }
        // As the server does, when no name is given.
        let name = self.config.get_dbname().or(self.config.get_user());
        write!(
            f,
            "PostgreSQL at {}, database `{}`",
            hosts.join(", "),
            name.unwrap_or("the user's own")
        )
    }
}

fn bad(what: &str) -> StoreError {
    StoreError::Database {
        what: format!("store.url cannot be read: {what}"),
        hint:
            "write it as postgres://user:password@host:5432/database, with %XX for signs such as \
               `@`, `/`, `?` and `#` in the password"
                .to_owned(),
    }
}

/// The driver's words quote options that it does not know, and those may be the rest of a password
/// with a `?` in it. Only what is surely no such thing is repeated.
fn what_is_wrong(error: &tokio_postgres::Error) -> &'static str {
    let said = std::error::Error::source(error).map(ToString::to_string);
    match said.as_deref() {
        Some(said) if said.starts_with("invalid value for option `port`") => {
            "its port is no number"
        }
        Some(said) if said.starts_with("invalid value for option `host`") => "its host is no name",
        Some(said) if said.starts_with("invalid value") => {
            "an option behind the `?` has no such value"
        }
        Some(said) if said.starts_with("unknown option") => {
            "there is no such option behind the `?`"
        }
        _ => "it is no URL of a database",
    }
}

/// `%XX` undone, as in the rest of the URL.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_named_without_its_password() {
        for (url, name) in [
            (
                "postgres://me:s3cret@db.example:6000/logs",
                "PostgreSQL at db.example:6000, database `logs`",
            ),
            (
                "postgresql://me:s3cret@db/?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
                "PostgreSQL at db:5432, database `me`",
            ),
            (
                "postgres://me:s3?cret&sslmode=x@db/logs?sslmode=require",
                "PostgreSQL at db:5432, database `logs`",
            ),
            (
                "postgres://me:s3cret@%2Fvar%2Frun/logs",
                "PostgreSQL at /var/run:5432, database `logs`",
            ),
            (
                "postgres://me:s3cret@a:1,b:2/logs?target_session_attrs=read-write",
                "PostgreSQL at a:1, b:2, database `logs`",
            ),
        ] {
            assert_eq!(Target::parse(url).map(|t| t.to_string()).unwrap(), name);
        }
    }

    #[test]
    fn only_this_machine_is_local() {
        for (url, local) in [
            ("postgres://me@localhost/logs", true),
            ("postgres://me@127.0.0.1:5433/logs", true),
            ("postgres://me@[::1]/logs", true),
            ("postgres://me@%2Frun%2Fpostgresql/logs", true),
            ("postgres://me@db.example.org/logs", false),
            ("postgres://me@localhost.example.org/logs", false),
            ("postgres://me@localhost,db.example.org/logs", false),
            ("postgres://me@localhost/logs?hostaddr=192.0.2.1", false),
        ] {
            assert_eq!(
                Target::parse(url).is_ok_and(|t| t.is_local()),
                local,
                "{url}"
            );
        }
    }

    #[test]
    fn a_bad_url_is_refused_in_one_line_that_repeats_nothing() {
        for url in [
            "",
            "mysql://me:s3cret@db/logs",
            "postgres://me:s3cret@db:port/logs",
            "postgres://me:s3cret@db/logs?sslmode=s3cret",
            "postgres://me:pass?s3cret=1",
            "postgres://me:s3cret@/logs",
            "postgres://me:p@s3cret@db/logs",
            "postgres://me:p@s3cret/x@db/logs",
            "postgres://me:p@db/logs?s3cret=1",
            "postgres://me:s3cret",
        ] {
            let Err(error) = Target::parse(url) else {
                panic!("{url} was taken");
            };
            let text = format!("{error} {error:?} {}", error.hint());
            assert!(!text.contains("s3cret"), "{text}");
            assert!(!error.to_string().contains('\n') && !error.hint().is_empty());
        }
    }

    #[test]
    fn encryption_is_as_strict_as_asked() {
        for (query, ssl, check) in [
            ("", SslMode::Prefer, Check::Nothing),
            ("sslmode=disable", SslMode::Disable, Check::Nothing),
            ("sslmode=require", SslMode::Require, Check::Nothing),
            (
                "sslmode=require&sslrootcert=ca.pem",
                SslMode::Require,
                Check::Signer,
            ),
            ("sslmode=verify-ca", SslMode::Require, Check::Signer),
            (
                "sslrootcert=system&sslmode=verify-full",
                SslMode::Require,
                Check::SignerAndName,
            ),
        ] {
            let target = Target::parse(&format!("postgres://me@db/logs?{query}")).unwrap();
            assert_eq!((target.config.get_ssl_mode(), target.check), (ssl, check));
        }
    }
}
