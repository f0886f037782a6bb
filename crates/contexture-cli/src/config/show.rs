//! Each setting with its value and where that comes from, for `ctx config show`.

use std::path::{Path, PathBuf};

use contexture_tools::Secrets;
use serde_json::{Map, Value, json};

use super::key::{Key, Precedence};
use super::layers::{Layers, Source};
use super::{Config, NAME, document, keys, load_at};
use crate::agent::DEFAULT;
use crate::error::CliError;
use crate::{store, trust, user, work};

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Default,
    User,
    Project,
    /// Both files, put together.
    Both,
    Environment(&'static str),
    Option(&'static str),
}

/// A setting in effect.
pub struct Setting {
    pub key: &'static str,
    /// Null where there is none.
    pub value: Value,
    pub origin: Origin,
    /// The project's value, where it does not count because the folder is not trusted.
    pub withheld: Option<Value>,
}

/// All of them, and the files that they come from.
pub struct Settings {
    pub user: Option<PathBuf>,
    pub project: PathBuf,
    pub trust: trust::State,
    pub all: Vec<Setting>,
}

/// A value given by an option: the key, the option, the value.
pub type Given = (&'static str, &'static str, Option<Value>);

/// Variables that stand over the files.
const VARIABLES: [(&str, &str); 2] = [("store.url", store::URL), ("hub.url", work::URL)];

/// The settings in effect for a command with these options.
pub fn settings(dir: Option<&Path>, here: &Path, given: &[Given]) -> Result<Settings, CliError> {
    let config = load_at(dir, here)?;
    let own = user::config().map(|folder| folder.join(NAME));
    let (user, _) = own.as_deref().map_or(Ok(Default::default()), document)?;
    let trust = config.trust()?;
    let layers = Layers::new(&user, &config.project, || trust == trust::State::Trusted);
    let known = keys::keys();
    let all = known
        .iter()
        .map(|key| setting(key, &layers, &config, given));
    Ok(Settings {
        all: all.collect(),
        project: config.root.join(NAME),
        user: own,
        trust,
    })
}

fn setting(key: &Key, layers: &Layers<'_>, config: &Config, given: &[Given]) -> Setting {
    let (value, origin) = chosen(key, layers, config, given);
    let withheld = config
        .withheld
        .contains(&key.path)
        .then(|| keys::at(&config.project, key.path).cloned())
        .flatten();
    Setting {
        key: key.path,
        value: masked(value),
        origin,
        withheld: withheld.map(masked),
    }
}

/// The value in effect. What stands higher comes first.
fn chosen(key: &Key, layers: &Layers<'_>, config: &Config, given: &[Given]) -> (Value, Origin) {
    let option = given.iter().find(|(path, ..)| *path == key.path);
    if let Some((_, option, Some(value))) = option {
        return (value.clone(), Origin::Option(option));
    }
    let variable = VARIABLES.iter().find(|(path, _)| *path == key.path);
    let variable = variable.and_then(|(_, name)| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        Some((json!(value?), Origin::Environment(name)))
    });
    if let Some(found) = variable {
        return found;
    }
    if key.precedence == Precedence::Own {
        return combined(key, layers, config);
    }
    match layers.get(key.path) {
        Some(chosen) => {
            let origin = match chosen.from {
                Source::User => Origin::User,
                Source::Project => Origin::Project,
            };
            (chosen.value.clone(), origin)
        }
        None if key.path == "model" => (json!(DEFAULT), Origin::Default),
        None => (key.default.clone(), Origin::Default),
    }
}

/// A key that its own reader puts together of both files.
fn combined(key: &Key, layers: &Layers<'_>, config: &Config) -> (Value, Origin) {
    let (user, project) = match (layers.of_user(key.path), layers.of_project(key.path)) {
        (Some(user), Some(project)) => (user.clone(), project.clone()),
        (Some(user), None) => return (user.clone(), Origin::User),
        (None, Some(project)) => return (project.clone(), Origin::Project),
        (None, None) => return (key.default.clone(), Origin::Default),
    };
    let value = match key.path {
        "shell.writable" => json!(config.agent.shell.writable),
        "shell.allow" => json!(config.agent.shell.allow),
        // Each must allow a tool.
        "toolPolicy" => json!([user, project]),
        "prices" => over(project, user),
        "providers" => named(user, project),
        _ => match (user, project) {
            (Value::Array(user), Value::Array(project)) => {
                user.into_iter().chain(project).collect()
            }
            (user, project) => over(user, project),
        },
    };
    (value, Origin::Both)
}

