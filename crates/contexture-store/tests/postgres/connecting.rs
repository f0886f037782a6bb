use std::time::{Duration, Instant};

use contexture_store::{Log, PgLog, PgOptions, StoreError};

use crate::postgres::stream;
use crate::server::{PASSWORD, Server};

// needs: postgres
#[test]
fn connecting_works_or_says_why_not() {
    let Some(server) = Server::get() else {
        return;
    };
    let (Some(port), Some(certificate)) = (server.port(), server.file("server.crt")) else {
        println!("skipped: the server of CONTEXTURE_TEST_POSTGRES has another setup");
        return;
    };
    let database = server.database();
    let url =
        |host: &str, query: &str| format!("{}?{query}", server.url(host, database.name()).unwrap());
    let right = url("127.0.0.1", "");
    let wrong_password = right.replace("s3cret", "guess");
    let roots = format!("sslrootcert={}", certificate.display());
    for (url, what, hint) in [
        (
            right.replace(&format!(":{port}/"), ":1/"),
            "nothing listens there",
            "start the server",
        ),
        (
            right.replace("127.0.0.1", "nowhere.invalid"),
            "cannot be reached",
            "check host",
        ),
        (
            server.url("127.0.0.1", "nosuch").unwrap(),
            "\"nosuch\" does not exist",
            "createdb",
        ),
        (
            wrong_password,
            "password authentication failed",
            "correct user and password",
        ),
        (
            right.replace(":s3cret%2Fp%40ss", ""),
            "wants a password",
            "user:password",
        ),
        (
            right.replace("postgres:", "mysql:"),
            "cannot be read",
            "write it as",
        ),
        (
            url("127.0.0.1", "sslmode=verify-full"),
            "no encrypted connection",
            "sslrootcert",
        ),
        (
            url("127.0.0.1", &format!("sslmode=verify-full&{roots}")),
            "no encrypted connection",
            "certificate",
        ),
        (
            url("localhost", "sslmode=verify-ca&sslrootcert=/nowhere"),
            "sslrootcert /nowhere",
            "name the file",
        ),
    ] {
        let since = Instant::now();
        let Err(error) = PgLog::connect(&url, PgOptions::default()) else {
            panic!("connected: {what}");
        };
        println!("{error}; {}", error.hint());
        assert!(since.elapsed() < Duration::from_secs(60), "{error}");
        assert!(matches!(error, StoreError::Database { .. }));
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.hint().contains(hint), "{}", error.hint());
        let text = format!("{error} {error:?} {}", error.hint());
        for secret in [PASSWORD, "s3cret", "p%40ss", "guess"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(!error.to_string().contains('\n'), "{error}");
    }

    for (host, query, encrypted) in [
        ("127.0.0.1", "sslmode=disable", "f"),
        ("127.0.0.1", "", "t"),
        ("127.0.0.1", "sslmode=prefer", "t"),
        ("127.0.0.1", "sslmode=require", "t"),
        ("127.0.0.1", &format!("sslmode=verify-ca&{roots}"), "t"),
        ("localhost", &format!("sslmode=verify-full&{roots}"), "t"),
    ] {
        let name = format!("application_name=test_{}", query.len());
        let log = PgLog::connect(&url(host, &format!("{query}&{name}")), PgOptions::default());
        let log = log.unwrap_or_else(|error| panic!("{query}: {error}"));
        assert!(log.tail(&stream("x")).unwrap().is_none());
        let found = server.admin(&format!(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = 'test_{}'",
            query.len()
        ));
        assert_eq!(found, [encrypted], "{query}");
    }

    server.admin("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    let refused = PgLog::connect(
        &server.url("127.0.0.1", "latin").unwrap(),
        PgOptions::default(),
    );
    let Err(StoreError::Database { what, hint }) = refused else {
        panic!("a database that cannot hold every text was taken");
    };
    assert!(
        what.contains("LATIN1") && hint.contains("UTF8"),
        "{what}; {hint}"
    );
}
