use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use contexture::inject::{
    AgentInstanceMeta, CanvasProvider, CoreProvider, Injected, InjectedKind, InjectedRule,
};
use contexture::json;
use contexture::tokens::for_model;
use contexture_fleet::tokens::{LIFE, Tokens};
use contexture_fleet::{Bus, PrepareError, Prepared, SessionInjector, Why, room};
use contexture_server::{Client, ClientError, Fault};
use contexture_store::{Key, StoreError};
use serde_json::{Value, json};

use super::{print, print_json, run, to_value};
use crate::args::{Inject, Source};
use crate::config::{self, Config};
use crate::error::CliError;
use crate::output::note;
use crate::view::{Paint, plural, safe, thousands};
use crate::{fleet, input, providers, templates};

/// How many digits of a token are shown.
const SHOWN: usize = 8;

/// `ctx inject`.
pub fn inject(options: &Inject, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let config = config::load(dir)?;
    let meta = meta(options)?;
    if !config.withheld.is_empty() {
        note!(
            "ctx: this folder is not trusted, so its {} do not count: `ctx trust` shows what they would do",
            config.withheld.join(", ")
        );
    }
    let runtime = run::runtime()?;
    let prepared = runtime.block_on(async {
        // A token that is shown is for use, and only a daemon's is of any.
        if options.show_token {
            match fleet::daemon(&config)? {
                Some(daemon) => return by_daemon(&daemon, options, &meta).await,
                None => note!(
                    "ctx: no daemon runs, so the token is a sample: start one with `ctx serve`"
                ),
            }
        }
        let injector = injector(&config)?;
        injector
            .prepare(&meta, options.session.clone())
            .await
            .map_err(refused)
    })?;
    match json {
        true => print_json(&shown(&prepared, options.show_token)?),
        false => print(view(&meta, &prepared, options.show_token).as_bytes()),
    }
}

/// A session that the daemon prepared, with a token that counts: of its own agent of this name, unless more is said
/// of it.
async fn by_daemon(
    daemon: &Client,
    options: &Inject,
    meta: &AgentInstanceMeta,
) -> Result<Prepared, CliError> {
    let is_described =
        options.meta.is_some() || options.archetype.is_some() || options.backend.is_some();
    let own = json!({"agent": meta.name, "sessionId": options.session});
    let other = json!({"meta": meta, "sessionId": options.session});
    let prepared = match options.name.is_some() && !is_described {
        false => daemon.call("session.prepare", other).await?,
        true => match daemon.call("session.prepare", own).await {
            Err(error) if error.why == Fault::Said(Why::NotFound) => {
                daemon.call("session.prepare", other).await?
            }
            prepared => prepared?,
        },
    };
    serde_json::from_value(prepared).map_err(|error| {
        let why = Fault::Broken;
        let message = format!("the daemon's session cannot be read: {error}");
        CliError::Daemon(ClientError {
            why,
            message,
            hint: None,
        })
    })
}

/// The core's providers, then the project's.
fn injector(config: &Config) -> Result<SessionInjector, CliError> {
    let tokens = Tokens::new(LIFE).map_err(|error| refused(PrepareError::Token(error)))?;
    let model = config.agent.model.as_ref();
    let tokenizer = for_model(model.map(|model| model.value.as_str()));
    let patience = providers::patience(config);
    let templates = templates::load(config)?;
    let injector =
        SessionInjector::new(Some(Arc::new(tokens)), Arc::new(Bus::default()), tokenizer)
            .patience(patience)
            .room(room(&config.context))
            .templates(Arc::clone(&templates));
    injector.register(Arc::new(CoreProvider(Arc::clone(&templates))));
    injector.register(Arc::new(CanvasProvider(templates)));
    for provider in providers::all(config) {
        injector.register(provider);
    }
    Ok(injector)
}

/// The agent: what a file says of it, and over that what the options say.
fn meta(options: &Inject) -> Result<AgentInstanceMeta, CliError> {
    let mut value = match &options.meta {
        None => json!({ "name": "agent", "archetype": "repo", "backendType": "native" }),
        Some(file) => {
            let bytes = input::read(&Source {
                file: file.clone(),
                line: None,
            })?;
            json::parse(&bytes, 1).map_err(|error| CliError::Context {
                place: input::place(file),
                error,
            })?
        }
    };
    let given = [
        ("name", options.name.clone()),
        (
            "archetype",
            options.archetype.map(|one| one.as_str().to_owned()),
        ),
        ("backendType", options.backend.clone()),
    ];
    if let Value::Object(map) = &mut value {
        for (key, text) in given {
            if let Some(text) = text {
                map.insert(key.to_owned(), json!(text));
            }
        }
    }
    let meta = AgentInstanceMeta::read(value)?;
    // Names become folders elsewhere; what is none is none here.
    Key::new(meta.name.as_str())?;
    Ok(meta)
}

