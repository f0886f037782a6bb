//! `contexture.json`: one table of keys gives the reader, its errors and the schema.

use std::path::{Path, PathBuf};

use contexture::text::nearest;
use contexture::{ContextConfig, ContextError, json};
use contexture_store::Durability;
use contexture_tools::mcp::{self, ServerConfig};
use serde_json::{Map, Value, json};

use crate::error::CliError;

/// A key: its path, its type, its default and what it is for.
struct Key(&'static str, &'static str, Value, &'static str);

fn keys() -> Vec<Key> {
    let context = ContextConfig::default();
    vec![
        Key(
            "context.maxInputTokens",
            "integer",
            json!(context.max_input_tokens),
            "The most tokens of a request, with what is reserved for the output.",
        ),
        Key(
            "context.maxHistoryMessages",
            "integer",
            Value::Null,
            "The most messages of a request.",
        ),
        Key(
            "context.maxBytes",
            "integer",
            Value::Null,
            "The most bytes of a request's body.",
        ),
        Key(
            "context.reservedOutput",
            "integer",
            json!(context.reserved_output),
            "Tokens kept free for the output.",
        ),
        Key(
            "context.enableCompaction",
            "boolean",
            json!(context.enable_compaction),
            "Whether history may be masked and summarised.",
        ),
        Key(
            "context.triggerPercent",
            "integer",
            json!(context.trigger_percent),
            "At which share of a limit to compact.",
        ),
        Key(
            "context.targetPercent",
            "integer",
            json!(context.target_percent),
            "Down to which share.",
        ),
        Key(
            "context.chatHistory.inMemoryMaxMessages",
            "integer",
            json!(60),
            "When a chat's history is compacted.",
        ),
        Key(
            "context.chatHistory.compactKeepLastMessages",
            "integer",
            json!(30),
            "How many messages that keeps.",
        ),
        Key(
            "context.agentContext.windowEntries",
            "integer",
            json!(200),
            "How many runs the execution memory keeps.",
        ),
        Key(
            "agent.maxSteps",
            "integer",
            json!(30),
            "The most steps of a run.",
        ),
        Key(
            "agent.maxInjectedMessages",
            "integer",
            json!(120),
            "The most messages that tools may inject in a run.",
        ),
        Key(
            "store.url",
            "string",
            Value::Null,
            "A PostgreSQL database for logs (postgres://…); the folder .contexture unless given.",
        ),
        Key(
            "store.durability",
            "string",
            json!("sync"),
            "When an entry is acknowledged: `sync` when it would survive a power cut, `os` when the system has it.",
        ),
        Key(
            "toolPolicy",
            "object",
            json!({}),
            "Which tools may be used: allowedTools, deniedTools, allowedCategories, deniedCategories, customRules.",
        ),
        Key(
            "mcpServers",
            "object",
            json!({}),
            "MCP servers, in the usual shape.",
        ),
    ]
}

/// What a project sets, and where it is.
pub struct Config {
    /// The folder that holds `.contexture` and `contexture.json`.
    pub root: PathBuf,
    /// The limits of a request.
    pub context: ContextConfig,
    /// Where logs are kept.
    pub store: StoreConfig,
    /// The project's MCP servers: not to be started before the folder is trusted.
    pub servers: Vec<ServerConfig>,
}

/// Where logs are kept, and when an append is acknowledged.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoreConfig {
    pub url: Option<String>,
    pub durability: Durability,
}

/// The project's settings; the defaults where there is no project.
pub fn load(dir: Option<&Path>) -> Result<Config, CliError> {
    let root = root(dir)?;
    let (context, store, servers) = settings(root.join(NAME))?;
    Ok(Config {
        root,
        context,
        store,
        servers,
    })
}

/// The MCP servers that the user set for all projects.
pub fn user_servers() -> Result<Vec<ServerConfig>, CliError> {
    let home = || std::env::home_dir().map(|home| home.join(".config"));
    let given = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = given.filter(|path| path.is_absolute()).or_else(home);
    let Some(folder) = folder else {
        return Ok(Vec::new());
    };
    Ok(settings(folder.join("contexture").join(NAME))?.2)
}

type Settings = (ContextConfig, StoreConfig, Vec<ServerConfig>);

/// What a file says; the defaults where there is none.
fn settings(path: PathBuf) -> Result<Settings, CliError> {
    if !path.is_file() {
        return Ok(Default::default());
    }
    let bytes = std::fs::read(&path).map_err(|error| CliError::Io {
        place: path.display().to_string(),
        error,
    })?;
    read(&bytes).map_err(|error| CliError::Context {
        place: Some(path),
        error,
    })
}

