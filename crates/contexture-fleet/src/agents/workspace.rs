//! The folders that agents work in.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use contexture::inject::{Archetype, WorkspacePolicy};
use contexture_store::Key;

use super::Spec;

/// Below this, agents' own folders are.
const PERSISTENT: &str = "workspaces";
/// And those that go when the agent stops.
const EPHEMERAL: &str = "ephemeral";

/// The folder of an agent: the one that was named, a new one for one that is not to last, the project
/// for one that works on it, or its own.
pub(crate) fn place(root: &Path, data: &Path, key: &Key, spec: &Spec) -> PathBuf {
    match (&spec.workspace, spec.workspace_policy, spec.archetype) {
        (_, WorkspacePolicy::Ephemeral, _) => data.join(EPHEMERAL).join(key.file_name()),
        (Some(named), _, _) => root.join(named),
        (None, _, Archetype::Repo) => root.to_owned(),
        (None, _, _) => data.join(PERSISTENT).join(key.file_name()),
    }
}

/// Makes the folder. One that is not to last begins empty; one that was named must be there.
pub(crate) fn make(root: &Path, data: &Path, key: &Key, spec: &Spec) -> io::Result<PathBuf> {
    let folder = place(root, data, key, spec);
    if folder.starts_with(data) {
        clear(data, key, spec)?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
    }
    // As agents see it: they compare paths.
    folder.canonicalize()
}

/// Removes the folder of an agent that is not to last.
pub(crate) fn clear(data: &Path, key: &Key, spec: &Spec) -> io::Result<()> {
    if spec.workspace_policy != WorkspacePolicy::Ephemeral {
        return Ok(());
    }
    gone(std::fs::remove_dir_all(
        data.join(EPHEMERAL).join(key.file_name()),
    ))
}

/// Removes what a daemon left that was killed.
pub(crate) fn sweep(data: &Path) -> io::Result<()> {
    gone(std::fs::remove_dir_all(data.join(EPHEMERAL)))
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
