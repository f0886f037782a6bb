//! The folders that agents work in. No link is followed below the project's data: an agent could have put it there.

use std::io;
use std::path::{Path, PathBuf};

use contexture::inject::{Archetype, WorkspacePolicy};
use contexture_store::Key;
use contexture_store::disk::RealDisk;

use super::Spec;

/// Below this, agents' own folders are.
const PERSISTENT: &str = "workspaces";
/// And those that go when the agent stops.
const EPHEMERAL: &str = "ephemeral";

/// The folder of an agent: the one that was named, a new one for one that is not to last, the project
/// for one that works on it, or its own.
pub(crate) fn place(root: &Path, data: &Path, key: &Key, spec: &Spec) -> PathBuf {
    match (&spec.workspace, own(key, spec)) {
        (_, Some(own)) => data.join(own),
        (Some(named), None) => root.join(named),
        (None, None) => root.to_owned(),
    }
}

/// The folder below the project's data, of an agent that has one.
fn own(key: &Key, spec: &Spec) -> Option<String> {
    let below = match (&spec.workspace, spec.workspace_policy, spec.archetype) {
        (_, WorkspacePolicy::Ephemeral, _) => EPHEMERAL,
        (Some(_), _, _) | (None, _, Archetype::Repo) => return None,
        (None, _, _) => PERSISTENT,
    };
    Some(format!("{below}/{}", key.file_name()))
}

/// Makes the folder. One that is not to last begins empty; one that was named must be there.
pub(crate) fn make(root: &Path, data: &Path, key: &Key, spec: &Spec) -> io::Result<PathBuf> {
    if let Some(own) = own(key, spec) {
        clear(data, key, spec)?;
        RealDisk::new(data).make_folders(&own)?;
    }
    // As agents see it: they compare paths.
    place(root, data, key, spec).canonicalize()
}

/// Removes the folder of an agent that is not to last.
pub(crate) fn clear(data: &Path, key: &Key, spec: &Spec) -> io::Result<()> {
    match own(key, spec) {
        Some(own) if spec.workspace_policy == WorkspacePolicy::Ephemeral => {
            RealDisk::new(data).remove_all(&own)
        }
        _ => Ok(()),
    }
}

/// Removes what a daemon left that was killed.
pub(crate) fn sweep(data: &Path) -> io::Result<()> {
    RealDisk::new(data).remove_all(EPHEMERAL)
}
