//! The schema, and how an older one becomes ours.

use tokio_postgres::Client;

use super::failure::Failure;

/// All changes in order. One that was released is never edited: what is new is a new one.
const MIGRATIONS: [(i32, &str); 1] = [(1, include_str!("migrations/0001_log.sql"))];

/// The version that we know.
const LATEST: i32 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Held while the schema is changed; the number is ours alone by convention ("contextu").
const LOCK: i64 = 0x636f_6e74_6578_7475;

/// Makes the schema, or brings it up to date, in one transaction. Whoever comes at the same time
/// waits for it.
pub async fn run(client: &Client) -> Result<(), Failure> {
    // Without a lock first: this is all there is to do nearly always, and needs no right to create.
    if version(client).await? == LATEST {
        return Ok(());
    }
    client
        .batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})"))
        .await?;
    let found = version(client).await?;
    if found == 0 {
        client
            .batch_execute(
                "CREATE SCHEMA IF NOT EXISTS contexture;
                 CREATE TABLE IF NOT EXISTS contexture.migrations (
                     version integer PRIMARY KEY,
                     applied timestamptz NOT NULL DEFAULT clock_timestamp()
                 )",
            )
            .await?;
    }
    for (version, sql) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
        client.batch_execute(sql).await?;
        let note = format!("INSERT INTO contexture.migrations (version) VALUES ({version})");
        client.batch_execute(&note).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(())
}

/// Which version the database has; 0 when it has none. Asked of the catalogue as a table:
/// `to_regclass` may remember from before the lock that there was nothing.
async fn version(client: &Client) -> Result<i32, Failure> {
    let row = client
        .query_typed_one(
            "SELECT current_setting('server_encoding'),
                    EXISTS (SELECT FROM pg_catalog.pg_tables
                        WHERE schemaname = 'contexture' AND tablename = 'migrations')",
            &[],
        )
        .await?;
    let encoding: String = row.try_get(0)?;
    if encoding != "UTF8" {
        return Err(Failure::Unusable {
            what: format!("its encoding is {encoding}, which cannot hold every text"),
            hint: "create the database with ENCODING 'UTF8' TEMPLATE template0",
        });
    }
    if !row.try_get::<_, bool>(1)? {
        return Ok(0);
    }
    let row = client
        .query_typed_one(
            "SELECT coalesce(max(version), 0) FROM contexture.migrations",
            &[],
        )
        .await?;
    let version: i32 = row.try_get(0)?;
    if version > LATEST {
        return Err(Failure::Unusable {
            what: format!("its schema has version {version}, and this program knows {LATEST}"),
            hint: "a newer program made it: update this one",
        });
    }
    Ok(version)
}
