//! Who has something to say when an agent's session begins, beside the core: files, programs and MCP
//! servers that the configuration names, the project's rules, and skills.
//!
//! What comes with a project counts only when its folder is trusted. A provider that fails says so in a
//! sentence, and the session begins without it unless it is required.

mod answer;
mod command;
mod file;
mod mcp;
mod own;
mod program;
mod rules;
mod skills;

pub use own::{Provided, provided};

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use contexture::inject::{AgentInstanceMeta, ContextProvider, Traits};
use contexture_fleet::PATIENCE;

use crate::config::{self, Config, ProviderConfig, ProviderKind};
use crate::error::CliError;
use crate::trust::{Folder, State};

/// What starting a program takes.
const MARGIN: Duration = Duration::from_secs(1);

/// How long a provider may take: as long as the most patient of them, and a little for starting it.
pub fn patience(config: &Config) -> Duration {
    let longest = config.providers.iter().map(|provider| provider.timeout);
    longest.max().unwrap_or_default().max(PATIENCE) + MARGIN
}

/// The project's rules, skills, and the configured providers, in this order. The configuration holds
/// those of the project only where it is trusted.
pub fn all(config: &Config) -> Vec<Arc<dyn ContextProvider>> {
    let root = std::path::absolute(&config.root).unwrap_or_else(|_| config.root.clone());
    let mut all: Vec<Arc<dyn ContextProvider>> = vec![
        Arc::new(rules::Rules {
            root: root.clone(),
            judge: Folder::state,
        }),
        Arc::new(skills::SkillList {
            root,
            enabled: config.agent.skills,
            judge: Folder::state,
        }),
    ];
    all.extend(configured(config));
    all
}

/// The configured providers.
fn configured(config: &Config) -> Vec<Arc<dyn ContextProvider>> {
    let root = std::path::absolute(&config.root).unwrap_or_else(|_| config.root.clone());
    let made = config.providers.iter().map(|provider| {
        let (of, root) = (provider.clone(), root.clone());
        let made: Arc<dyn ContextProvider> = match &provider.kind {
            ProviderKind::File(path) => Arc::new(file::FromFile {
                path: path.clone(),
                of,
                root,
                judge: Folder::state,
            }),
            ProviderKind::Command(words) => Arc::new(command::FromCommand {
                words: words.clone(),
                of,
                root,
                supervisor: supervisor(),
                judge: Folder::state,
            }),
            ProviderKind::Mcp { server, tools } => {
                let servers = &config.agent.mcp_servers;
                Arc::new(mcp::FromServer {
                    server: servers.iter().find(|known| known.name == *server).cloned(),
                    name: server.clone(),
                    scope: *tools,
                    kept: Mutex::default(),
                    of,
                    root,
                    judge: Folder::state,
                })
            }
        };
        made
    });
    made.collect()
}

/// Says whether a folder is trusted.
type Judge = fn(&Folder) -> Result<State, CliError>;

/// The project's folder as it is when a session begins, where it is trusted; none where it never was.
fn trusted(root: &Path, here: &Path, judge: Judge) -> Result<Option<Folder>, String> {
    let look = || {
        let folder = config::folder(root, here)?;
        match judge(&folder)? {
            State::Trusted => Ok(Ok(Some(folder))),
            State::Unknown => Ok(Ok(None)),
            State::Changed => Ok(Err(folder.in_short()?)),
        }
    };
    match look() {
        Ok(Err(what)) => Err(format!(
            "{what} changed since this folder was trusted: `ctx trust` shows how, and asks"
        )),
        Ok(Ok(folder)) => Ok(folder),
        Err::<_, CliError>(error) => Err(error.to_string()),
    }
}

/// Refuses to go on with what a project names once its folder is not trusted any more, or not as it is.
fn still_trusted(of: &ProviderConfig, root: &Path, judge: Judge) -> Result<(), String> {
    if of.of_project && trusted(root, root, judge)?.is_none() {
        return Err("this folder is not trusted any more".to_owned());
    }
    Ok(())
}

/// Returns true if an agent reads the project's rules and skills, and connects to its servers, itself: our own does, in
/// the project.
fn reads_project(meta: &AgentInstanceMeta, root: &Path) -> bool {
    meta.backend_type == contexture_fleet::backends::NATIVE
        && !meta.more.contains_key("ownCommand")
        && workspace(meta, root).starts_with(root)
}

/// How a configured provider's items are to be treated.
fn traits(of: &ProviderConfig) -> Traits {
    Traits {
        required: of.required,
        stability: of.stability,
        priority: of.priority,
    }
}

/// The command that ends a program when we are gone: we ourselves.
fn supervisor() -> Option<Vec<OsString>> {
    let us = std::env::current_exe().ok()?;
    Some(vec![us.into(), "__supervise".into()])
}

/// Where the agent works, where its host says so.
fn workspace(meta: &AgentInstanceMeta, root: &Path) -> PathBuf {
    let said = meta.more.get("workspace").and_then(|said| said.as_str());
    said.map_or_else(|| root.to_owned(), |said| root.join(said))
}

#[cfg(test)]
mod testing {
    use std::time::Duration;

    use contexture::inject::{Archetype, LaunchMode, WorkspacePolicy};
    use contexture::prompt::Stability;

    use super::*;

    pub fn of(kind: ProviderKind) -> ProviderConfig {
        ProviderConfig {
            name: "test".to_owned(),
            kind,
            timeout: Duration::from_secs(20),
            max_bytes: 1_000,
            required: false,
            stability: Stability::Stable,
            priority: 0,
            of_project: true,
        }
    }

    pub fn meta() -> AgentInstanceMeta {
        AgentInstanceMeta {
            name: "ada".to_owned(),
            archetype: Archetype::Employee,
            backend_type: "native".to_owned(),
            workspace_policy: WorkspacePolicy::Persistent,
            launch_mode: LaunchMode::Managed,
            more: serde_json::Map::new(),
        }
    }
}
