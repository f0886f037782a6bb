//! The project's log, as its configuration says.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contexture_store::{FileLog, FileOptions, Key, Loaded, Log, PgLog, PgOptions, Sessions};

use crate::config::{self, Chosen, Config, DATA};
use crate::error::CliError;
use crate::output::note;
use crate::view::safe;

/// How long a command waits for another one that writes to the same session.
const PATIENCE: Duration = Duration::from_secs(2);

/// The log of a project.
pub struct Home {
    pub sessions: Sessions,
    /// Where the log is a folder.
    pub files: Option<Arc<FileLog>>,
}

/// Opens the log of the project.
pub fn open(dir: Option<&Path>) -> Result<Home, CliError> {
    of(&config::load(dir)?)
}

/// The log that a configuration names.
pub fn of(config: &Config) -> Result<Home, CliError> {
    if let Some(url) = url(config.store.url.clone())? {
        let log: Arc<dyn Log> = Arc::new(PgLog::connect(&url, PgOptions::default())?);
        return Ok(Home {
            sessions: Sessions::new(log),
            files: None,
        });
    }
    let options = FileOptions {
        durability: config.store.durability,
        patience: PATIENCE,
        listener: Arc::new(|notice| note!("ctx: {}", safe(&notice.to_string()))),
    };
    let files = Arc::new(FileLog::new(config.root.join(DATA), options));
    let log: Arc<dyn Log> = files.clone();
    Ok(Home {
        sessions: Sessions::new(log),
        files: Some(files),
    })
}

/// The user's own choice of a database, or the project's.
///
/// A project's file comes with the project, from anybody. What is said here must not go to a machine
/// of their choosing, so the file alone can only name a database on this one.
fn url(chosen: Option<Chosen<String>>) -> Result<Option<String>, CliError> {
    if let Ok(own) = std::env::var(URL)
        && !own.is_empty()
    {
        return Ok(Some(own));
    }
    match chosen {
        Some(url) if url.is_projects() && !PgLog::is_local(&url.value)? => {
            Err(CliError::NotAllowed {
                what: "this project's contexture.json names a database on another machine"
                    .to_owned(),
                hint: format!("if that is what you want, say so yourself: set {URL} to its URL"),
            })
        }
        chosen => Ok(chosen.map(|url| url.value)),
    }
}

/// The environment's word on where logs are kept.
const URL: &str = "CONTEXTURE_STORE_URL";

impl Home {
    /// A session, with a word on what of it could not be read.
    pub fn load(&self, key: &Key) -> Result<Loaded, CliError> {
        let loaded = self.sessions.load(key)?;
        for odd in &loaded.oddities {
            let what = if odd.kept { "damaged" } else { "left aside" };
            note!(
                "ctx: {}",
                safe(&format!("session `{key}`, {what}: {}", odd.why))
            );
        }
        if !loaded.oddities.is_empty() {
            note!("     `ctx doctor` says more, and repairs with --fix");
        }
        Ok(loaded)
    }
}
