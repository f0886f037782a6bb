//! `providers`: who else has something to say when a session begins.

use std::path::PathBuf;
use std::time::Duration;

use contexture::ContextError;
use contexture::inject::Scope;
use contexture::prompt::Stability;
use contexture::text::nearest;
use serde_json::{Map, Value, json};

use super::layers::{Layers, Source};
use super::range::{PROVIDER_BYTES, PROVIDER_MILLISECONDS, Range};

/// A provider, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Its name, which is its identity.
    pub name: String,
    /// What it is.
    pub kind: ProviderKind,
    /// How long it may take.
    pub timeout: Duration,
    /// How much it may say.
    pub max_bytes: usize,
    /// Whether no session begins without it.
    pub required: bool,
    /// Whether its text is the same for a whole session.
    pub stability: Stability,
    /// Its rank when there is too little room for all texts: the lowest are left out first.
    pub priority: i32,
    /// Whether the project names it, and not the user.
    pub of_project: bool,
}

/// What a provider is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKind {
    /// A file's text.
    File(PathBuf),
    /// What a program says.
    Command(Vec<String>),
    /// A server of `mcpServers`.
    Mcp {
        server: String,
        /// The least that an agent must be to have its tools; none where it is given the server itself.
        tools: Option<Scope>,
    },
}

/// The keys of a provider: name, type, and what it is for.
const KEYS: [(&str, &str, &str); 10] = [
    ("name", "string", "Its name, which is its identity."),
    (
        "file",
        "string",
        "A file whose text is system context; in the project, unless the user names it.",
    ),
    (
        "command",
        "array",
        "A program and its arguments. It gets the agent's meta as JSON on standard input; what it prints is system context, or an object with mcpServers, tools and systemContext. For a call of one of its tools it gets {\"call\"}, and prints the answer.",
    ),
    (
        "mcp",
        "string",
        "A program among mcpServers, which agents are given.",
    ),
    (
        "tools",
        "string",
        "With `mcp`: agents get the server's tools alone, from this scope on; the server runs in the daemon.",
    ),
    (
        "timeoutMs",
        "integer",
        "How long it may take; 5000 unless given.",
    ),
    (
        "maxBytes",
        "integer",
        "How much it may say; 262144 unless given, and at most.",
    ),
    (
        "required",
        "boolean",
        "Whether no session begins without it.",
    ),
    (
        "stability",
        "string",
        "`stable` or `volatile`: whether its text is the same for a whole session.",
    ),
    (
        "priority",
        "number",
        "Its rank when there is too little room for all texts: the lowest are left out first.",
    ),
];

/// Names that are taken.
const TAKEN: [&str; 4] = ["core-identity", "canvas", "rules", "skills"];
const LONGEST_NAME: usize = 64;
const TIMEOUT_MS: u64 = 5_000;
/// The most providers of a file.
const MOST: usize = 64;

/// Those of the user, then those of the project; of two with one name the project's counts, in the
/// place of the user's.
pub(super) fn of(layers: &Layers<'_>) -> Result<Vec<ProviderConfig>, ContextError> {
    const KEY: &str = "providers";
    let mut all = read(layers.of_user(KEY), Source::User)?;
    for provider in read(layers.of_project(KEY), Source::Project)? {
        match all.iter_mut().find(|known| known.name == provider.name) {
            Some(known) => *known = provider,
            None => all.push(provider),
        }
    }
    Ok(all)
}

/// The providers of a document.
pub(super) fn read(
    value: Option<&Value>,
    from: Source,
) -> Result<Vec<ProviderConfig>, ContextError> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let Value::Array(list) = value else {
        return Err(wrong(
            "providers",
            "must be a list",
            "see `ctx config schema`",
        ));
    };
    if list.len() > MOST {
        return Err(wrong(
            "providers",
            format!("has more than {MOST}"),
            "name fewer",
        ));
    }
    let mut all: Vec<ProviderConfig> = Vec::new();
    for (n, value) in list.iter().enumerate() {
        let place = format!("providers[{n}]");
        let made = one(&place, value, from)?;
        if all.iter().any(|known| known.name == made.name) {
            let what = format!("`{}` is there already", made.name);
            return Err(wrong(
                format!("{place}.name"),
                what,
                "give each its own name",
            ));
        }
        all.push(made);
    }
    Ok(all)
}

