//! `ctx agent`.

mod permit;
mod prompt;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{print, print_json, runtime};
use crate::agent::{LOCAL, chosen, local};
use crate::args::{AgentCommand, AgentCreate, AgentOptions};
use crate::config;
use crate::error::CliError;
use crate::fleet::{Reach, daemon_only, reach};
use crate::output::note;
use crate::view::{Paint, safe};

/// `ctx agent`.
pub fn agents(what: &AgentCommand, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    runtime()?.block_on(async {
        let simple = |method: &'static str, name: &str| (method, json!({"name": name}));
        let (method, params) = match what {
            AgentCommand::Create(options) => ("agent.create", spec(options)?),
            AgentCommand::Show { name } => simple("agent.show", name),
            AgentCommand::Start { name } => simple("agent.start", name),
            AgentCommand::Stop { name } => simple("agent.stop", name),
            AgentCommand::Restart { name } => simple("agent.restart", name),
            AgentCommand::Cancel { name } => simple("agent.cancel", name),
            AgentCommand::Rm { name } => simple("agent.remove", name),
            AgentCommand::List => return list(&reach(dir)?, json).await,
            AgentCommand::Backends => return backends(&reach(dir)?, json).await,
            AgentCommand::Permit {
                name,
                request,
                answer,
            } => {
                let answer = request.as_deref().zip(*answer);
                return permit::permit(&daemon_only(dir)?, name, answer, json).await;
            }
            AgentCommand::Prompt { name, text } => {
                return prompt::prompt(&daemon_only(dir)?, name, text, json).await;
            }
        };
        // What runs, runs in the daemon.
        let fleet = match what {
            AgentCommand::Start { .. }
            | AgentCommand::Restart { .. }
            | AgentCommand::Cancel { .. } => Reach::Daemon(daemon_only(dir)?),
            _ => reach(dir)?,
        };
        if let AgentCommand::Start { name } | AgentCommand::Restart { name } = what {
            fetch_model(&fleet, name, dir).await?;
        }
        let agent = fleet.call(method, params).await?;
        if json {
            return print_json(&agent);
        }
        if agent.get("name").is_some() {
            print(shown(&agent, Paint::stdout()).as_bytes())?;
        }
        if let (AgentCommand::Create(made), Reach::Here { .. }) = (what, &fleet) {
            note!(
                "     `ctx serve` in another terminal, then `ctx agent start {}`",
                safe(&made.name)
            );
        }
        Ok(())
    })
}

/// Fetches the model of an agent of our own beforehand, where it can be seen how that goes on: in the daemon it would be
/// a start that takes long, or too long.
async fn fetch_model(fleet: &Reach, name: &str, dir: Option<&Path>) -> Result<(), CliError> {
    let agent = fleet.call("agent.show", json!({"name": name})).await?;
    let has_command = agent["command"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    if agent["backendType"] != "native" || has_command || agent["state"] == "running" {
        return Ok(());
    }
    // It has the settings of the folder that it works in.
    let config = match agent["workspace"].as_str() {
        Some(folder) => config::load_at(None, Path::new(folder))?,
        None => config::load(dir)?,
    };
    let options = AgentOptions {
        model: agent["model"].as_str().map(str::to_owned),
        ..AgentOptions::default()
    };
    let (spec, _) = chosen(&options, &config);
    match spec.strip_prefix(LOCAL) {
        Some(model) => local::fetched(model).await,
        None => Ok(()),
    }
}

fn spec(options: &AgentCreate) -> Result<Value, CliError> {
    let mut spec = json!({
        "name": options.name,
        "backendType": options.backend,
        "archetype": options.archetype,
        "workspacePolicy": if options.ephemeral { "ephemeral" } else { "persistent" },
        "launchMode": if options.direct { "direct" } else { "managed" },
        "permissions": options.permissions,
        "env": options.env,
        "command": options.command,
    });
    if let Some(model) = &options.model {
        spec["model"] = json!(model);
    }
    if let Some(folder) = &options.workspace {
        // As whoever runs this sees it, and not the daemon.
        let folder = folder.canonicalize().map_err(|error| CliError::Io {
            place: folder.display().to_string(),
            error,
        })?;
        spec["workspace"] = json!(folder);
    }
    Ok(spec)
}

async fn list(fleet: &Reach, json: bool) -> Result<(), CliError> {
    let mut all = fleet.call("agent.list", json!({})).await?;
    let all = all["agents"].take();
    if json {
        return print_json(&all);
    }
    let paint = Paint::stdout();
    let mut out = String::new();
    for agent in all.as_array().into_iter().flatten() {
        out.push_str(&line(agent, paint));
    }
    if out.is_empty() {
        out.push_str(" no agents: `ctx agent create NAME` makes one\n");
    }
    print(out.as_bytes())
}

fn line(agent: &Value, paint: Paint) -> String {
    let text = |key: &str| safe(agent[key].as_str().unwrap_or_default());
    let state = text("state");
    let colour = match state.as_str() {
        "running" => 71,
        "crashed" | "failed" => 167,
        "starting" | "stopping" | "restarting" => 179,
        _ => 245,
    };
    let padded = format!("{state:<10}");
    let (name, kind, backend) = (text("name"), text("archetype"), text("backendType"));
    let why = match agent["why"].as_str() {
        Some(why) => format!("  {}", safe(why)),
        None => String::new(),
    };
    format!(
        " {name:<20} {} {kind:<8} {backend:<12}{why}\n",
        paint.fg(colour, &padded)
    )
}

/// One agent, with all that is known of it.
fn shown(agent: &Value, paint: Paint) -> String {
    let mut out = line(agent, paint);
    let rows = [
        ("session", "sessionId"),
        ("model", "model"),
        ("workspace", "workspace"),
        ("permissions", "permissions"),
        ("started again", "restarts"),
        ("process", "pid"),
    ];
    for (name, key) in rows {
        let value = match &agent[key] {
            Value::String(text) => safe(text),
            Value::Number(number) if number.as_u64() != Some(0) => number.to_string(),
            _ => continue,
        };
        let _ = writeln!(out, "   {} {value}", paint.dim(&format!("{name:<13}")));
    }
    out
}

async fn backends(fleet: &Reach, json: bool) -> Result<(), CliError> {
    let mut all = fleet.call("agent.backends", json!({})).await?;
    let all = all["backends"].take();
    if json {
        return print_json(&all);
    }
    let mut out = String::new();
    for backend in all.as_array().into_iter().flatten() {
        let text = |key: &str| safe(backend[key].as_str().unwrap_or_default());
        let here = match backend["installed"].as_bool() {
            Some(true) => "here",
            _ => "-",
        };
        let (name, command) = (text("name"), text("command"));
        let _ = writeln!(
            out,
            " {name:<12} {here:<5} {command:<28} {}",
            text("install")
        );
    }
    print(out.as_bytes())
}
