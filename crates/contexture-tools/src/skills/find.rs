//! Where skills are looked for, and which of two equal ones is used.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::tree::{self, Fault, Refused};
use super::{Scope, Skill, Skills};

/// Where skills are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The project's root, where its folder is trusted.
    pub project: Option<PathBuf>,
    /// Folders of skills that the user has everywhere.
    pub user: Vec<PathBuf>,
}

/// Where a project, or a home, keeps its skills: the first wins.
const FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// The most things in a folder of skills that are looked at.
const MOST: usize = 1_000;

impl Places {
    /// The user's own: `contexture/skills` in the folder for configuration, then those of the home.
    pub fn of_user(config: Option<&Path>, home: Option<&Path>) -> Self {
        let ours = config.map(|config| config.join("contexture/skills"));
        let homes = FOLDERS
            .iter()
            .filter_map(|folder| home.map(|home| home.join(folder)));
        Self {
            project: None,
            user: ours.into_iter().chain(homes).collect(),
        }
    }

    /// The same, and those of a project.
    pub fn and_project(self, root: impl Into<PathBuf>) -> Self {
        Self {
            project: Some(root.into()),
            ..self
        }
    }

    /// The folders in which a project keeps skills, whether they are there or not.
    pub fn in_project(root: &Path) -> Vec<PathBuf> {
        FOLDERS.iter().map(|folder| root.join(folder)).collect()
    }
}

impl Skills {
    /// All skills of these places.
    ///
    /// Of two with the same name the nearer one is used: a project's before the user's, and an
    /// earlier folder's before a later one's. A skill of a project gets here only when the user
    /// trusts the folder, and then for being more particular.
    pub fn discover(places: &Places) -> Self {
        let mut found = Found::default();
        if let Some(root) = &places.project {
            found.look(&Places::in_project(root), Scope::Project, Some(root));
        }
        found.look(&places.user, Scope::User, None);
        Self {
            used: found.used.into_values().collect(),
            shadowed: found.shadowed,
            refused: found.refused,
        }
    }
}

#[derive(Default)]
struct Found {
    used: BTreeMap<String, Skill>,
    shadowed: Vec<Skill>,
    refused: Vec<Refused>,
    /// Skills that were seen: one may be linked from several folders.
    seen: HashSet<PathBuf>,
}

impl Found {
    /// Reads folders of one scope. None may lead out of `inside`, and no skill out of all of them.
    fn look(&mut self, folders: &[PathBuf], scope: Scope, inside: Option<&Path>) {
        let inside = inside.and_then(|inside| inside.canonicalize().ok());
        let mut real = Vec::new();
        for folder in folders {
            let Ok(path) = folder.canonicalize() else {
                continue;
            };
            match &inside {
                Some(inside) if !path.starts_with(inside) => self.refuse(folder, Fault::LeadsOut),
                _ => real.push((folder, path)),
            }
        }
        let homes: Vec<&Path> = real.iter().map(|(_, path)| path.as_path()).collect();
        for (folder, path) in &real {
            for name in self.names(folder, path) {
                self.take(&folder.join(&name), &homes, scope);
            }
        }
    }

    fn take(&mut self, folder: &Path, homes: &[&Path], scope: Scope) {
        let real = match folder.canonicalize() {
            Ok(real) => real,
            Err(error) => return self.refuse(folder, Fault::Unreadable(error.to_string())),
        };
        if !homes.iter().any(|home| real.starts_with(home)) {
            return self.refuse(folder, Fault::LeadsOut);
        }
        if !self.seen.insert(real) {
            return;
        }
        match tree::read(folder, scope) {
            Err(fault) => self.refuse(folder, fault),
            Ok(skill) if self.used.contains_key(&skill.name) => self.shadowed.push(skill),
            Ok(skill) => {
                self.used.insert(skill.name.clone(), skill);
            }
        }
    }

    /// The names in a folder that may be skills, sorted. Plain files and hidden folders are none.
    fn names(&mut self, folder: &Path, path: &Path) -> Vec<PathBuf> {
        let read = match path.read_dir() {
            Ok(read) => read,
            Err(error) => {
                self.refuse(folder, Fault::Unreadable(error.to_string()));
                return Vec::new();
            }
        };
        let mut names: Vec<PathBuf> = read
            .take(MOST + 1)
            .filter_map(Result::ok)
            .filter(|item| !item.file_type().is_ok_and(|kind| kind.is_file()))
            .map(|item| PathBuf::from(item.file_name()))
            .filter(|name| !name.to_string_lossy().starts_with('.'))
            .collect();
        if names.len() > MOST {
            self.refuse(folder, Fault::TooMany(MOST));
            names.clear();
        }
        names.sort();
        names
    }

    fn refuse(&mut self, folder: &Path, fault: Fault) {
        self.refused.push(Refused {
            folder: folder.to_owned(),
            fault,
        });
    }
}