fn one(place: &str, value: &Value, from: Source) -> Result<ProviderConfig, ContextError> {
    let Value::Object(map) = value else {
        return Err(wrong(
            place,
            "must be an object",
            "give `name` and `file`, `command` or `mcp`",
        ));
    };
    check(place, map)?;
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let at = |key: &str| format!("{place}.{key}");
    let name = text("name").unwrap_or_default();
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(legal) {
        let hint = format!("use letters, digits, `_` and `-`, at most {LONGEST_NAME} of them");
        return Err(wrong(at("name"), "is no name for a provider", hint));
    }
    if TAKEN.contains(&name.as_str()) {
        let what = format!("`{name}` is a provider of our own");
        return Err(wrong(at("name"), what, "give it another name"));
    }
    let words = map.get("command").and_then(Value::as_array);
    let words = words.map(|list| list.iter().filter_map(Value::as_str));
    let command: Option<Vec<String>> = words.map(|words| words.map(str::to_owned).collect());
    let kind = match (text("file"), command, text("mcp")) {
        (Some(file), None, None) if !file.is_empty() => ProviderKind::File(file.into()),
        (None, Some(command), None) if command.first().is_some_and(|first| !first.is_empty()) => {
            ProviderKind::Command(command)
        }
        (None, None, Some(server)) if !server.is_empty() => ProviderKind::Mcp {
            server,
            tools: scope(&at("tools"), text("tools"))?,
        },
        _ => {
            let hint = "give one of `file`, `command` and `mcp`";
            return Err(wrong(place, "does not say what it is", hint));
        }
    };
    if map.contains_key("tools") && !matches!(kind, ProviderKind::Mcp { .. }) {
        let hint = "a program names its tools in its output";
        return Err(wrong(at("tools"), "is only for `mcp`", hint));
    }
    let number = |key: &str, range: Range, default: u64| match map.get(key) {
        None => Ok(default),
        Some(given) => range.read(&at(key), given),
    };
    let timeout = number("timeoutMs", PROVIDER_MILLISECONDS, TIMEOUT_MS)?;
    let bytes = number("maxBytes", PROVIDER_BYTES, PROVIDER_BYTES.most)?;
    let stability = match text("stability").as_deref() {
        None | Some("stable") => Stability::Stable,
        Some("volatile") => Stability::Volatile,
        Some(other) => {
            let what = format!("`{other}` is unknown");
            return Err(wrong(at("stability"), what, "`stable` or `volatile`"));
        }
    };
    let priority = map.get("priority").map_or(Some(0), Value::as_i64);
    let Some(priority) = priority.and_then(|given| i32::try_from(given).ok()) else {
        return Err(wrong(
            at("priority"),
            format!("must be a whole number from {} to {}", i32::MIN, i32::MAX),
            "such as 10",
        ));
    };
    Ok(ProviderConfig {
        name,
        kind,
        timeout: Duration::from_millis(timeout),
        max_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        required: map.get("required") == Some(&Value::Bool(true)),
        stability,
        priority,
        of_project: from == Source::Project,
    })
}

fn scope(place: &str, given: Option<String>) -> Result<Option<Scope>, ContextError> {
    let Some(given) = given else { return Ok(None) };
    let scope = Scope::ALL.into_iter().find(|scope| scope.as_str() == given);
    scope.map(Some).ok_or_else(|| {
        let names = Scope::ALL.map(Scope::as_str).join(", ");
        wrong(
            place,
            format!("`{given}` is unknown"),
            format!("one of {names}"),
        )
    })
}

/// Refuses a key that the table does not have, and a value of another type.
fn check(place: &str, map: &Map<String, Value>) -> Result<(), ContextError> {
    let known = KEYS.map(|(name, ..)| name);
    for (name, value) in map {
        let full = format!("{place}.{name}");
        let Some((_, kind, _)) = KEYS.iter().find(|key| key.0 == name) else {
            let hint = match nearest(name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys are {}", known.join(", ")),
            };
            return Err(wrong(full, "is an unknown key", hint));
        };
        let texts = |list: &Vec<Value>| list.iter().all(Value::is_string);
        let (fits, needs) = match *kind {
            "string" => (value.is_string(), "a text"),
            "boolean" => (value.is_boolean(), "true or false"),
            // Read with its range.
            "integer" => (value.is_number(), "a whole number"),
            "array" => (value.as_array().is_some_and(texts), "a list of texts"),
            _ => (value.is_i64() || value.is_u64(), "a whole number"),
        };
        if !fits {
            return Err(wrong(
                full,
                format!("must be {needs}"),
                "see `ctx config schema`",
            ));
        }
    }
    Ok(())
}

/// The JSON Schema of `providers`.
pub(super) fn schema() -> Value {
    let mut properties = Map::new();
    for (name, kind, about) in KEYS {
        let kind = match kind {
            "number" => "integer",
            other => other,
        };
        let mut key = json!({ "type": kind, "description": about });
        match name {
            "command" => key["items"] = json!({ "type": "string" }),
            "timeoutMs" => bounded(&mut key, PROVIDER_MILLISECONDS),
            "maxBytes" => bounded(&mut key, PROVIDER_BYTES),
            "priority" => {
                key["minimum"] = json!(i32::MIN);
                key["maximum"] = json!(i32::MAX);
            }
            "stability" => key["enum"] = json!(["stable", "volatile"]),
            "tools" => key["enum"] = json!(Scope::ALL.map(Scope::as_str)),
            "name" => key["pattern"] = json!(format!("^[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}$")),
            _ => {}
        }
        properties.insert(name.to_owned(), key);
    }
    json!({
        "type": "array",
        "maxItems": MOST,
        "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["name"],
            "oneOf": [{"required": ["file"]}, {"required": ["command"]}, {"required": ["mcp"]}],
            "properties": properties,
        },
    })
}

