//! Tasks from this program's side: the hub that the configuration names, who does tasks here, and the tools of an
//! orchestrator.

mod agent;
mod command;
mod native;
mod remote;
mod tools;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use contexture_fleet::hub::{Hub, HubError, LocalHub, NatsHub, NatsOptions};
use contexture_fleet::work::seal::{HubKey, KeyError};
use contexture_fleet::work::{WorkOptions, WorkerOptions};
use contexture_fleet::{RpcError, Why};
use contexture_store::{BoardLog, HUB_KEY, Key, StoreError};

pub use agent::ByAgent;
pub use command::ByCommand;
pub use native::{Native, PROVIDE, missing, told};
pub use remote::RemoteHub;
pub use tools::{PoolTools, TOOLS};

use crate::config::Config;
use crate::error::CliError;
use crate::state;
use crate::store::Home;

/// The project's board.
pub const BOARD: &str = "main";
/// The environment's word on where the hub is.
pub const URL: &str = "CONTEXTURE_HUB_URL";
/// The key that all others follow from, for several machines that hand out the same tasks.
const KEY: &str = "CONTEXTURE_HUB_KEY";

/// The project's board in its log.
pub fn board(home: &Home) -> Result<BoardLog, CliError> {
    Ok(BoardLog::new(
        Arc::clone(home.sessions.log()),
        Key::new(BOARD)?,
    ))
}

/// How tasks are handed out, over this hub or in this process alone.
pub fn options(
    config: &Config,
    home: &Home,
    hub: Option<Arc<dyn Hub>>,
) -> Result<WorkOptions, CliError> {
    let shared = hub.is_some();
    Ok(WorkOptions {
        log: board(home)?,
        hub: hub.unwrap_or_else(|| Arc::new(LocalHub::default())),
        key: key(config)?,
        shared,
        patience: config.work.patience,
        locale: config.work.locale,
    })
}

/// The key that all others follow from.
pub fn key(config: &Config) -> Result<HubKey, CliError> {
    let key = match std::env::var(KEY) {
        Ok(own) if !own.is_empty() => HubKey::parse(own.trim(), KEY),
        _ => HubKey::of_file(state::made(config)?, HUB_KEY),
    };
    key.map_err(key_error)
}

/// What is wrong with a key, in words of this program.
pub fn key_error(error: KeyError) -> CliError {
    if let KeyError::State(error) = error {
        return StoreError::from(error).into();
    }
    let hint =
        "take it as `ctx pool key ID` gave it; for a project, remove the file and it is made anew";
    RpcError::new(Why::Invalid, error.to_string())
        .hint(hint)
        .into()
}

/// Where the hub is, if anywhere. A project's file alone names one only where the folder is trusted.
pub fn url(config: &Config) -> Option<String> {
    let own = std::env::var(URL).ok().filter(|url| !url.is_empty());
    own.or_else(|| config.work.url.as_ref().map(|chosen| chosen.value.clone()))
}

/// Connects to the hub that the configuration names, if it does.
pub async fn hub(config: &Config, namespace: &str) -> Result<Option<Arc<dyn Hub>>, CliError> {
    let Some(url) = url(config) else {
        return Ok(None);
    };
    if let Some(file) = &config.work.credentials {
        check_private(file)?;
    }
    let options = NatsOptions {
        url,
        namespace: namespace.to_owned(),
        credentials: config.work.credentials.clone(),
        beat: WorkerOptions::default().beat,
        patience: config.work.patience,
    };
    let hub = NatsHub::connect(options).await.map_err(hub_error)?;
    Ok(Some(Arc::new(hub)))
}

/// Refuses a file with credentials that others can read. It may be a link: the user named it.
fn check_private(file: &Path) -> Result<(), CliError> {
    match file.metadata() {
        Ok(about) if about.mode() & 0o077 != 0 => Err(CliError::NotAllowed {
            what: format!("{}: others can read or change it", file.display()),
            hint: format!("chmod 600 {}", file.display()),
        }),
        // What is not there is said by whoever reads it.
        _ => Ok(()),
    }
}

/// What the hub said, in words of this program.
pub fn hub_error(error: HubError) -> CliError {
    RpcError::from(error).into()
}
