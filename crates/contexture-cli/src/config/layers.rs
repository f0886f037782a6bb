//! The user's settings, and the project's on top.

use serde_json::{Map, Value};

use super::key::{Key, Precedence};
use super::keys::{at, keys};

/// Who chose a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The project's file, which is trusted where that is needed.
    Project,
    /// The user's own file.
    User,
}

/// A value, and who chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen<T> {
    pub value: T,
    pub from: Source,
}

/// What is in effect of two documents.
pub(super) struct Layers<'a> {
    keys: Vec<Key>,
    user: &'a Map<String, Value>,
    project: &'a Map<String, Value>,
    /// The keys that the project sets in vain.
    pub withheld: Vec<&'static str>,
}

impl<'a> Layers<'a> {
    /// `trusted` is asked only where the project sets something that needs trust.
    pub(super) fn new(
        user: &'a Map<String, Value>,
        project: &'a Map<String, Value>,
        trusted: impl FnOnce() -> bool,
    ) -> Self {
        let mut layers = Self {
            keys: keys(),
            user,
            project,
            withheld: Vec::new(),
        };
        let needing: Vec<&str> = layers.needing_trust().map(|(path, _)| path).collect();
        if !needing.is_empty() && !trusted() {
            layers.withheld = needing;
        }
        layers
    }

    /// What the project sets that counts only with trust.
    pub(super) fn needing_trust(&self) -> impl Iterator<Item = (&'static str, &'a Value)> {
        self.keys.iter().filter_map(|key| {
            let value = at(self.project, key.path)?;
            let user = at(self.user, key.path);
            key.needs_trust(value, user).then_some((key.path, value))
        })
    }

    /// The project's value, where it may count.
    pub(super) fn of_project(&self, path: &str) -> Option<&'a Value> {
        at(self.project, path).filter(|_| !self.withheld.contains(&path))
    }

    /// The user's own value.
    pub(super) fn of_user(&self, path: &str) -> Option<&'a Value> {
        at(self.user, path)
    }

    /// The value in effect. A key that is put together by its own reader has none.
    pub(super) fn get(&self, path: &str) -> Option<Chosen<&'a Value>> {
        let key = self.keys.iter().find(|key| key.path == path)?;
        if key.precedence == Precedence::Own {
            return None;
        }
        let project = self.of_project(path);
        let user = self.of_user(path);
        let (value, from) = match (project, user) {
            (Some(project), Some(user)) if key.is_projects(project, user) => {
                (project, Source::Project)
            }
            (_, Some(user)) => (user, Source::User),
            (project, None) => (project?, Source::Project),
        };
        Some(Chosen { value, from })
    }

    /// A text in effect.
    pub(super) fn text(&self, path: &str) -> Option<Chosen<String>> {
        let Chosen { value, from } = self.get(path)?;
        let value = value.as_str()?.to_owned();
        Some(Chosen { value, from })
    }

    /// The values in effect right inside an object.
    pub(super) fn section(&self, name: &str) -> Map<String, Value> {
        let inside = |key: &Key| {
            let own = key.path.strip_prefix(name)?.strip_prefix('.')?;
            let value = self.get(key.path)?.value.clone();
            (!own.contains('.')).then(|| (own.to_owned(), value))
        };
        self.keys.iter().filter_map(inside).collect()
    }
}