fn bounded(key: &mut Value, range: Range) {
    key["minimum"] = json!(range.least);
    key["maximum"] = json!(range.most);
}

fn wrong(
    place: impl Into<String>,
    what: impl Into<String>,
    hint: impl Into<String>,
) -> ContextError {
    ContextError::invalid(place, what, hint)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of_user(value: &Value) -> Result<Vec<ProviderConfig>, ContextError> {
        read(Some(value), Source::User)
    }

    #[test]
    fn each_kind_is_read_with_its_defaults() {
        let all = of_user(&json!([
            {"name": "a", "file": "NOTES.md"},
            {"name": "b", "command": ["say", "hi"], "timeoutMs": 100, "maxBytes": 10,
             "required": true, "stability": "volatile", "priority": -3},
            {"name": "c", "mcp": "fs"},
        ]))
        .unwrap();
        assert_eq!(all[0].kind, ProviderKind::File("NOTES.md".into()));
        assert_eq!(all[0].timeout, Duration::from_millis(5_000));
        assert_eq!((all[0].max_bytes, all[0].required), (262_144, false));
        assert_eq!(
            all[1].kind,
            ProviderKind::Command(vec!["say".into(), "hi".into()])
        );
        assert_eq!(
            (all[1].stability, all[1].priority),
            (Stability::Volatile, -3)
        );
        let given = |tools| ProviderKind::Mcp {
            server: "fs".into(),
            tools,
        };
        assert_eq!(all[2].kind, given(None));
        let kept = of_user(&json!([{"name": "c", "mcp": "fs", "tools": "service"}]));
        assert_eq!(kept.unwrap()[0].kind, given(Some(Scope::Service)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (value, place, words) in [
            (json!({}), "providers", "a list"),
            (json!([{"name": "a"}]), "providers[0]", "what it is"),
            (
                json!([{"name": "a", "file": "x", "mcp": "y"}]),
                "providers[0]",
                "what it is",
            ),
            (
                json!([{"name": "a", "command": []}]),
                "providers[0]",
                "what it is",
            ),
            (
                json!([{"name": "a", "comand": ["x"]}]),
                "providers[0].comand",
                "unknown",
            ),
            (
                json!([{"name": "a", "file": 7}]),
                "providers[0].file",
                "a text",
            ),
            (
                json!([{"name": "../a", "file": "x"}]),
                "providers[0].name",
                "no name",
            ),
            (
                json!([{"name": "canvas", "file": "x"}]),
                "providers[0].name",
                "our own",
            ),
            (
                json!([{"name": "a", "file": "x"}, {"name": "a", "file": "y"}]),
                "providers[1].name",
                "already",
            ),
            (
                json!([{"name": "a", "file": "x", "timeoutMs": 0}]),
                "providers[0].timeoutMs",
                "from 1 to 60000, not 0",
            ),
            (
                json!([{"name": "a", "file": "x", "maxBytes": 262_145}]),
                "providers[0].maxBytes",
                "from 1 to 262144, not 262145",
            ),
            (
                json!([{"name": "a", "mcp": "x", "tools": "everybody"}]),
                "providers[0].tools",
                "unknown",
            ),
            (
                json!([{"name": "a", "file": "x", "tools": "all"}]),
                "providers[0].tools",
                "only for `mcp`",
            ),
            (
                json!([{"name": "a", "file": "x", "stability": "firm"}]),
                "providers[0].stability",
                "unknown",
            ),
        ] {
            let error = of_user(&value).unwrap_err().to_string();
            assert!(
                error.contains(place) && error.contains(words),
                "{value}: {error}"
            );
        }
        let hint = of_user(&json!([{"name": "a", "comand": ["x"]}]))
            .unwrap_err()
            .hint();
        assert!(hint.contains("command"), "{hint}");
    }

    #[test]
    fn a_projects_provider_takes_the_place_of_the_users() {
        let user =
            json!({"providers": [{"name": "a", "file": "mine"}, {"name": "b", "file": "b"}]});
        let project =
            json!({"providers": [{"name": "c", "file": "c"}, {"name": "a", "file": "theirs"}]});
        let (user, project) = (user.as_object().unwrap(), project.as_object().unwrap());
        let named = |trusted: bool| {
            let all = of(&Layers::new(user, project, || trusted)).unwrap();
            let named = all.iter().map(|one| (one.name.clone(), one.of_project));
            named.collect::<Vec<_>>()
        };
        let told = |name: &str, theirs: bool| (name.to_owned(), theirs);
        assert_eq!(
            named(true),
            [told("a", true), told("b", false), told("c", true)]
        );
        assert_eq!(named(false), [told("a", false), told("b", false)]);
    }
}
