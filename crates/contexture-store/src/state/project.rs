//! The state of one project, and whether this version has looked at the project before.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{StateError, UserState, create_private, read_private};

/// The state of one project: a folder of the user's own, by the place where the project really is.
#[derive(Debug, Clone)]
pub struct ProjectState {
    user: UserState,
    project: PathBuf,
    folder: PathBuf,
}

/// Names the project, for people and against mistakes, and says that this version has looked at it.
const MARK: &str = "project";

impl UserState {
    /// The state of a project. Nothing is made.
    pub fn project(&self, project: &Path) -> Result<ProjectState, StateError> {
        let at = |error| StateError::io(project, error);
        let real = project.canonicalize().map_err(at)?;
        Ok(ProjectState {
            folder: self.of_project(&real).map_err(at)?,
            user: self.clone(),
            project: real,
        })
    }
}

impl ProjectState {
    /// The folder, which need not be there.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the project really is.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Whether this version has looked at the project before: then there is nothing of an earlier one to take over
    /// unasked. An error where others could have changed the folder.
    pub fn is_known(&self) -> Result<bool, StateError> {
        if !self.user.has(&self.folder)? {
            return Ok(false);
        }
        match read_private(&self.folder, MARK)? {
            None => Ok(false),
            Some(mark) if mark.as_bytes() == self.mark().as_bytes() => Ok(true),
            Some(_) => {
                let path = self.folder.join(MARK);
                let why = "it is the state of another project";
                Err(StateError::not_private(&path, why, "remove the folder"))
            }
        }
    }

    /// Makes the folder, for the user alone. The project is known from now on.
    pub fn make(&self) -> Result<(), StateError> {
        self.make_unknown()?;
        if !self.is_known()? {
            create_private(&self.folder, MARK, &self.mark())?;
        }
        Ok(())
    }

    /// Makes the folder; whether the project is known stays as it is.
    pub(crate) fn make_unknown(&self) -> Result<(), StateError> {
        self.user.make(&self.folder)
    }

    fn mark(&self) -> String {
        // A path need not be text; this is one to one, and readable where it is.
        self.project
            .as_os_str()
            .as_bytes()
            .escape_ascii()
            .to_string()
            + "\n"
    }
}
