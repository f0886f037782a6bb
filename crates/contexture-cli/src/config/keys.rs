//! One table of keys gives the reader, its errors and the schema.

use contexture::text::nearest;
use contexture::{ContextConfig, ContextError};
use serde_json::{Map, Value, json};

use Kind::{Choice, Integer, Object, Objects, Switch, Text, Texts};

use super::fleet::{ASK_SECONDS, LISTEN, TOKEN_HOURS};
use super::work::PATIENCE_SECONDS;

/// A key: its path, what it takes, its default, whom it needs, and what it is for.
pub(super) struct Key {
    pub path: &'static str,
    kind: Kind,
    default: Value,
    /// Whether a project may set it only when its folder is trusted: it runs something, sends
    /// something, or allows more than the user did.
    pub gated: bool,
    about: &'static str,
}

enum Kind {
    Integer,
    Switch,
    Text,
    /// One of these, and what to say of them.
    Choice(&'static [&'static str], &'static str),
    Texts,
    Object,
    Objects,
}

pub(super) fn keys() -> Vec<Key> {
    let context = ContextConfig::default();
    let free = |path, kind, default, about| Key {
        path,
        kind,
        default,
        gated: false,
        about,
    };
    let gated = |path, kind, default, about| Key {
        gated: true,
        ..free(path, kind, default, about)
    };
    vec![
        free(
            "context.maxInputTokens",
            Integer,
            json!(context.max_input_tokens),
            "The most tokens of a request, with what is reserved for the output.",
        ),
        free(
            "context.maxHistoryMessages",
            Integer,
            Value::Null,
            "The most messages of a request.",
        ),
        free(
            "context.maxBytes",
            Integer,
            Value::Null,
            "The most bytes of a request's body.",
        ),
        free(
            "context.reservedOutput",
            Integer,
            json!(context.reserved_output),
            "Tokens kept free for the output.",
        ),
        free(
            "context.enableCompaction",
            Switch,
            json!(context.enable_compaction),
            "Whether history may be masked and summarised.",
        ),
        free(
            "context.triggerPercent",
            Integer,
            json!(context.trigger_percent),
            "At which share of a limit to compact.",
        ),
        free(
            "context.targetPercent",
            Integer,
            json!(context.target_percent),
            "Down to which share.",
        ),
        free(
            "context.chatHistory.inMemoryMaxMessages",
            Integer,
            json!(60),
            "When a chat's history is compacted.",
        ),
        free(
            "context.chatHistory.compactKeepLastMessages",
            Integer,
            json!(30),
            "How many messages that keeps.",
        ),
        free(
            "context.agentContext.windowEntries",
            Integer,
            json!(200),
            "How many runs the execution memory keeps.",
        ),
        free(
            "agent.maxSteps",
            Integer,
            json!(30),
            "The most steps of a run.",
        ),
        free(
            "agent.maxInjectedMessages",
            Integer,
            json!(120),
            "The most messages that tools may inject in a run.",
        ),
        free(
            "local.threads",
            Integer,
            Value::Null,
            "Threads of a model on this machine; one for each core that is free unless given.",
        ),
        free(
            "local.window",
            Integer,
            Value::Null,
            "The most tokens that a model on this machine reads; what it was trained for unless given.",
        ),
        free(
            "store.url",
            Text,
            Value::Null,
            "A PostgreSQL database for logs (postgres://…); the folder .contexture unless given.",
        ),
        free(
            "store.durability",
            Choice(
                &["sync", "os"],
                "`sync` survives a power cut, `os` only the end of the process",
            ),
            json!("sync"),
            "When an entry is acknowledged: `sync` when it would survive a power cut, `os` when the system has it.",
        ),
        gated(
            "model",
            Text,
            Value::Null,
            "The model, as provider:name. A project's counts when its folder is trusted.",
        ),
        gated(
            "baseUrl",
            Text,
            Value::Null,
            "The address of an OpenAI-compatible endpoint. A project's counts when its folder is trusted.",
        ),
        gated(
            "toolPolicy",
            Object,
            json!({}),
            "Which tools may be used: allowedTools, deniedTools, allowedCategories, deniedCategories, customRules. A project's counts when its folder is trusted, and takes no denial of the user's away.",
        ),
        gated(
            "mcpServers",
            Object,
            json!({}),
            "MCP servers, in the usual shape. A project's are started when its folder is trusted.",
        ),
        gated(
            "providers",
            Objects,
            json!([]),
            "Who else has something to say when an agent's session begins: files, programs, MCP servers. A project's count when its folder is trusted.",
        ),
        gated(
            "shell.network",
            Switch,
            json!(false),
            "Whether shell commands may use the network.",
        ),
        gated(
            "shell.writable",
            Texts,
            json!([]),
            "Folders beside the project's that shell commands may write to.",
        ),
        free(
            "shell.denyRead",
            Texts,
            json!([]),
            "Files and folders that shell commands must not read, beside all credentials: absolute, below ~, or in the project. A project's add to the user's.",
        ),
        gated(
            "shell.sandbox",
            Choice(
                &["require", "prefer"],
                "`require` runs nothing without a sandbox, `prefer` runs what is allowed",
            ),
            json!("require"),
            "What to do where there is no sandbox: `require` runs nothing, `prefer` runs what is allowed without one.",
        ),
        gated(
            "shell.allow",
            Texts,
            json!([]),
            "Beginnings of shell commands that nobody needs to be asked about.",
        ),
        gated(
            "serve.listen",
            Text,
            json!(LISTEN),
            "Where the daemon listens. A project's counts when its folder is trusted.",
        ),
        free(
            "serve.tokenHours",
            Integer,
            json!(TOKEN_HOURS),
            "How long the token of an agent's session counts.",
        ),
        free(
            "serve.askSeconds",
            Integer,
            json!(ASK_SECONDS),
            "How long a person has to answer an agent that asks whether it may do something.",
        ),
        gated(
            "hooks",
            Objects,
            json!([]),
            "Commands that are told of events: event, command, timeoutMs. A project's run when its folder is trusted.",
        ),
        gated(
            "hub.url",
            Text,
            Value::Null,
            "A NATS server (nats://…) over which tasks go to workers on other machines; in this process unless given. A project's counts when its folder is trusted.",
        ),
        gated(
            "hub.credentials",
            Text,
            Value::Null,
            "A file with the user's credentials at the NATS server. A project's counts when its folder is trusted.",
        ),
        free(
            "hub.patienceSeconds",
            Integer,
            json!(PATIENCE_SECONDS),
            "How long a worker may be silent before its task goes to another.",
        ),
        free(
            "pool.locale",
            Choice(&["en", "zh"], "`en` is English, `zh` Chinese"),
            json!("en"),
            "The language of what agents are told of the pool and their task.",
        ),
        gated(
            "prices",
            Object,
            json!({}),
            "What models cost, in dollars for a million tokens, by spec: input, cachedInput, output. A project's counts when its folder is trusted, and the user's own beats it.",
        ),
        free(
            "skills.enabled",
            Switch,
            json!(true),
            "Whether skills are looked for.",
        ),
    ]
}

