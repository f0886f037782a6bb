//! Where the user's own files are.

use std::path::PathBuf;

/// The folder of our configuration: `$XDG_CONFIG_HOME/contexture`, else `~/.config/contexture`.
pub fn config() -> Option<PathBuf> {
    Some(configs()?.join("contexture"))
}

/// The folder of everybody's configuration.
pub fn configs() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

/// The folder of model files: `$CONTEXTURE_MODELS`, as it is, else `$XDG_CACHE_HOME/contexture/models`,
/// else `~/.cache/contexture/models`.
pub fn models() -> Option<PathBuf> {
    let own = std::env::var_os("CONTEXTURE_MODELS").filter(|own| !own.is_empty());
    let caches = || absolute("XDG_CACHE_HOME").or_else(|| Some(home()?.join(".cache")));
    own.map(PathBuf::from)
        .or_else(|| Some(caches()?.join("contexture/models")))
}

/// The folder of what makes us act: `$XDG_STATE_HOME/contexture`, else `~/.local/state/contexture`.
pub fn state() -> Option<PathBuf> {
    let states = absolute("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local/state")));
    Some(states?.join("contexture"))
}

/// The user's home.
pub fn home() -> Option<PathBuf> {
    absolute("HOME")
}

/// A relative path would mean another folder in every project, and a project could supply it.
fn absolute(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name)?);
    path.is_absolute().then_some(path)
}
