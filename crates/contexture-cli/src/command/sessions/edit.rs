//! What changes a session by one entry, or makes and removes one.

use std::path::Path;

use contexture::entry::Target;
use contexture::{EntryId, Payload, View};
use contexture_store::{Key, Sessions, StoreError, Stream, resolve};
use serde_json::json;

use crate::args::Limits;
use crate::command::point::{named, recorded};
use crate::command::{print, print_json};
use crate::config;
use crate::error::CliError;
use crate::settings::of_session;
use crate::store::Home;
use crate::view::safe;
use contexture_agent::clock::now;

/// `ctx sessions fork`.
pub fn fork(
    home: &Home,
    from: &Key,
    (name, at): (Option<&str>, Option<&str>),
    json: bool,
    dir: Option<&Path>,
) -> Result<(), CliError> {
    let loaded = home.load(from)?;
    let at = match (at, loaded.view.tail()) {
        (Some(at), _) => point(&loaded.view, from, at, dir)?,
        (None, Some(last)) => last.clone(),
        (None, None) => {
            return Err(StoreError::NoStream {
                stream: Stream::session(from.clone()),
                nearest: None,
            }
            .into());
        }
    };
    let to = match name {
        Some(name) => Key::new(name)?,
        None => free_name(&home.sessions, from)?,
    };
    home.sessions.fork(from, &at, &to, &now())?;
    if json {
        return print_json(
            &json!({ "session": to.as_str(), "from": from.as_str(), "entryId": at }),
        );
    }
    print(format!("{}\n", safe(to.as_str())).as_bytes())
}

/// The entry that a user names; of a request that was not recorded, the last that it was made of.
fn point(view: &View, key: &Key, at: &str, dir: Option<&Path>) -> Result<EntryId, CliError> {
    if at.parse::<usize>().is_err() {
        return Ok(resolve(view, key, at)?);
    }
    let settings = of_session(&Limits::default(), None, &config::load(dir)?)?;
    let requests = recorded(view, settings)?;
    let id = named(&requests, key, at)?;
    let end = requests.position(&id).unwrap_or_default();
    let mut before = requests.log()[..=end].iter().rev();
    let logged = before.find(|entry| view.position(&entry.id).is_some());
    Ok(logged.map_or(id, |entry| entry.id.clone()))
}

/// `ctx sessions undo`.
pub fn undo(home: &Home, key: &Key, entry: Option<&str>, json: bool) -> Result<(), CliError> {
    let loaded = home.load(key)?;
    let target = match entry {
        Some(entry) => resolve(&loaded.view, key, entry)?,
        None => last_decision(&loaded.view).ok_or_else(|| CliError::Usage {
            what: format!("session `{key}` has no compaction or mask to undo"),
            hint: "name a message to go back to: `ctx sessions undo SESSION ENTRY`".to_owned(),
        })?,
    };
    let kind = kind_of(&loaded.view, &target);
    let id = say(
        home,
        key,
        Payload::Revert(Target {
            entry_id: target.clone(),
        }),
    )?;
    done(&id, &target, &format!("undone: {kind} {target}"), json)
}

/// `ctx sessions pin`.
pub fn pin(home: &Home, key: &Key, entry: &str, json: bool) -> Result<(), CliError> {
    let target = resolve(&home.load(key)?.view, key, entry)?;
    let id = say(
        home,
        key,
        Payload::Pin(Target {
            entry_id: target.clone(),
        }),
    )?;
    done(&id, &target, &format!("pinned: {target}"), json)
}

/// `ctx sessions unpin`.
pub fn unpin(home: &Home, key: &Key, entry: &str, json: bool) -> Result<(), CliError> {
    let target = resolve(&home.load(key)?.view, key, entry)?;
    let id = say(
        home,
        key,
        Payload::Unpin(Target {
            entry_id: target.clone(),
        }),
    )?;
    done(&id, &target, &format!("no longer pinned: {target}"), json)
}

/// `ctx sessions rm`.
pub fn rm(home: &Home, key: &Key, json: bool) -> Result<(), CliError> {
    home.sessions.remove(key)?;
    match json {
        true => print_json(&json!({ "removed": key.as_str() })),
        false => print(format!("removed: {}\n", safe(key.as_str())).as_bytes()),
    }
}

fn say(home: &Home, key: &Key, payload: Payload) -> Result<EntryId, CliError> {
    Ok(home.sessions.open(key)?.say(&now(), payload)?)
}

fn done(id: &EntryId, target: &EntryId, words: &str, json: bool) -> Result<(), CliError> {
    match json {
        true => print_json(&json!({ "id": id, "entryId": target })),
        false => print(format!("{}\n", safe(words)).as_bytes()),
    }
}

/// The last compaction or mask that still holds.
fn last_decision(view: &View) -> Option<EntryId> {
    let counts = view.active();
    let log = view.log().iter().enumerate().rev();
    let mut decided = log.filter(|(position, entry)| {
        let decides = matches!(
            entry.payload,
            Payload::CompactionSummary(_) | Payload::Mask(_)
        );
        decides && counts[*position]
    });
    decided.next().map(|(_, entry)| entry.id.clone())
}

fn kind_of(view: &View, id: &EntryId) -> &'static str {
    let position = view.position(id).unwrap_or_default();
    match view.log()[position].payload {
        Payload::CompactionSummary(_) => "the compaction",
        Payload::Mask(_) => "the mask",
        Payload::Revert(_) => "the undoing",
        _ => "everything after",
    }
}

/// `main-2`, `main-3`, …
pub fn free_name(sessions: &Sessions, from: &Key) -> Result<Key, CliError> {
    for n in 2_u32.. {
        let key = Key::new(format!("{from}-{n}"))?;
        if !sessions.exists(&key)? {
            return Ok(key);
        }
    }
    Err(StoreError::Exists {
        stream: Stream::session(from.clone()),
    }
    .into())
}
