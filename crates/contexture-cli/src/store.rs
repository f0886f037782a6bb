//! The project's log, as its configuration says.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contexture_store::{
    FileOptions, Key, Loaded, Log, PgLog, PgOptions, ProjectLog, Sessions, Stream,
};

use crate::config::{self, Config, DATA};
use crate::error::CliError;
use crate::output::note;
use crate::view::safe;
use crate::{state, trust};

/// How long a command waits for another one that writes to the same session.
const PATIENCE: Duration = Duration::from_secs(2);

/// The log of a project.
pub struct Home {
    pub sessions: Sessions,
    /// Where the log is on this disk.
    pub files: Option<Arc<ProjectLog>>,
}

/// Opens the log of the project.
pub fn open(dir: Option<&Path>) -> Result<Home, CliError> {
    of(&config::load(dir)?)
}

/// The log that a configuration names.
pub fn of(config: &Config) -> Result<Home, CliError> {
    let own = std::env::var(URL).ok().filter(|url| !url.is_empty());
    let set = config.store.url.as_ref().map(|chosen| &chosen.value);
    if let Some(url) = own.as_ref().or(set) {
        let log: Arc<dyn Log> = Arc::new(PgLog::connect(url, PgOptions::default())?);
        return Ok(Home {
            sessions: Sessions::new(log),
            files: None,
        });
    }
    if config.withheld.contains(&"store.url") {
        note!(
            "ctx: this folder is not trusted, so its store.url does not count: `ctx trust` shows it"
        );
    }
    let files = Arc::new(state::take_over(config, on_disk(config)?)?);
    let log: Arc<dyn Log> = files.clone();
    Ok(Home {
        sessions: Sessions::new(log),
        files: Some(files),
    })
}

/// The project's streams on this disk, whatever the configuration says of a database. Nothing is made or moved.
pub fn on_disk(config: &Config) -> Result<ProjectLog, CliError> {
    let options = FileOptions {
        durability: config.store.durability,
        patience: PATIENCE,
        listener: Arc::new(|notice| note!("ctx: {}", safe(&notice.to_string()))),
    };
    let log = ProjectLog::new(&config.root.join(DATA), config.state.as_ref(), options)?;
    Ok(match trust::once() {
        true => log.admitting_foreign(),
        false => log,
    })
}

/// Refuses a conversation that is not the user's own: its session, what was said in it, or what is remembered of it.
pub fn check_own(sessions: &Sessions, key: &Key) -> Result<(), CliError> {
    sessions.check_own(key)?;
    for stream in [Stream::chat(key.clone()), Stream::memory(key.clone())] {
        contexture_store::check_own(sessions.log().as_ref(), &stream)?;
    }
    Ok(())
}

/// The environment's word on where logs are kept.
pub const URL: &str = "CONTEXTURE_STORE_URL";

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
