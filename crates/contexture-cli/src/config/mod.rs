//! `contexture.json`: the project's, over the user's own.
//!
//! A project's file comes with the project, from anybody. What in it could run or send something
//! counts only when the folder is trusted: a [`Config`] never holds it otherwise.

mod agent;
mod fleet;
mod key;
mod keys;
mod layers;
mod providers;
pub mod range;
pub mod show;
mod work;

use std::path::{Path, PathBuf};

use contexture::{ContextConfig, ContextError, json};
use contexture_store::{Durability, ProjectState, StoreError, UserState};
use contexture_tools::mcp;
use serde_json::{Map, Value};

pub use agent::{AgentConfig, LocalConfig};

pub use agent::Sandbox;
pub use fleet::FleetConfig;
pub use keys::schema;
pub use layers::Chosen;
pub use providers::{ProviderConfig, ProviderKind};

pub use work::WorkConfig;

use crate::error::CliError;
use crate::{trust, user};
use layers::Layers;

/// What the project and the user set, and where it is.
pub struct Config {
    /// The folder that holds `.contexture` and `contexture.json`.
    pub root: PathBuf,
    /// Where what makes us act is kept for the project, apart from its files; none without a home.
    pub state: Option<ProjectState>,
    /// The limits of a request.
    pub context: ContextConfig,
    /// Where logs are kept.
    pub store: StoreConfig,
    /// How an agent runs.
    pub agent: AgentConfig,
    /// How a fleet runs.
    pub fleet: FleetConfig,
    /// How tasks are handed out.
    pub work: WorkConfig,
    /// Who else has something to say when a session begins.
    pub providers: Vec<ProviderConfig>,
    /// Keys that the project sets and that do not count, because its folder is not trusted.
    pub withheld: Vec<&'static str>,
    /// The project's file as it stands, for showing what trust would allow.
    pub project: Map<String, Value>,
    /// What the project sets that counts only with trust, by key.
    pub needs_trust: Map<String, Value>,
    /// The folder with what instructs an agent there.
    pub folder: trust::Folder,
}

/// Where logs are kept, and when an append is acknowledged.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoreConfig {
    pub url: Option<Chosen<String>>,
    pub durability: Durability,
}

impl Config {
    /// Whether the user trusts the folder as it is.
    pub fn trust(&self) -> Result<trust::State, CliError> {
        self.folder.state()
    }
}

/// The settings in effect; the defaults where there are none.
pub fn load(dir: Option<&Path>) -> Result<Config, CliError> {
    load_at(dir, &here()?)
}

/// The same for somebody who works elsewhere.
pub fn load_at(dir: Option<&Path>, here: &Path) -> Result<Config, CliError> {
    let root = root(dir, here)?;
    let own = user::config().map(|folder| folder.join(NAME));
    let (user, _) = own.map_or(Ok(Default::default()), |path| document(&path))?;
    let (project, configuration) = document(&root.join(NAME))?;
    let folder = trust::Folder::new(&root, here, configuration);
    // Whoever wants to know why a folder is not trusted asks [`Config::trust`].
    let trusted = || matches!(folder.state(), Ok(trust::State::Trusted));
    let layers = Layers::new(&user, &project, trusted);
    let context = context(&layers.section("context"))?;
    let store = StoreConfig {
        url: layers.text("store.url"),
        durability: match layers.text("store.durability") {
            Some(chosen) if chosen.value == "os" => Durability::Os,
            _ => Durability::Sync,
        },
    };
    let agent = AgentConfig::read(&layers, &root)?;
    let fleet = FleetConfig::read(&layers)?;
    let work = WorkConfig::read(&layers)?;
    let providers = providers::of(&layers)?;
    let needing = layers.needing_trust();
    let needs_trust = needing.map(|(key, value)| (key.to_owned(), value.clone()));
    let needs_trust = needs_trust.collect();
    let withheld = layers.withheld;
    let state = user::state().map(|folder| UserState::new(folder).project(&root));
    Ok(Config {
        state: state.transpose().map_err(StoreError::from)?,
        context,
        store,
        agent,
        fleet,
        work,
        providers,
        withheld,
        project,
        needs_trust,
        folder,
        root,
    })
}

/// The project's folder as it is now, for somebody who works in `here`.
pub fn folder(root: &Path, here: &Path) -> Result<trust::Folder, CliError> {
    let (_, configuration) = document(&root.join(NAME))?;
    Ok(trust::Folder::new(root, here, configuration))
}

/// A checked document, and its file as trust sees it; an empty one where there is no file.
fn document(path: &Path) -> Result<(Map<String, Value>, trust::Configuration), CliError> {
    if !path.is_file() {
        return Ok(Default::default());
    }
    let bytes = crate::input::small_file(path, MOST_BYTES)?;
    let read = || {
        let Value::Object(document) = json::parse(&bytes, 1)? else {
            let hint = "see `ctx config schema`";
            return Err(ContextError::invalid("line 1", "must be an object", hint));
        };
        keys::check(&document)?;
        let over = document.get("context").and_then(Value::as_object);
        context(&over.cloned().unwrap_or_default())?;
        document.get("toolPolicy").map(agent::policy).transpose()?;
        keys::at(&document, agent::PERSONA)
            .map(agent::persona)
            .transpose()?;
        let run_context = keys::at(&document, agent::RUN_CONTEXT);
        run_context.map(agent::run_context).transpose()?;
        document.get("mcpServers").map(mcp::read).transpose()?;
        fleet::hooks(document.get("hooks"))?;
        work::prices(document.get("prices"))?;
        providers::read(document.get("providers"), layers::Source::Project)?;
        Ok(document)
    };
    let document = read().map_err(|error| CliError::Context {
        place: Some(path.to_owned()),
        error,
    })?;
    let configuration = trust::Configuration::new(&bytes, &document);
    Ok((document, configuration))
}

/// The most bytes of a configuration.
const MOST_BYTES: usize = 1 << 20;

fn context(over: &Map<String, Value>) -> Result<ContextConfig, ContextError> {
    let ours = over.iter().filter(|(_, value)| !value.is_object());
    let ours = ours.map(|(name, value)| (name.clone(), value.clone()));
    let limits = ContextConfig::default().overlaid(&ours.collect())?;
    limits.validate()?;
    Ok(limits)
}

/// The name of a configuration.
pub const NAME: &str = "contexture.json";
/// The folder of a project's data.
pub const DATA: &str = ".contexture";

/// The project's folder: `dir`, or the nearest upwards that is one; else `here`. What lies in a folder
/// that everyone may write to, such as `/tmp`, counts only there: anyone could have put it in.
fn root(dir: Option<&Path>, here: &Path) -> Result<PathBuf, CliError> {
    if let Some(dir) = dir {
        if !dir.is_dir() {
            return Err(CliError::Usage {
                what: format!("--dir {}: there is no such folder", dir.display()),
                hint: "give the project's root".to_owned(),
            });
        }
        return Ok(dir.to_owned());
    }
    let project = |folder: &&Path| {
        let found = folder.join(NAME).is_file() || folder.join(DATA).is_dir();
        found && (*folder == here || !everyone_writes(folder))
    };
    let root = here.ancestors().find(project).unwrap_or(here);
    Ok(root.to_owned())
}

#[cfg(unix)]
fn everyone_writes(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    folder
        .metadata()
        .is_ok_and(|folder| folder.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn everyone_writes(_: &Path) -> bool {
    false
}

/// The working folder.
pub fn here() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|error| CliError::Io {
        place: "the working folder".to_owned(),
        error,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod page;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
