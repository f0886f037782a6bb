//! The project's fleet: through its daemon where one runs, else opened here for as long as a command
//! takes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contexture_fleet::hub::Hub;
use contexture_fleet::{Call, Caller, Fleet, FleetError, Options, RpcError, Service, Why};
use contexture_server::{Client, Daemon, DaemonLock};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::config::{self, Config, DATA};
use crate::error::CliError;
use crate::settings;
use crate::state;
use crate::store;
use crate::trust;
use crate::work;

/// How long an agent that crashed stays down.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// A way to the fleet.
pub enum Reach {
    /// Its daemon.
    Daemon(Client),
    /// Opened here, and locked so that no daemon starts meanwhile.
    Here {
        fleet: Arc<Fleet>,
        /// Held until the command ends.
        _lock: DaemonLock,
    },
}

/// Finds the daemon, or opens the fleet here. To be called inside a runtime.
pub fn reach(dir: Option<&Path>) -> Result<Reach, CliError> {
    let config = config::load(dir)?;
    if let Some(client) = daemon(&config)? {
        return Ok(Reach::Daemon(client));
    }
    let lock = DaemonLock::take(state::made(&config)?)?;
    Ok(Reach::Here {
        fleet: open(&config, dir, None)?,
        _lock: lock,
    })
}

/// The daemon, for what cannot be done without one.
pub fn daemon_only(dir: Option<&Path>) -> Result<Client, CliError> {
    daemon(&config::load(dir)?)?.ok_or_else(|| {
        let none = RpcError::new(Why::Conflict, "no daemon runs for this project");
        none.hint("start one with `ctx serve`").into()
    })
}

/// The daemon of a project, where one runs.
pub fn daemon(config: &Config) -> Result<Option<Client>, CliError> {
    let Some(daemon) = Daemon::find(state::folder(config)?)? else {
        return Ok(None);
    };
    Ok(Some(Client::new(&daemon.url, &daemon.secret)?))
}

/// The owner's secret, where a daemon runs, for whoever masks it.
pub fn owner_secret(config: &Config) -> Option<String> {
    let daemon = Daemon::find(state::folder(config).ok()?).ok().flatten()?;
    Some(daemon.secret)
}

/// Opens the fleet of a project; tasks go over `hub`, or stay in this process.
pub fn open(
    config: &Config,
    dir: Option<&Path>,
    hub: Option<Arc<dyn Hub>>,
) -> Result<Arc<Fleet>, CliError> {
    let home = store::open(dir)?;
    state::say_ignored(config);
    config.folder.adopt();
    let us = std::env::current_exe()?;
    let options = Options {
        root: std::path::absolute(&config.root)?,
        data: std::path::absolute(config.root.join(DATA))?,
        log: Arc::clone(home.sessions.log()),
        settings: settings::plain(config),
        token_life: config.fleet.token_life,
        patience: config.fleet.patience,
        supervisor: Some(vec![us.clone().into(), "__supervise".into()]),
        program: us,
        first_wait: FIRST_WAIT,
        trusts: Arc::new(may_trust),
        provider_patience: crate::providers::patience(config),
        providers: crate::providers::all(config),
        templates: crate::templates::load(config)?,
        hooks: config.fleet.hooks.clone(),
        work: work::options(config, &home, hub)?,
    };
    Fleet::open(options).map_err(|error| match error {
        FleetError::Store(error) => error.into(),
        FleetError::Token(error) => RpcError::new(Why::Failed, error.to_string()).into(),
    })
}

/// Returns true if a folder may be trusted for the user: its project is trusted as it is now, or there is nothing that
/// could instruct anybody.
fn may_trust(folder: &Path, obeyed: &[&str]) -> bool {
    let Ok(config) = config::load_at(None, folder) else {
        return false;
    };
    match config.folder.state() {
        Ok(trust::State::Trusted) => true,
        Ok(trust::State::Unknown) => {
            let within = folder
                .ancestors()
                .take_while(|part| part.starts_with(&config.root));
            let mut places = within.flat_map(|part| obeyed.iter().map(|name| part.join(name)));
            config.folder.seen().digests().is_empty()
                && !places.any(|place| place.symlink_metadata().is_ok())
        }
        Ok(trust::State::Changed) | Err(_) => false,
    }
}

impl Reach {
    /// Asks the fleet.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, CliError> {
        match self {
            Self::Daemon(client) => Ok(client.call(method, params).await?),
            Self::Here { fleet, .. } => {
                let call = Call {
                    caller: Caller::Owner,
                    method: method.to_owned(),
                    params,
                    updates: None,
                };
                Ok(Arc::clone(fleet).call(call).await?)
            }
        }
    }
}

impl Reach {
    /// Asks the fleet, and hands on what comes before the answer.
    pub async fn stream(
        &self,
        method: &str,
        params: Value,
        each: impl AsyncFnMut(Value) -> Result<(), CliError>,
    ) -> Result<Value, CliError> {
        let fleet = match self {
            Self::Daemon(client) => return stream(client, method, params, each).await,
            Self::Here { fleet, .. } => fleet,
        };
        let (updates, mut news) = mpsc::channel(64);
        let call = Call {
            caller: Caller::Owner,
            method: method.to_owned(),
            params,
            updates: Some(updates),
        };
        let asking = async { Ok(Arc::clone(fleet).call(call).await?) };
        hand_on(asking, async || news.recv().await, each).await
    }
}

/// Asks the daemon, and hands on what comes before the answer.
pub async fn stream(
    client: &Client,
    method: &str,
    params: Value,
    each: impl AsyncFnMut(Value) -> Result<(), CliError>,
) -> Result<Value, CliError> {
    let (updates, mut news) = mpsc::unbounded_channel();
    let asking = client.stream(method, params, move |update| {
        // The other end is below, and lives as long.
        let _ = updates.send(update);
    });
    let asking = async { Ok(asking.await?) };
    hand_on(asking, async || news.recv().await, each).await
}

/// Hands on what comes before an answer. Whoever asks drops its end of the news with the answer.
async fn hand_on(
    asking: impl Future<Output = Result<Value, CliError>>,
    mut news: impl AsyncFnMut() -> Option<Value>,
    mut each: impl AsyncFnMut(Value) -> Result<(), CliError>,
) -> Result<Value, CliError> {
    let mut asking = Box::pin(asking);
    let done = loop {
        tokio::select! {
            biased;
            Some(update) = news() => each(update).await?,
            done = &mut asking => break done,
        }
    };
    drop(asking);
    while let Some(update) = news().await {
        each(update).await?;
    }
    done
}
