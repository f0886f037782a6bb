//! The user's settings, and the project's on top.

use serde_json::{Map, Value};

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
        let mut withheld: Vec<&'static str> = gated(project).map(|(path, _)| path).collect();
        if !withheld.is_empty() && trusted() {
            withheld.clear();
        }
        Self {
            user,
            project,
            withheld,
        }
    }

    /// The project's value, where it counts.
    pub(super) fn of_project(&self, path: &str) -> Option<&'a Value> {
        at(self.project, path).filter(|_| !self.withheld.contains(&path))
    }

    /// The user's own value.
    pub(super) fn of_user(&self, path: &str) -> Option<&'a Value> {
        at(self.user, path)
    }

    /// The value in effect.
    pub(super) fn get(&self, path: &str) -> Option<Chosen<&'a Value>> {
        let chosen = |from| move |value| Chosen { value, from };
        let project = self.of_project(path).map(chosen(Source::Project));
        project.or_else(|| self.of_user(path).map(chosen(Source::User)))
    }

    /// A text in effect.
    pub(super) fn text(&self, path: &str) -> Option<Chosen<String>> {
        let Chosen { value, from } = self.get(path)?;
        let value = value.as_str()?.to_owned();
        Some(Chosen { value, from })
    }

    /// The values in effect right inside an object of ungated keys.
    pub(super) fn section(&self, name: &str) -> Map<String, Value> {
        let of = |document: &'a Map<String, Value>| at(document, name).and_then(Value::as_object);
        let both = of(self.user).into_iter().chain(of(self.project));
        both.flatten()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// What a project's document sets that needs trust.
pub(super) fn gated(project: &Map<String, Value>) -> impl Iterator<Item = (&'static str, &Value)> {
    let gated = keys().into_iter().filter(|key| key.gated);
    gated.filter_map(|key| {
        let value = at(project, key.path)?;
        says_something(value).then_some((key.path, value))
    })
}

/// An empty object or list asks for nothing.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    }
}
