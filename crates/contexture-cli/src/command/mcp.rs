use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use contexture_tools::Effect;
use contexture_tools::mcp::{self, Options, ServerConfig, Servers, State, Status};
use serde_json::{Value, json};

use super::{mcp_serve, print, print_json};
use crate::args::{Mcp, Model};
use crate::config;
use crate::error::CliError;
use crate::output::note;
use crate::settings::tokenizer;
use crate::view::{plural, safe, thousands};

/// How long the servers may take before what is there is shown.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most characters of a description in a list.
const BRIEF: usize = 80;

/// `ctx mcp`.
pub fn servers(what: &Mcp, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    if let Mcp::Serve { at } = what {
        return mcp_serve::serve(at, dir);
    }
    let config = config::load(dir)?;
    let root = std::path::absolute(&config.root)?;
    // What the project names counts only when its folder is trusted.
    let untrusted = match config.withheld.contains(&"mcpServers") {
        true => mcp::read(config.project.get("mcpServers").unwrap_or(&Value::Null))?,
        false => Vec::new(),
    };
    if let (Mcp::Tools { .. }, Some(first)) = (what, untrusted.first()) {
        return Err(CliError::NotAllowed {
            what: format!(
                "the project names MCP servers (`{}`), and its folder is not trusted",
                first.name
            ),
            hint: "look at what they start in contexture.json, then run `ctx trust`".to_owned(),
        });
    }
    let servers = config.agent.mcp_servers;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let servers = Servers::start(servers, options(&root)?);
        servers.settled(PATIENCE).await;
        let shown = match what {
            Mcp::List => list(&servers.states(), &untrusted, json),
            Mcp::Tools { model } => tools(&servers, model, json),
            Mcp::Serve { .. } => Ok(()),
        };
        servers.stop().await;
        shown
    })
}

/// How `ctx` keeps servers: supervised by itself, so that none outlives it.
pub fn options(root: &Path) -> Result<Options, CliError> {
    let mut options = Options::new(root);
    let us = std::env::current_exe()?;
    options.supervisor = Some(vec![us.into(), "__supervise".into()]);
    Ok(options)
}

fn list(states: &[Status], untrusted: &[ServerConfig], json: bool) -> Result<(), CliError> {
    let mut rows: Vec<Value> = states.iter().map(row).collect();
    rows.extend(untrusted.iter().map(|server| {
        json!({ "name": server.name, "transport": server.kind(), "address": server.shown(),
                "state": "untrusted" })
    }));
    if json {
        return print_json(&Value::Array(rows));
    }
    let mut out = String::new();
    for row in &rows {
        let text = |key: &str| safe(row[key].as_str().unwrap_or_default());
        let more = match (row["tools"].as_u64(), row["why"].as_str()) {
            (Some(tools), _) => plural(usize::try_from(tools).unwrap_or_default(), "tool"),
            (None, why) => safe(why.unwrap_or_default()),
        };
        let (name, state, kind) = (text("name"), text("state"), text("transport"));
        let _ = writeln!(
            out,
            " {name:<20} {state:<10} {kind:<5} {}  {more}",
            text("address")
        );
    }
    if rows.is_empty() {
        out.push_str(" no MCP servers: name some under `mcpServers` in contexture.json\n");
    }
    if !untrusted.is_empty() {
        note!("ctx: the project's servers are not started before `ctx trust`");
    }
    print(out.as_bytes())
}

fn row(status: &Status) -> Value {
    let mut row = json!({
        "name": status.name, "transport": status.transport, "address": status.address,
    });
    let (state, why) = match &status.state {
        State::Disabled => ("disabled", None),
        State::Starting => ("starting", None),
        State::Ready { tools } => {
            row["tools"] = json!(tools);
            ("ready", None)
        }
        State::Restarting { why, .. } => ("restarting", Some(why)),
        State::Failed { why } => ("failed", Some(why)),
        _ => ("unknown", None),
    };
    row["state"] = json!(state);
    if let Some(why) = why {
        row["why"] = json!(why);
    }
    row
}

fn tools(servers: &Servers, model: &Model, json: bool) -> Result<(), CliError> {
    let tokenizer = tokenizer(model, model.name.as_deref())?;
    let mut rows = Vec::new();
    let mut out = String::new();
    let mut sum = 0;
    for tool in servers.tools() {
        let spec = tool.spec();
        let tokens = tokenizer.tool(&spec.to_value());
        sum += tokens;
        let effect = match spec.effect {
            Effect::Reads => "reads",
            Effect::Tells => "tells",
            Effect::Acts => "acts",
        };
        let line = spec.description.lines().next().unwrap_or_default();
        let about: String = safe(line).chars().take(BRIEF).collect();
        let (name, number) = (safe(&spec.name), thousands(tokens));
        let _ = writeln!(out, " {name:<36} {effect:<5} {number:>6}  {about}");
        rows.push(
            json!({ "name": spec.name, "wireName": spec.wire_name(), "effect": effect,
            "description": line, "tokens": tokens }),
        );
    }
    for status in servers.states() {
        let why = match &status.state {
            State::Failed { why } | State::Restarting { why, .. } => why,
            State::Starting => "it has not answered yet",
            _ => continue,
        };
        note!("ctx: {}: {}", safe(&status.name), safe(why));
    }
    for notice in servers.take_notices() {
        note!("ctx: {}", safe(&notice.to_string()));
    }
    if json {
        return print_json(&Value::Array(rows));
    }
    let _ = writeln!(
        out,
        " {}, {} tokens",
        plural(rows.len(), "tool"),
        thousands(sum)
    );
    print(out.as_bytes())
}
