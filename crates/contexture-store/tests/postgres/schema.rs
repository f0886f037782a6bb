use contexture_store::{Expected, Log, PgLog, PgOptions, StoreError};

use crate::postgres::{record, stream};
use crate::server::Server;

// needs: postgres
#[test]
fn the_schema_is_made_once_and_a_newer_one_is_refused() {
    let Some(server) = Server::get() else {
        return;
    };
    let database = server.database();
    let url = database.url();
    // Eight at once on a fresh database, then one more.
    std::thread::scope(|scope| {
        for n in 0..8 {
            let url = &url;
            scope.spawn(move || {
                let log = PgLog::connect(url, PgOptions::default()).unwrap();
                log.append(&stream("main"), Expected::Any, &[record(&format!("r{n}"))])
                    .unwrap();
            });
        }
    });
    drop(PgLog::connect(&url, PgOptions::default()).unwrap());
    let versions = "SELECT version FROM contexture.migrations";
    assert_eq!(database.query(versions), ["1"]);
    assert_eq!(
        database.query("SELECT entries FROM contexture.streams"),
        ["8"]
    );

    // Who may not create anything can use what is there.
    let name = format!("reader_{}", std::process::id());
    database.query(&format!(
        "CREATE ROLE {name} LOGIN PASSWORD 'x';
         GRANT USAGE ON SCHEMA contexture TO {name};
         GRANT SELECT ON ALL TABLES IN SCHEMA contexture TO {name}"
    ));
    let (_, place) = url.rsplit_once('@').unwrap();
    let reader = PgLog::connect(
        &format!("postgres://{name}:x@{place}"),
        PgOptions::default(),
    );
    assert!(reader.unwrap().tail(&stream("main")).unwrap().is_some());
    database.query(&format!("DROP OWNED BY {name}; DROP ROLE {name}"));

    database.query("INSERT INTO contexture.migrations (version) VALUES (999)");
    let Err(StoreError::Database { what, hint }) = PgLog::connect(&url, PgOptions::default())
    else {
        panic!("a newer schema was taken");
    };
    assert!(what.contains("version 999"), "{what}");
    assert!(hint.contains("update"), "{hint}");
    assert_eq!(database.query(versions).len(), 2);
}
