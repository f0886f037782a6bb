//! The session that a chat takes place in.

use contexture_store::{Key, Sessions};

use super::lines;
use crate::agent;
use crate::args::Chat;
use crate::command::sessions::listed;
use crate::error::CliError;
use crate::output::{note, tell};
use crate::view::{Listed, Paint, choices};

/// The most sessions to choose from.
const MAX_CHOICES: usize = 10;
/// The longest answer.
const MAX_ANSWER_BYTES: u64 = 1_000;

/// The named session, the newest one, the one that a person chooses, or a new one.
pub fn pick(options: &Chat, sessions: &Sessions, terminal: bool) -> Result<Key, CliError> {
    match &options.resume {
        Some(Some(name)) => existing(sessions, name),
        Some(None) if terminal => choose(sessions),
        Some(None) => Err(CliError::Usage {
            what: "--resume needs the name of a session where there is no terminal".to_owned(),
            hint: "`ctx sessions list` shows them; --continue takes the newest".to_owned(),
        }),
        None if options.newest => {
            // One in which nobody said anything, as an editor may have opened it, is nothing to go on with.
            let newest = own(sessions)?.into_iter().find(|one| one.title.is_some());
            newest
                .map(|listed| listed.info.stream.key)
                .ok_or_else(nothing)
        }
        None => agent::named(&options.agent, sessions, "chat"),
    }
}

/// A session that is there.
fn existing(sessions: &Sessions, name: &str) -> Result<Key, CliError> {
    let key = Key::new(name)?;
    sessions.open(&key)?;
    Ok(key)
}

/// The user's own sessions, the newest first.
fn own(sessions: &Sessions) -> Result<Vec<Listed>, CliError> {
    let mut all = listed(sessions)?;
    all.retain(|listed| !listed.foreign);
    Ok(all)
}

fn choose(sessions: &Sessions) -> Result<Key, CliError> {
    let mut all = own(sessions)?;
    let more = all.len().saturating_sub(MAX_CHOICES);
    all.truncate(MAX_CHOICES);
    if all.is_empty() {
        return Err(nothing());
    }
    let paint = Paint::stderr();
    tell(&choices(&all, more, paint));
    loop {
        tell(&format!("  {} ", paint.bold("number or name ›")));
        let read = |error| CliError::Io {
            place: "the terminal".to_owned(),
            error,
        };
        let line = lines::line(&mut std::io::stdin().lock(), MAX_ANSWER_BYTES).map_err(read)?;
        let Some(line) = line.filter(|line| !line.trim().is_empty()) else {
            return Err(CliError::Usage {
                what: "no session was chosen".to_owned(),
                hint: "`ctx chat` begins a new one".to_owned(),
            });
        };
        let number = line.trim().parse::<usize>().ok();
        let numbered = number.and_then(|number| all.get(number.checked_sub(1)?));
        let chosen = match numbered {
            Some(listed) => Ok(listed.info.stream.key.clone()),
            None => existing(sessions, line.trim()),
        };
        match chosen {
            Ok(key) => return Ok(key),
            Err(error) => note!("  {}", crate::error::words(&error).0),
        }
    }
}

fn nothing() -> CliError {
    CliError::Usage {
        what: "there is no session to continue".to_owned(),
        hint: "`ctx chat` begins one".to_owned(),
    }
}
