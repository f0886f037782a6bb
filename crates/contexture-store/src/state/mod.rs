//! The user's state folder: what makes Contexture act (agents, tasks, keys, the daemon's address), kept apart from the
//! files of any project, because those come from anybody.

mod claims;
mod private;
mod project;

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

pub(crate) use claims::Claims;
pub use private::{clear_private, create_private, read_private, write_private};
pub use project::ProjectState;

/// The state folder of a user, with a folder for each project.
#[derive(Debug, Clone)]
pub struct UserState {
    root: PathBuf,
}

/// Why a state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Others could read or change it, or have put a link in its place.
    #[error("{} is not private: {why}", .path.display())]
    NotPrivate {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        why: &'static str,
        /// What the user can do about it.
        remedy: &'static str,
    },
    /// The system refused.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

impl StateError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotPrivate { path, remedy, .. } => match remedy.strip_prefix("chmod") {
                Some(_) => format!("look through it, then: {remedy} {}", path.display()),
                None => (*remedy).to_owned(),
            },
            Self::Io { error, .. } => match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "make the folder writable, or choose another with XDG_STATE_HOME".to_owned()
                }
                _ => String::new(),
            },
        }
    }

    /// Whether others could read or change it.
    pub fn is_not_private(&self) -> bool {
        matches!(self, Self::NotPrivate { .. })
    }

    fn io(path: &Path, error: impl Into<io::Error>) -> Self {
        let (path, error) = (path.to_owned(), error.into());
        Self::Io { path, error }
    }

    fn not_private(path: &Path, why: &'static str, remedy: &'static str) -> Self {
        let path = path.to_owned();
        Self::NotPrivate { path, why, remedy }
    }
}

/// Where something stands that is not ours.
const MOVE_AWAY: &str = "links are not followed: move it away, then try again";

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl UserState {
    /// The state folder at `root`, which need not exist yet: `$XDG_STATE_HOME/contexture`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a project's state, by the place where the project really is. It is not made.
    pub fn of_project(&self, project: &Path) -> io::Result<PathBuf> {
        let real = project.canonicalize()?;
        let hash = blake3::hash(real.as_os_str().as_bytes()).to_hex();
        let name = real.file_name().unwrap_or(OsStr::new("root"));
        let readable: String = name
            .to_string_lossy()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(32)
            .collect();
        Ok(self
            .root
            .join("projects")
            .join(format!("{readable}-{}", &hash[..16])))
    }

    /// Makes the folder of a project's state, private to the user, and returns it.
    pub fn make_project(&self, project: &Path) -> Result<PathBuf, StateError> {
        let folder = self
            .of_project(project)
            .map_err(|error| StateError::io(project, error))?;
        self.make(&folder)?;
        Ok(folder)
    }

    /// Makes the folder of a project, and those above it.
    fn make(&self, folder: &Path) -> Result<(), StateError> {
        // The user's choice may lie behind a link; what is below it is ours and may not.
        std::fs::create_dir_all(self.root.parent().unwrap_or(&self.root))
            .map_err(|error| StateError::io(&self.root, error))?;
        for made in [&self.root, &self.root.join("projects"), folder] {
            match rustix::fs::mkdirat(CWD, made, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => check_private(made)?,
                Err(error) => return Err(StateError::io(made, error)),
            };
        }
        Ok(())
    }

    /// Whether the folder of a project is there; an error where others could have changed it.
    fn has(&self, folder: &Path) -> Result<bool, StateError> {
        for there in [&self.root, &self.root.join("projects"), folder] {
            if !check_private(there)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a folder is there, and only the user can enter it. One that others can only look into is closed.
fn check_private(path: &Path) -> Result<bool, StateError> {
    let at = |error: Errno| StateError::io(path, error);
    let folder: OwnedFd = match rustix::fs::openat(CWD, path, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(false),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let why = "it is a link, or no folder";
            return Err(StateError::not_private(path, why, MOVE_AWAY));
        }
        other => other.map_err(at)?,
    };
    let stat = rustix::fs::fstat(&folder).map_err(at)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        let (why, remedy) = (
            "it belongs to another user",
            "choose another with XDG_STATE_HOME",
        );
        return Err(StateError::not_private(path, why, remedy));
    }
    // A folder that was made under another mask is closed; nobody else could have put anything below our own root.
    if stat.st_mode & 0o022 != 0 {
        let why = "others can write to it";
        return Err(StateError::not_private(path, why, "chmod 700"));
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&folder, Mode::RWXU).map_err(at)?;
    }
    Ok(true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_project_has_one_private_folder_wherever_links_lead_from() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("my project");
        std::fs::create_dir(&project).unwrap();
        symlink(&project, home.path().join("link")).unwrap();
        let state = UserState::new(home.path().join(".local/state/contexture"));
        let folder = state.make_project(&project).unwrap();
        assert_eq!(
            state.make_project(&home.path().join("link")).unwrap(),
            folder
        );
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("my-project-"), "{name}");
        for private in [&folder, state.root()] {
            let mode = private.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", private.display());
        }
    }

    #[test]
    fn a_folder_that_others_can_change_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let state = UserState::new(home.path().join("state"));
        let folder = state.make_project(home.path()).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        let refused = state.make_project(home.path()).unwrap_err();
        assert!(matches!(refused, StateError::NotPrivate { .. }));
        std::fs::remove_dir(&folder).unwrap();
        symlink("/", &folder).unwrap();
        let refused = state.make_project(home.path()).unwrap_err();
        assert!(matches!(refused, StateError::NotPrivate { .. }));
    }
}