/// Refuses a key that the table does not have, and a value of another type.
pub(super) fn check(document: &Map<String, Value>) -> Result<(), ContextError> {
    check_inside(document, "", &keys())
}

fn check_inside(map: &Map<String, Value>, path: &str, keys: &[Key]) -> Result<(), ContextError> {
    for (name, value) in map {
        let full = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        if full == "$schema" {
            continue;
        }
        let inside = format!("{full}.");
        if let Some(key) = keys.iter().find(|key| key.path == full) {
            key.check(value)?;
        } else if keys.iter().any(|key| key.path.starts_with(&inside)) {
            match value {
                Value::Object(inner) => check_inside(inner, &full, keys)?,
                _ => return Err(mistyped(full, "object")),
            }
        } else {
            let hint = match nearest(&full, &known(keys)) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "see `ctx config schema`".to_owned(),
            };
            return Err(ContextError::invalid(full, "is an unknown key", hint));
        }
    }
    Ok(())
}

/// The keys, and the objects that hold them.
fn known(keys: &[Key]) -> Vec<&'static str> {
    let mut known: Vec<&str> = keys.iter().map(|key| key.path).collect();
    for key in keys {
        for (dot, _) in key.path.match_indices('.') {
            known.push(&key.path[..dot]);
        }
    }
    known
}

fn mistyped(path: impl Into<String>, kind: &str) -> ContextError {
    ContextError::invalid(
        path,
        format!("must be of type {kind}"),
        "see `ctx config schema`",
    )
}

impl Key {
    fn check(&self, value: &Value) -> Result<(), ContextError> {
        let of_type = match &self.kind {
            Integer => value.is_u64(),
            Switch => value.is_boolean(),
            Text | Choice(..) => value.is_string(),
            Texts => value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string)),
            Object => value.is_object(),
            Objects => value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_object)),
        };
        if !of_type {
            return Err(mistyped(self.path, self.kind.name()));
        }
        match (&self.kind, value.as_str()) {
            (Choice(known, hint), Some(text)) if !known.contains(&text) => Err(
                ContextError::invalid(self.path, format!("`{text}` is unknown"), *hint),
            ),
            _ => Ok(()),
        }
    }

    fn schema(&self) -> Value {
        let mut schema = match &self.kind {
            Integer => json!({ "type": "integer", "minimum": 0 }),
            Switch => json!({ "type": "boolean" }),
            Text => json!({ "type": "string" }),
            Choice(known, _) => json!({ "type": "string", "enum": known }),
            Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Object => json!({ "type": "object" }),
            Objects => json!({ "type": "array", "items": { "type": "object" } }),
        };
        schema["description"] = json!(self.about);
        if !self.default.is_null() {
            schema["default"] = self.default.clone();
        }
        schema
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Integer => "integer",
            Switch => "boolean",
            Text | Choice(..) => "string",
            Texts => "array of strings",
            Object => "object",
            Objects => "array of objects",
        }
    }
}

/// The value at a path, as in `store.url`.
pub(super) fn at<'a>(document: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = document.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
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
    for key in keys() {
        let mut place = &mut root;
        let mut names = key.path.split('.').peekable();
        while let Some(name) = names.next() {
            place = &mut place["properties"];
            if names.peek().is_some() && place.get(name).is_none() {
                place[name] =
                    json!({ "type": "object", "additionalProperties": false, "properties": {} });
            }
            place = &mut place[name];
        }
        *place = match key.path {
            "mcpServers" => contexture_tools::mcp::schema(),
            "providers" => {
                let mut schema = super::providers::schema();
                schema["default"] = key.default.clone();
                schema["description"] = json!(key.about);
                schema
            }
            _ => key.schema(),
        };
    }
    root
}