/// The members of both; those of `upper` where both have one.
fn over(lower: Value, upper: Value) -> Value {
    let (Value::Object(mut all), Value::Object(upper)) = (lower, upper) else {
        return Value::Null;
    };
    all.extend(upper);
    Value::Object(all)
}

/// Both lists; a project's item stands in the place of the user's of the same name.
fn named(user: Value, project: Value) -> Value {
    let (Value::Array(mut all), Value::Array(project)) = (user, project) else {
        return Value::Null;
    };
    for item in project {
        match all.iter_mut().find(|known| known["name"] == item["name"]) {
            Some(known) => *known = item,
            None => all.push(item),
        }
    }
    Value::Array(all)
}

/// The value without secrets: values of environments and headers, passwords in addresses, keys by their name or look.
fn masked(value: Value) -> Value {
    let secrets = Secrets::from_env();
    hide(value, &secrets)
}

const MASKED: &str = "[masked]";

fn hide(value: Value, secrets: &Secrets) -> Value {
    match value {
        Value::String(text) => json!(secrets.hide(&without_password(&text))),
        Value::Array(list) => list.into_iter().map(|item| hide(item, secrets)).collect(),
        Value::Object(map) => {
            let shown = map.into_iter().map(|(name, value)| {
                let secret = matches!(name.as_str(), "env" | "headers");
                let value = match value {
                    Value::Object(inner) if secret => Value::Object(all_masked(inner)),
                    Value::String(_) if contexture_model::names_key(&name) => json!(MASKED),
                    value => hide(value, secrets),
                };
                (name, value)
            });
            Value::Object(shown.collect())
        }
        other => other,
    }
}

/// References to variables say nothing of their values.
fn all_masked(map: Map<String, Value>) -> Map<String, Value> {
    let is_reference = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        let text = text.strip_prefix("Bearer ").unwrap_or(text);
        text.starts_with("${") && text.find('}') == Some(text.len() - 1)
    };
    let mask = |(name, value)| match is_reference(&value) {
        true => (name, value),
        false => (name, json!(MASKED)),
    };
    map.into_iter().map(mask).collect()
}

/// An address without what stands for the user's password, and without a query that may hold one.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:{MASKED}@{host}"),
            None => format!("{user}@{host}"),
        },
        None => authority.to_owned(),
    };
    let query = match query {
        Some(query) if query.to_ascii_lowercase().contains("sslmode=") && !query.contains('&') => {
            format!("?{query}")
        }
        Some(_) => format!("?{MASKED}"),
        None => String::new(),
    };
    format!("{scheme}://{authority}{path}{query}")
}

impl Origin {
    /// Its name as data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Project => "project",
            Self::Both => "both",
            Self::Environment(_) => "environment",
            Self::Option(_) => "option",
        }
    }

    /// The variable or the option that says so.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Environment(name) | Self::Option(name) => Some(name),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contexture::json;

    #[test]
    fn secrets_are_masked_wherever_a_setting_may_hold_them() {
        let shown = |text: &str| {
            let value: Value = json::from_text(text).unwrap_or_default();
            masked(value).to_string()
        };
        for secret in [
            r#""postgres://me:s3cret-word@host/db?sslmode=require""#,
            r#""postgres://host/db?password=s3cret-word&sslmode=require""#,
            r#""nats://s3cret:s3cret-word@broker:4222""#,
            r#"{"a":{"command":"x","env":{"ANY":"s3cret-word"}}}"#,
            r#"{"a":{"url":"https://h/mcp","headers":{"Authorization":"Bearer s3cret-word"}}}"#,
            r#"{"apiKey":"x","token":"s3cret-word"}"#,
            r#"["--key","sk-ant-s3cret-word-0123456789"]"#,
        ] {
            assert!(!shown(secret).contains("s3cret-word"), "{}", shown(secret));
        }
        // What is no secret stays.
        for plain in [
            r#""postgres://me@host:5432/db?sslmode=verify-full""#,
            r#"{"headers":{"Authorization":"Bearer ${WIKI_TOKEN}"}}"#,
            r#"["git status","~/notes"]"#,
        ] {
            assert_eq!(shown(plain), plain);
        }
    }
}
