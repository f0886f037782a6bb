//! The machine as an agent of the project finds it: keys, sandbox, models, daemon. Nothing is sent anywhere but to the
//! project's own daemon.

use std::collections::BTreeSet;
use std::time::Duration;

use contexture_model::weights::KNOWN;
use contexture_model::{Provider, Secret};
use contexture_server::{Client, Daemon};
use contexture_tools::shell::sandbox;
use serde_json::{Value, json};

use crate::agent;
use crate::args::AgentOptions;
use crate::command::runtime;
use crate::config::Config;
use crate::error::words;
use crate::models;
use crate::view::{Paint, plural, safe};

/// Time that the daemon has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// One thing that was looked at.
pub struct Check {
    pub name: &'static str,
    pub state: State,
    pub says: String,
    pub hint: Option<String>,
}

/// The result of a check. Only what is broken fails the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Fine,
    Warning,
    Broken,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warning => "warning",
            Self::Broken => "broken",
        }
    }
}

fn fine(name: &'static str, says: impl Into<String>) -> Check {
    Check {
        name,
        state: State::Fine,
        says: says.into(),
        hint: None,
    }
}

impl Check {
    fn but(self, state: State, hint: impl Into<String>) -> Self {
        Self {
            state,
            hint: Some(hint.into()),
            ..self
        }
    }
}

/// Looks at all of it.
pub fn checks(config: &Config) -> Vec<Check> {
    let (spec, _) = agent::chosen(&AgentOptions::default(), config);
    vec![keys(&spec), shell(), shelf(&spec), daemon(config)]
}

/// Which keys are set, by name, and whether the model in use needs another.
fn keys(spec: &str) -> Check {
    let all = Provider::ALL.into_iter();
    let names: BTreeSet<&str> = all.filter_map(Provider::key_name).collect();
    let is_set = |name: &str| Secret::from_env(name).is_some();
    let says = names.iter().map(|name| match is_set(name) {
        true => format!("{name} is set"),
        false => format!("{name} is not set"),
    });
    let check = fine("keys", says.collect::<Vec<_>>().join(", "));
    if spec.starts_with(agent::LOCAL) {
        return check;
    }
    match agent::provider(spec).key_name() {
        Some(needed) if !is_set(needed) => {
            check.but(State::Warning, format!("`{spec}` needs {needed}"))
        }
        _ => check,
    }
}

/// The sandbox that shell commands would have.
fn shell() -> Check {
    let Some(best) = sandbox::available().best() else {
        let hint = "docs/shell.md says what each needs; until then shell commands are refused";
        return fine("sandbox", "none works on this system").but(State::Warning, hint);
    };
    let check = fine("sandbox", best.to_string());
    match best.gaps() {
        [] => check,
        gaps => check.but(State::Warning, gaps.join("; ")),
    }
}

/// The models on this machine, and whether the one in use is among them.
fn shelf(spec: &str) -> Check {
    let stock = match models::shelf().and_then(|shelf| Ok(shelf.list()?)) {
        Ok(stock) => stock,
        Err(error) => {
            let (what, hint) = words(&error);
            return fine("models", what).but(State::Warning, hint);
        }
    };
    let names: Vec<&str> = stock.whole.iter().map(|one| one.name.as_str()).collect();
    let check = match names[..] {
        [] => fine("models", "none on this machine"),
        _ => fine("models", names.join(", ")),
    };
    if let Some(damaged) = stock.damaged.first() {
        let what = format!("{}: {}", damaged.name, damaged.what);
        return fine("models", what).but(State::Broken, damaged.hint());
    }
    let Some(name) = spec.strip_prefix(agent::LOCAL) else {
        return check;
    };
    if names.contains(&name) {
        return check;
    }
    match KNOWN.iter().any(|known| known.name == name) {
        true => Check {
            hint: Some(format!("`{name}` is fetched when it is first used")),
            ..check
        },
        false => check.but(
            State::Warning,
            format!("`{spec}` is not here: `ctx model add {name} FILE.gguf`"),
        ),
    }
}

/// The project's daemon, where one runs.
fn daemon(config: &Config) -> Check {
    let folder = config.state.as_ref().map(|state| state.folder());
    let daemon = match folder.map(Daemon::find).transpose() {
        Ok(Some(Some(daemon))) => daemon,
        Ok(_) => return fine("daemon", "none runs for this project"),
        Err(error) => {
            let hint = error.hint();
            return fine("daemon", error.to_string()).but(State::Broken, hint);
        }
    };
    let says = format!("{} (process {})", daemon.url, daemon.pid);
    let ours = env!("CARGO_PKG_VERSION");
    if daemon.version != ours {
        let hint = format!(
            "it is version {}, this is {ours}: restart it",
            daemon.version
        );
        return fine("daemon", says).but(State::Warning, hint);
    }
    let answer = runtime().and_then(|runtime| {
        let client = Client::new(&daemon.url, &daemon.secret)?.with_patience(PATIENCE);
        Ok(runtime.block_on(client.call("agent.list", json!({})))?)
    });
    match answer {
        Ok(answer) => {
            let agents = answer["agents"].as_array().map_or(0, Vec::len);
            fine("daemon", format!("{says}, {}", plural(agents, "agent")))
        }
        Err(error) => fine("daemon", says).but(State::Broken, words(&error).0),
    }
}

/// A line each, and the remedy below.
pub fn in_words(checks: &[Check], paint: Paint) -> String {
    let mut out = String::new();
    for check in checks {
        let says = safe(&check.says);
        let says = match check.state {
            State::Fine => says,
            State::Warning => paint.fg(179, &says),
            State::Broken => paint.fg(167, &says),
        };
        out.push_str(&format!("{:<8} {says}\n", check.name));
        if let Some(hint) = &check.hint {
            out.push_str(&format!("         {}\n", paint.dim(&safe(hint))));
        }
    }
    out
}

/// The same as data.
pub fn as_json(checks: &[Check]) -> Value {
    let one = |check: &Check| {
        json!({
            "check": check.name,
            "state": check.state.as_str(),
            "says": check.says,
            "hint": check.hint,
        })
    };
    checks.iter().map(one).collect()
}
