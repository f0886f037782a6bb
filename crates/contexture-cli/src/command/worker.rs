use std::path::Path;
use std::sync::Arc;

use contexture::pool::{Name, NewResource};
use contexture_agent::Cancel;
use contexture_fleet::hub::Hub;
use contexture_fleet::work::seal::Seat;
use contexture_fleet::work::{Executor, Worker as AtWork, WorkerOptions};
use contexture_fleet::{RpcError, Why};
use serde_json::json;

use super::pool::by_words;
use super::serve::{log, stop};
use super::{print, print_json, runtime};
use crate::args::{LogFormat, PoolAdd, Worker};
use crate::config::{self, Config};
use crate::error::CliError;
use crate::fleet::{daemon, reach};
use crate::view::{Paint, plural};
use crate::work::{self, ByAgent, ByCommand, Native, PROVIDE, RemoteHub};
use crate::{agent, store};

/// A worker's own key, on a machine that has nothing else of the project.
const KEY: &str = "CONTEXTURE_WORKER_KEY";

/// `ctx worker`.
pub fn worker(options: &Worker, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let config = config::load(dir)?;
    log(LogFormat::Text, "warn");
    runtime()?.block_on(async {
        let seat = seat(options, &config)?;
        let resource = resource(options, &seat.name)?;
        let hub = hub(&config, &seat).await?;
        let executor: Arc<dyn Executor> = match &options.by {
            Some(agent) => {
                let fleet = reach(dir)?;
                fleet.call("agent.show", json!({"name": agent})).await?;
                Arc::new(ByAgent::new(Arc::new(fleet), agent))
            }
            None if !options.command.is_empty() => {
                Arc::new(ByCommand::new(&options.command, config::here()?)?)
            }
            None => {
                check_tools(options, &resource, &config).await?;
                Arc::new(Native::new(&options.agent, dir.map(Path::to_owned)))
            }
        };
        let id = seat.name.clone();
        if json {
            print_json(&json!({"type": "joined", "id": id, "pid": std::process::id()}))?;
        } else {
            let paint = Paint::stdout();
            let can = resource.capabilities.len();
            let can = match seat.is_owner() {
                true => plural(can, "capability").replace("capabilitys", "capabilities"),
                false => "what the pool says of it".to_owned(),
            };
            let place = work::url(&config).map_or("the daemon", |_| "NATS");
            print(
                format!(
                    " {}  works over {place}, with {can}; Ctrl-C ends it\n",
                    paint.bold(id.as_str())
                )
                .as_bytes(),
            )?;
        }
        let ending = Cancel::default();
        let ended = ending.clone();
        tokio::spawn(async move {
            stop().await;
            ended.cancel();
        });
        // One that nobody named is known for as long as it is here.
        let options = WorkerOptions {
            fleeting: options.id.is_none() && seat.is_owner(),
            ..WorkerOptions::default()
        };
        let made = AtWork::new(hub, seat, resource, executor, options);
        let made = made.map_err(|error| RpcError::new(Why::Failed, error.to_string()))?;
        made.run(ending).await.map_err(work::hub_error)
    })
}

/// Refuses what our own loop has no tool for here: it would be chosen, and could only talk of it.
async fn check_tools(
    options: &Worker,
    resource: &NewResource,
    config: &Config,
) -> Result<(), CliError> {
    if resource.capabilities.is_empty() {
        return Ok(());
    }
    let home = store::of(config)?;
    let here = agent::names_here(&options.agent, config, &home).await?;
    let (_, loaded) = super::pool::load(&home)?;
    let table = loaded.board.pool().capability_tools();
    for capability in resource.capabilities.keys() {
        let missing = work::missing(table.needed(capability).map(Name::as_str), &here);
        if !missing.is_empty() {
            return Err(CliError::NotAllowed {
                what: format!(
                    "--capability {capability}: no tool here provides it; it takes {}",
                    missing.join(", ")
                ),
                hint: format!(
                    "{PROVIDE}. Here: {}",
                    here.into_iter().collect::<Vec<_>>().join(", ")
                ),
            });
        }
    }
    Ok(())
}

/// Who we are: by the key that we were given, or as the owner.
fn seat(options: &Worker, config: &Config) -> Result<Seat, CliError> {
    if let Ok(secret) = std::env::var(KEY)
        && !secret.is_empty()
    {
        let seat = Seat::parse(&secret, KEY).map_err(work::key_error)?;
        return match &options.id {
            Some(id) if id != seat.name.as_str() => Err(CliError::Usage {
                what: format!("the key in {KEY} is that of `{}`, not of `{id}`", seat.name),
                hint: "leave --id out, or take the key of that resource".to_owned(),
            }),
            _ => Ok(seat),
        };
    }
    let id = options.id.clone().unwrap_or_else(default_id);
    let name = Name::new(&id).map_err(|error| error.within("--id"))?;
    Ok(work::key(config)?.seat(&name, true))
}

fn default_id() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain: String = host
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    let plain = if plain.is_empty() { "worker" } else { &plain };
    format!("{plain}-{}", std::process::id())
}

fn resource(options: &Worker, name: &Name) -> Result<NewResource, CliError> {
    let words = PoolAdd {
        id: None,
        kind: "executor".to_owned(),
        name: None,
        capabilities: options.capabilities.clone(),
        tools: options.tools.clone(),
        denied_tools: Vec::new(),
        worker: true,
        file: None,
    };
    by_words(name.as_str(), &words)
}

/// The hub of the configuration, or the daemon's.
async fn hub(config: &Config, seat: &Seat) -> Result<Arc<dyn Hub>, CliError> {
    if let Some(hub) = work::hub(config, &seat.namespace).await? {
        return Ok(hub);
    }
    match daemon(config)? {
        Some(client) => Ok(Arc::new(RemoteHub::new(client, config)?)),
        None => {
            let none = RpcError::new(Why::Conflict, "there is no hub to join");
            let hint =
                "start `ctx serve` here, or set hub.url (CONTEXTURE_HUB_URL) to a NATS server";
            Err(none.hint(hint).into())
        }
    }
}
