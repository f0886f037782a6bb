//! The user's state of a project: where it is, and what an earlier version kept elsewhere.

use std::path::Path;

use contexture_store::{Earlier, HUB_KEY, Kind, ProjectLog, ProjectState, StoreError};

use crate::config::Config;
use crate::error::CliError;
use crate::store;
use crate::trust::State;
use crate::view::safe;

/// The folder of what makes us act in a project, private to the user. It need not be there yet.
pub fn folder(config: &Config) -> Result<&Path, CliError> {
    Ok(known(config)?.folder())
}

/// The same, made where it was not there.
pub fn made(config: &Config) -> Result<&Path, CliError> {
    let state = known(config)?;
    store::on_disk(config)?.make()?;
    Ok(state.folder())
}

fn known(config: &Config) -> Result<&ProjectState, CliError> {
    let state = config.state.as_ref().ok_or(StoreError::NoState)?;
    if !state.is_known().map_err(StoreError::from)? {
        take_over(config, store::on_disk(config)?)?;
    }
    Ok(state)
}

/// Takes over what an earlier version kept in a folder that the user trusted then: once, on the first look.
pub fn take_over(config: &Config, log: ProjectLog) -> Result<ProjectLog, CliError> {
    let Some(state) = &config.state else {
        return Ok(log);
    };
    // Whether a record of trust can be read is a matter of what needs it.
    let trusted = || matches!(config.folder.recorded(), Ok(State::Trusted));
    if state.is_known().map_err(StoreError::from)? || !trusted() {
        return Ok(log);
    }
    let moved = match log.take_over() {
        // Nothing can be kept there now; what needs it says so.
        Err(StoreError::State(_)) => return Ok(log),
        moved => moved?,
    };
    if !moved.is_empty() {
        let folder = state.folder().display().to_string();
        eprintln!(
            "ctx: {} of an earlier version moved to {}",
            in_words(&moved),
            safe(&folder)
        );
    }
    Ok(log)
}

/// Says that what an earlier version, or somebody else, left in the project's folder does not count.
pub fn say_ignored(config: &Config) {
    // What cannot be read counts as little.
    let left = store::on_disk(config).and_then(|log| Ok(log.earlier()?));
    if let Ok(left) = left
        && !left.is_empty()
    {
        eprintln!(
            "ctx: {} in .contexture ignored: `ctx trust` shows them",
            in_words(&left)
        );
    }
}

/// What there is, in a few words.
fn in_words(what: &Earlier) -> String {
    let names = [
        (Kind::Agent, "agents"),
        (Kind::Pool, "tasks"),
        (Kind::Events, "events"),
    ];
    let there = |kind| what.streams.iter().any(|info| info.stream.kind == kind);
    let mut words: Vec<&str> = names
        .into_iter()
        .filter_map(|(kind, name)| there(kind).then_some(name))
        .collect();
    words.extend(what.hub_key.then_some(HUB_KEY));
    words.join(", ")
}
