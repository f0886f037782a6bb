//! One table of keys gives the reader, its errors and the schema, and decides for each key what a project may do to
//! it.

use contexture::text::nearest;
use contexture::{ContextConfig, ContextError};
use serde_json::{Map, Value, json};

use super::fleet::{ASK_SECONDS, LISTEN, TOKEN_HOURS};
use super::key::Kind::{Choice, Integer, Object, Objects, Switch, Text, Texts};
use super::key::Precedence::{First, Off, Own, Project, Smaller, User};
use super::key::Trust::{Free, Needed, ToRaise};
use super::key::{Key, key, mistyped};
use super::range;
use super::work::PATIENCE_SECONDS;

pub(super) fn keys() -> Vec<Key> {
    let context = ContextConfig::default();
    vec![
        key(
            "context.maxInputTokens",
            Free,
            Smaller,
            Integer(range::TOKENS),
            json!(context.max_input_tokens),
            "The most tokens of a request, with what is reserved for the output.",
        ),
        key(
            "context.maxHistoryMessages",
            Free,
            Smaller,
            Integer(range::MESSAGES),
            Value::Null,
            "Maximum messages of the history in a request.",
        ),
        key(
            "context.maxBytes",
            Free,
            Smaller,
            Integer(range::BYTES),
            Value::Null,
            "The most bytes of a request's body.",
        ),
        key(
            "context.reservedOutput",
            Free,
            User,
            Integer(range::RESERVED_TOKENS),
            json!(context.reserved_output),
            "Tokens kept free for the output.",
        ),
        key(
            "context.enableCompaction",
            Free,
            Project,
            Switch,
            json!(context.enable_compaction),
            "Whether history may be masked and summarised.",
        ),
        key(
            "context.triggerPercent",
            Free,
            Project,
            Integer(range::TRIGGER_PERCENT),
            json!(context.trigger_percent),
            "At which share of a limit to compact.",
        ),
        key(
            "context.targetPercent",
            Free,
            Project,
            Integer(range::TARGET_PERCENT),
            json!(context.target_percent),
            "Down to which share.",
        ),
        key(
            "context.chatHistory.inMemoryMaxMessages",
            Free,
            Smaller,
            Integer(range::MESSAGES),
            json!(60),
            "When a chat's history is compacted.",
        ),
        key(
            "context.chatHistory.compactKeepLastMessages",
            Free,
            Smaller,
            Integer(range::SOME_MESSAGES),
            json!(30),
            "How many messages that keeps.",
        ),
        key(
            "context.agentContext.windowEntries",
            Free,
            Smaller,
            Integer(range::WINDOW_ENTRIES),
            json!(200),
            "How many runs the execution memory keeps.",
        ),
        key(
            "agent.maxSteps",
            ToRaise,
            Smaller,
            Integer(range::STEPS),
            json!(30),
            "The most steps of a run.",
        ),
        key(
            "agent.maxInjectedMessages",
            ToRaise,
            Smaller,
            Integer(range::SOME_MESSAGES),
            json!(120),
            "The most messages that tools may inject in a run.",
        ),
        key(
            "agent.mode",
            Free,
            Project,
            Choice(
                &["chat", "agent", "run"],
                "`chat` and `agent` are conversations, `run` is a step of a workflow",
            ),
            Value::Null,
            "The mode, whose rules an agent is told; none unless given.",
        ),
        key(
            "agent.persona",
            Needed,
            Project,
            Object,
            Value::Null,
            "The agent's persona: id, name, role, identity, communicationStyle, principles, or a systemPrompt of its own. A project's counts when its folder is trusted.",
        ),
        key(
            "agent.runContext",
            Needed,
            Project,
            Object,
            Value::Null,
            "The step of a workflow that an agent carries out in mode run: packageName, workflowName, currentStep, state, graph. A project's counts when its folder is trusted.",
        ),
        key(
            "prompt.system",
            Needed,
            Project,
            Text,
            Value::Null,
            "The system prompt, for calls that bring none. A project's counts when its folder is trusted.",
        ),
        key(
            "local.threads",
            Free,
            Smaller,
            Integer(range::THREADS),
            Value::Null,
            "Threads of a model on this machine; one for each core that is free unless given.",
        ),
        key(
            "local.window",
            Free,
            Smaller,
            Integer(range::WINDOW_TOKENS),
            Value::Null,
            "The most tokens that a model on this machine reads; what it was trained for unless given.",
        ),
        key(
            "store.url",
            Needed,
            Project,
            Text,
            Value::Null,
            "A PostgreSQL database for logs (postgres://…); the folder .contexture unless given. A project's counts when its folder is trusted.",
        ),
        key(
            "store.durability",
            Free,
            First,
            Choice(
                &["sync", "os"],
                "`sync` survives a power cut, `os` only the end of the process",
            ),
            json!("sync"),
            "When an entry is acknowledged: `sync` when it would survive a power cut, `os` when the system has it.",
        ),
        key(
            "model",
            Needed,
            Project,
            Text,
            Value::Null,
            "The model, as provider:name. A project's counts when its folder is trusted.",
        ),
        key(
            "baseUrl",
            Needed,
            Project,
            Text,
            Value::Null,
            "The address of an OpenAI-compatible endpoint. A project's counts when its folder is trusted.",
        ),
        key(
            "toolPolicy",
            Needed,
            Own,
            Object,
            json!({}),
            "Which tools may be used: allowedTools, deniedTools, allowedCategories, deniedCategories, customRules. A project's counts when its folder is trusted, and takes no denial of the user's away.",
        ),
        key(
            "mcpServers",
            Needed,
            Own,
            Object,
            json!({}),
            "MCP servers, in the usual shape. A project's are started when its folder is trusted.",
        ),
        key(
            "providers",
            Needed,
            Own,
            Objects,
            json!([]),
            "Who else has something to say when an agent's session begins: files, programs, MCP servers. A project's count when its folder is trusted.",
        ),
        key(
            "shell.network",
            Needed,
            Off,
            Switch,
            json!(false),
            "Whether shell commands may use the network.",
        ),
        key(
            "shell.writable",
            Needed,
            Own,
            Texts,
            json!([]),
            "Folders beside the project's that shell commands may write to.",
        ),
        key(
            "shell.denyRead",
            Free,
            Own,
            Texts,
            json!([]),
            "Files and folders that shell commands must not read, beside all credentials: absolute, below ~, or in the project. A project's add to the user's.",
        ),
        key(
            "shell.sandbox",
            Needed,
            First,
            Choice(
                &["require", "prefer"],
                "`require` runs nothing without a sandbox, `prefer` runs what is allowed",
            ),
            json!("require"),
            "What to do where there is no sandbox: `require` runs nothing, `prefer` runs what is allowed without one.",
        ),
        key(
            "shell.allow",
            Needed,
            Own,
            Texts,
            json!([]),
            "Beginnings of shell commands that nobody needs to be asked about.",
        ),
        key(
            "serve.listen",
            Needed,
            User,
            Text,
            json!(LISTEN),
            "Where the daemon listens. A project's counts when its folder is trusted.",
        ),
        key(
            "serve.tokenHours",
            ToRaise,
            Smaller,
            Integer(range::TOKEN_HOURS),
            json!(TOKEN_HOURS),
            "How long the token of an agent's session counts.",
        ),
        key(
            "serve.askSeconds",
            ToRaise,
            Smaller,
            Integer(range::ASK_SECONDS),
            json!(ASK_SECONDS),
            "How long a person has to answer an agent that asks whether it may do something.",
        ),
        key(
            "hooks",
            Needed,
            Own,
            Objects,
            json!([]),
            "Commands that are told of events: event, command, timeoutMs. A project's run when its folder is trusted.",
        ),
        key(
            "hub.url",
            Needed,
            Project,
            Text,
            Value::Null,
            "A NATS server (nats://…) over which tasks go to workers on other machines; in this process unless given. A project's counts when its folder is trusted.",
        ),
        key(
            "hub.credentials",
            Needed,
            Project,
            Text,
            Value::Null,
            "A file with the user's credentials at the NATS server. A project's counts when its folder is trusted.",
        ),
        key(
            "hub.patienceSeconds",
            Free,
            Smaller,
            Integer(range::SILENT_SECONDS),
            json!(PATIENCE_SECONDS),
            "How long a worker may be silent before its task goes to another.",
        ),
        key(
            "pool.locale",
            Free,
            Project,
            Choice(&["en", "zh"], "`en` is English, `zh` Chinese"),
            json!("en"),
            "The language of what agents are told of the pool and their task.",
        ),
        key(
            "prices",
            Needed,
            Own,
            Object,
            json!({}),
            "What models cost, in dollars for a million tokens, by spec: input, cachedInput, output. A project's counts when its folder is trusted, and the user's own beats it.",
        ),
        key(
            "skills.enabled",
            Free,
            Off,
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
            "providers" => key.described(super::providers::schema()),
            "hooks" => key.described(super::fleet::hooks_schema()),
            "prices" => key.described(super::work::prices_schema()),
            _ => key.schema(),
        };
    }
    root
}
