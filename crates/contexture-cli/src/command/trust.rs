use std::io::{BufRead, IsTerminal};
use std::path::Path;

use contexture_tools::skills::{Places, Skills};
use contexture_tools::system;
use serde_json::{Map, Value, json};

use super::{print, print_json};
use crate::args::Trust;
use crate::config::{self, Config};
use crate::error::CliError;
use crate::output::{self, tell};
use crate::trust::{self, State};
use crate::view::{Paint, plural, safe};

/// `ctx trust`.
pub fn trust(options: &Trust, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    if options.list {
        return list(json);
    }
    let config = config::load(dir)?;
    let place = config
        .root
        .canonicalize()
        .unwrap_or_else(|_| config.root.clone());
    let place = place.display().to_string();
    let say = |state: State, allows: &Allows, words: &str| match json {
        true => print_json(&json!({
            "folder": place, "state": state.as_str(), "allows": allows.to_value(),
        })),
        false => print(format!("{}: {words}\n", safe(&place)).as_bytes()),
    };
    let allows = Allows::of(&config)?;
    if options.revoke {
        let words = match trust::revoke(&config.root)? {
            true => "not trusted any more",
            false => "was not trusted",
        };
        return say(State::Unknown, &allows, words);
    }
    let state = trust::recorded(&config.root, config.digest.as_deref())?;
    if allows.is_empty() {
        return say(state, &allows, "nothing here needs trust");
    }
    tell(&allows.in_words(&place, state, Paint::stderr()));
    if state == State::Trusted {
        return say(state, &allows, "is trusted already");
    }
    if !options.yes && !ask()? {
        return Err(CliError::NotAllowed {
            what: format!("{place} is not trusted"),
            hint: "`ctx trust` asks again".to_owned(),
        });
    }
    trust::record(&config.root, config.digest.as_deref())?;
    say(State::Trusted, &allows, "trusted")
}

/// `ctx trust --list`.
fn list(json: bool) -> Result<(), CliError> {
    let folders = trust::list()?;
    if json {
        return print_json(&json!({ "folders": folders }));
    }
    let line = |folder: &trust::Folder| format!("{}  {}\n", folder.at, safe(&folder.path));
    let lines: String = folders.iter().map(line).collect();
    print(lines.as_bytes())
}

/// Asks at the terminal; whatever is not a yes is a no.
fn ask() -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() || !output::notes_are_seen() {
        return Err(CliError::NotAllowed {
            what: "there is nobody to ask".to_owned(),
            hint: "look at the list above, then: ctx trust --yes".to_owned(),
        });
    }
    tell("Trust this folder? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// What trust in a folder would allow.
struct Allows {
    /// Keys of its configuration that count only with trust.
    settings: Map<String, Value>,
    skills: Vec<String>,
    instructions: Vec<String>,
}

impl Allows {
    fn of(config: &Config) -> Result<Self, CliError> {
        let skills = Skills::discover(&Places::default().and_project(&config.root));
        let files = system::instructions(&config.root, &config::here()?);
        let named = |path: &Path| {
            let path = path.strip_prefix(&config.root).unwrap_or(path);
            path.display().to_string()
        };
        Ok(Self {
            settings: config.needs_trust(),
            skills: skills
                .used()
                .iter()
                .map(|skill| skill.name.clone())
                .collect(),
            instructions: files.iter().map(|path| named(path)).collect(),
        })
    }

    fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.skills.is_empty() && self.instructions.is_empty()
    }

    fn to_value(&self) -> Value {
        json!({
            "settings": self.settings, "skills": self.skills, "instructions": self.instructions,
        })
    }

    fn in_words(&self, place: &str, state: State, paint: Paint) -> String {
        let mut out = match state {
            State::Changed => format!(
                "{} was trusted, and its contexture.json has changed since.\n",
                safe(place)
            ),
            _ => String::new(),
        };
        let head = format!("With trust, an agent in {}", safe(place));
        out.push_str(&format!("{}\n", paint.bold(&head)));
        for (key, value) in &self.settings {
            match (key.as_str(), value) {
                ("mcpServers", Value::Object(servers)) => {
                    for (name, server) in servers {
                        out.push_str(&format!(
                            "  starts the MCP server {}\n",
                            safe(&started(name, server))
                        ));
                    }
                }
                ("baseUrl", url) => {
                    out.push_str(&format!("  sends everything to {}\n", shown(url)));
                }
                (key, value) => out.push_str(&format!("  runs with {key} = {}\n", shown(value))),
            }
        }
        if !self.skills.is_empty() {
            let names = safe(&self.skills.join(", "));
            out.push_str(&format!(
                "  may load {}: {names}\n",
                plural(self.skills.len(), "skill")
            ));
        }
        for file in &self.instructions {
            out.push_str(&format!("  follows {}\n", safe(file)));
        }
        out
    }
}

/// A server: what it runs, and everything else that is said of it, since a variable can change what
/// a program does as much as its name.
fn started(name: &str, server: &Value) -> String {
    let mut rest = server.as_object().cloned().unwrap_or_default();
    let mut words: Vec<String> = vec![format!("{name}:")];
    for key in ["command", "args", "url"] {
        match rest.get(key) {
            Some(Value::String(word)) => words.push(quoted(word)),
            Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
                words.extend(list.iter().filter_map(Value::as_str).map(quoted));
            }
            _ => continue,
        }
        rest.shift_remove(key);
    }
    if !rest.is_empty() {
        words.push(format!("with {}", Value::Object(rest)));
    }
    words.join(" ")
}

/// A word of a command, in quotes where it would not be taken for one.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@,+%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("{word:?}"),
    }
}

/// A value on a line, whole: what is not shown is not agreed to.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => safe(text),
        other => safe(&other.to_string()),
    }
}
