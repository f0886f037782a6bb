//! The project's log, as its configuration says.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contexture_store::{FileLog, FileOptions, Key, Loaded, Log, Sessions};

use crate::config::{self, DATA};
use crate::error::CliError;
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
    let config = config::load(dir)?;
    let options = FileOptions {
        durability: config.store.durability,
        patience: PATIENCE,
        listener: Arc::new(|notice| eprintln!("ctx: {}", safe(&notice.to_string()))),
    };
    let files = Arc::new(FileLog::new(config.root.join(DATA), options));
    let log: Arc<dyn Log> = files.clone();
    Ok(Home {
        sessions: Sessions::new(log),
        files: Some(files),
    })
}

impl Home {
    /// A session, with a word on what of it could not be read.
    pub fn load(&self, key: &Key) -> Result<Loaded, CliError> {
        let loaded = self.sessions.load(key)?;
        for odd in &loaded.oddities {
            let what = if odd.kept { "damaged" } else { "left aside" };
            eprintln!("ctx: session `{key}`, {what}: {}", safe(&odd.why));
        }
        if !loaded.oddities.is_empty() {
            eprintln!("     `ctx doctor` says more, and repairs with --fix");
        }
        Ok(loaded)
    }
}