fn refused(error: PrepareError) -> CliError {
    match error {
        PrepareError::Context(error) => error.into(),
        PrepareError::Key(error) => error.into(),
        PrepareError::State(error) => StoreError::from(error).into(),
        PrepareError::Token(error) => CliError::Unfinished {
            what: error.to_string(),
            hint: String::new(),
        },
    }
}

/// All of it as data. What opens doors is masked, unless somebody asks for it.
fn shown(prepared: &Prepared, secrets: bool) -> Result<Value, CliError> {
    let mut value = to_value(prepared)?;
    if secrets {
        return Ok(value);
    }
    value["token"] = json!(masked(&prepared.context.token));
    let servers = value["mcpServers"].as_array_mut();
    for server in servers.into_iter().flatten() {
        let env = server.get_mut("env").and_then(Value::as_array_mut);
        for variable in env.into_iter().flatten() {
            variable["value"] = json!("…");
        }
    }
    Ok(value)
}

fn masked(token: &str) -> String {
    match token.get(..SHOWN) {
        Some(first) => format!("{first}…"),
        None => String::new(),
    }
}

/// What is in, from whom and for how much; what is not, and why.
fn view(meta: &AgentInstanceMeta, prepared: &Prepared, secrets: bool) -> String {
    let paint = Paint::stdout();
    let Prepared {
        session_id,
        context,
        receipt,
        ..
    } = prepared;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "\n  {}  {}",
        paint.bold(&safe(&meta.name)),
        paint.dim(&format!(
            "{} · {} · session {}",
            meta.archetype.as_str(),
            safe(&meta.backend_type),
            safe(session_id)
        ))
    );
    let groups: [(&str, &[InjectedKind]); 3] = [
        (
            "system context",
            &[InjectedKind::SystemContext, InjectedKind::ToolInstructions],
        ),
        ("tools", &[InjectedKind::Tool]),
        ("MCP servers", &[InjectedKind::McpServer]),
    ];
    for (title, kinds) in groups {
        let is_in =
            |item: &&Injected| item.rule == InjectedRule::Kept && kinds.contains(&item.kind);
        let items: Vec<&Injected> = receipt.items.iter().filter(is_in).collect();
        if items.is_empty() {
            continue;
        }
        let sum: usize = items.iter().map(|item| item.tokens).sum();
        let total = plural(sum, "token");
        let _ = writeln!(out, "\n  {}  {}", paint.bold(title), paint.dim(&total));
        for item in items {
            let _ = writeln!(out, "{}", line(item, &thousands(item.tokens), paint));
        }
    }
    let left: Vec<&Injected> = receipt
        .items
        .iter()
        .filter(|item| item.rule != InjectedRule::Kept)
        .collect();
    if !left.is_empty() {
        let _ = writeln!(out, "\n  {}", paint.bold("left out"));
        for item in left {
            let why = item.why.as_deref().unwrap_or_else(|| words(item.rule));
            let why = paint.fg(179, &safe(why));
            let _ = writeln!(out, "{}  {why}", line(item, "", paint));
        }
    }
    let token = match secrets {
        true => context.token.clone(),
        false => masked(&context.token),
    };
    let _ = writeln!(out, "\n  {}  {}", paint.bold("token"), paint.dim(&token));
    out
}

fn line(item: &Injected, tokens: &str, paint: Paint) -> String {
    let mut marks = Vec::new();
    if item.priority != 0 {
        marks.push(format!("priority {}", item.priority));
    }
    if item.stability != contexture::prompt::Stability::Stable {
        marks.push("volatile".to_owned());
    }
    if item.hidden > 0 {
        marks.push(format!(
            "{} made visible",
            plural(item.hidden, "hidden character")
        ));
    }
    let marks = match marks.is_empty() {
        true => String::new(),
        false => format!("  {}", paint.dim(&marks.join(", "))),
    };
    format!("  {tokens:>7}  {}{marks}", safe(&item.id))
}

/// Why something is not in.
fn words(rule: InjectedRule) -> &'static str {
    match rule {
        InjectedRule::Kept => "it is in",
        InjectedRule::Duplicate => "somebody before had the same name",
        InjectedRule::OutOfScope => "it is not for this archetype",
        InjectedRule::Foreign => "it was meant for another agent or session",
        InjectedRule::Empty => "it says nothing",
        InjectedRule::Reserved => "its name is our own",
        InjectedRule::Failed => "the provider failed",
        InjectedRule::NoRoom => "texts of a higher priority took the room",
    }
}