fn read(bytes: &[u8]) -> Result<Settings, ContextError> {
    let Value::Object(document) = json::parse(bytes, 1)? else {
        return Err(ContextError::invalid(
            "line 1",
            "must be an object",
            "see `ctx config schema`",
        ));
    };
    check(&document, "")?;
    let mut limits = ContextConfig::default();
    if let Some(Value::Object(context)) = document.get("context") {
        let ours = context.iter().filter(|(_, value)| !value.is_object());
        limits = limits.overlaid(&ours.map(|(k, v)| (k.clone(), v.clone())).collect())?;
        limits.validate()?;
    }
    let servers = document
        .get("mcpServers")
        .map_or(Ok(Vec::new()), mcp::read)?;
    Ok((limits, store(&document)?, servers))
}

fn store(document: &Map<String, Value>) -> Result<StoreConfig, ContextError> {
    let text = |name: &str| {
        let value = document.get("store").and_then(|store| store.get(name));
        value.and_then(Value::as_str)
    };
    let durability = match text("durability") {
        None | Some("sync") => Durability::Sync,
        Some("os") => Durability::Os,
        Some(other) => {
            return Err(ContextError::invalid(
                "store.durability",
                format!("`{other}` is unknown"),
                "`sync` survives a power cut, `os` only the end of the process",
            ));
        }
    };
    Ok(StoreConfig {
        url: text("url").map(str::to_owned),
        durability,
    })
}

/// Refuses a key that the table does not have, and a value of another type.
fn check(map: &Map<String, Value>, path: &str) -> Result<(), ContextError> {
    let keys = keys();
    for (name, value) in map {
        let full = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        if full == "$schema" {
            continue;
        }
        let inside = format!("{full}.");
        match keys.iter().find(|key| key.0 == full) {
            Some(Key(_, kind, ..)) if fits(value, kind) => {}
            Some(Key(_, kind, ..)) => {
                return Err(ContextError::invalid(
                    full,
                    format!("must be of type {kind}"),
                    "see `ctx config schema`",
                ));
            }
            None if keys.iter().any(|key| key.0.starts_with(&inside)) => match value {
                Value::Object(inner) => check(inner, &full)?,
                _ => {
                    return Err(ContextError::invalid(
                        full,
                        "must be of type object",
                        "see `ctx config schema`",
                    ));
                }
            },
            None => {
                let mut known: Vec<&str> = keys.iter().map(|key| key.0).collect();
                known.extend([
                    "context",
                    "agent",
                    "store",
                    "context.chatHistory",
                    "context.agentContext",
                ]);
                let hint = match nearest(&full, &known) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => "see `ctx config schema`".to_owned(),
                };
                return Err(ContextError::invalid(full, "is an unknown key", hint));
            }
        }
    }
    Ok(())
}

fn fits(value: &Value, kind: &str) -> bool {
    match kind {
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        _ => value.is_object(),
    }
}

const NAME: &str = "contexture.json";
/// The folder of a project's data.
pub const DATA: &str = ".contexture";

/// The project's folder: `dir`, or the nearest upwards that is one; else where we are.
fn root(dir: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(dir) = dir {
        if !dir.is_dir() {
            return Err(CliError::Usage {
                what: format!("--dir {}: there is no such folder", dir.display()),
                hint: "give the project's root".to_owned(),
            });
        }
        return Ok(dir.to_owned());
    }
    let here = std::env::current_dir().map_err(|error| CliError::Io {
        place: "the working folder".to_owned(),
        error,
    })?;
    let project = |folder: &&Path| folder.join(NAME).is_file() || folder.join(DATA).is_dir();
    let root = here.ancestors().find(project).unwrap_or(&here);
    Ok(root.to_owned())
}

/// The JSON Schema of `contexture.json`.
pub fn schema() -> Value {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "contexture.json",
        "type": "object",
        "additionalProperties": false,
        "properties": { "$schema": { "type": "string" } },
    });
    for Key(path, kind, default, about) in keys() {
        let mut at = &mut root;
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            let leaf = names.peek().is_none();
            let empty =
                json!({ "type": "object", "additionalProperties": false, "properties": {} });
            let entry = if leaf { Value::Null } else { empty };
            at = &mut at["properties"];
            if at.get(name).is_none() {
                at[name] = entry;
            }
            at = &mut at[name];
        }
        if path == "mcpServers" {
            *at = mcp::schema();
            continue;
        }
        *at = json!({ "type": kind, "description": about });
        if kind == "integer" {
            at["minimum"] = json!(0);
        }
        if !default.is_null() {
            at["default"] = default;
        }
    }
    root
}
