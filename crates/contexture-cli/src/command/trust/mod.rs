//! `ctx trust`: shows what trust in a folder would allow, and asks.

mod allows;
mod streams;

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use serde_json::json;

use self::allows::Allows;
use self::streams::Streams;
use super::{print, print_json};
use crate::args::Trust;
use crate::config::{self, Config};
use crate::error::CliError;
use crate::trust::{self, Change, State};
use crate::view::{Paint, safe};

/// `ctx trust`.
pub fn trust(options: &Trust, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    if options.list {
        return list(json);
    }
    let config = config::load(dir)?;
    let place = place(&config);
    let state = config.folder.recorded()?;
    let changes = match state {
        State::Changed => config.folder.changes()?,
        State::Trusted | State::Unknown => Vec::new(),
    };
    let allows = Allows::new(&config);
    let streams = if options.revoke {
        Streams::default()
    } else {
        Streams::look(&config)?
    };
    let say = |state: State, words: &str| match json {
        true => print_json(&json!({
            "folder": place,
            "state": state.as_str(),
            "allows": allows.to_value(),
            "changes": changes.iter().map(Change::to_value).collect::<Vec<_>>(),
            "foreign": streams.foreign_value(),
            "earlier": streams.earlier_value(),
        })),
        false => print(format!("{}: {words}\n", safe(&place)).as_bytes()),
    };
    if options.revoke {
        let words = match config.folder.revoke()? {
            true => "not trusted any more",
            false => "was not trusted",
        };
        return say(State::Unknown, words);
    }
    if allows.is_empty() && streams.is_empty() {
        return say(state, "nothing here needs trust");
    }
    let paint = Paint::stderr();
    eprint!("{}", changed(&place, &changes, paint));
    let head = format!("With trust, an agent in {}", safe(&place));
    eprintln!("{}", paint.bold(&head));
    eprint!("{}{}", allows.in_words(), streams.in_words());
    if state == State::Trusted && streams.is_empty() {
        return say(state, "is trusted already");
    }
    if !options.yes && !ask("Trust this folder?")? {
        return Err(CliError::NotAllowed {
            what: format!("{place} is not trusted"),
            hint: "`ctx trust` asks again".to_owned(),
        });
    }
    let left = streams.take(&config)?;
    config.folder.trust()?;
    if !left.is_empty() {
        let left = safe(&left.join(", "));
        eprintln!(
            "ctx: left in .contexture, because others of the same name are there already: {left}"
        );
    }
    say(State::Trusted, "trusted")
}

/// Shows at the terminal what changed in a trusted folder, and asks about it once. Whether the folder is trusted as it is
/// now, and the configuration is to be read again.
pub fn asked_again(config: &Config) -> Result<bool, CliError> {
    let folder = &config.folder;
    if !is_terminal() || folder.state()? != State::Changed || folder.is_declined()? {
        return Ok(false);
    }
    let changes = folder.changes()?;
    eprint!("{}", changed(&place(config), &changes, Paint::stderr()));
    let trusted = ask("Trust it as it is now?")?;
    if trusted {
        folder.trust()?;
    } else {
        folder.decline()?;
    }
    Ok(trusted)
}

/// `ctx trust --list`.
fn list(json: bool) -> Result<(), CliError> {
    let folders = trust::list()?;
    if json {
        return print_json(&json!({ "folders": folders }));
    }
    let line = |folder: &trust::Known| format!("{}  {}\n", folder.at, safe(&folder.path));
    let lines: String = folders.iter().map(line).collect();
    print(lines.as_bytes())
}

/// Asks at the terminal; whatever is not a yes is a no.
fn ask(question: &str) -> Result<bool, CliError> {
    if !is_terminal() {
        return Err(CliError::NotAllowed {
            what: "there is nobody to ask".to_owned(),
            hint: "look at the list above, then: ctx trust --yes".to_owned(),
        });
    }
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn place(config: &Config) -> String {
    let place = config.root.canonicalize();
    place
        .unwrap_or_else(|_| config.root.clone())
        .display()
        .to_string()
}

/// The changes since the folder was trusted; nothing where there are none.
fn changed(place: &str, changes: &[Change], paint: Paint) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let head = format!("{} has changed since it was trusted:", safe(place));
    let changes = changes.iter().map(|change| change.in_words(paint));
    format!("{}\n{}", paint.bold(&head), changes.collect::<String>())
}
