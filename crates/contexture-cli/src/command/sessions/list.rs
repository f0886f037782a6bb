use contexture::{Payload, Role};
use contexture_store::{From, Key, Sessions, Stream};
use serde_json::{Value, json};

use crate::command::{print, print_json};
use crate::error::CliError;
use crate::output::{Out, note};
use crate::store::Home;
use crate::view::{self, Listed, Paint};
use contexture_agent::clock::rfc3339;

/// `ctx sessions list`.
pub fn list(home: &Home, json: bool) -> Result<(), CliError> {
    let all = listed(&home.sessions)?;
    if json {
        let all = all.iter().map(|listed| {
            let Listed {
                info,
                title,
                foreign,
            } = listed;
            json!({
                "session": info.stream.key.as_str(),
                "foreign": foreign,
                "title": title,
                "bytes": info.bytes,
                "updated": info.updated.map(rfc3339),
            })
        });
        return print_json(&Value::Array(all.collect()));
    }
    if all.is_empty() {
        note!(
            "no sessions yet: `ctx chat` begins one; `ctx sessions import NAME FILE` takes one from elsewhere"
        );
        return Ok(());
    }
    print(view::sessions(&all, Paint::stdout()).as_bytes())
}

/// All sessions, the latest first, each with the beginning of what was asked first.
pub fn listed(sessions: &Sessions) -> Result<Vec<Listed>, CliError> {
    let mut all = sessions.list()?;
    all.sort_by(|a, b| {
        b.updated
            .cmp(&a.updated)
            .then_with(|| a.stream.cmp(&b.stream))
    });
    let listed = all.into_iter().map(|info| Listed {
        title: title(sessions, &info.stream),
        // One that cannot be read is nobody's to go on with.
        foreign: !sessions.log().is_own(&info.stream).unwrap_or(false),
        info,
    });
    Ok(listed.collect())
}

/// How far into a session its first message is looked for, and how much of it is a title.
const FIRST: usize = 16;
const TITLE: usize = 200;

/// The first thing that a user said. One that cannot be read has no title; that is no reason not to
/// list it.
fn title(sessions: &Sessions, stream: &Stream) -> Option<String> {
    let records = sessions.log().read(stream, From::Start).ok()?;
    let entries = records
        .take(FIRST)
        .filter_map(|record| record.ok()?.entry().ok());
    let mut fork = None;
    for entry in entries {
        match &entry.payload {
            Payload::Message { message } if message.role == Role::User => {
                let text = message.text();
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                return Some(words.chars().take(TITLE).collect());
            }
            Payload::SessionHeader(header) => {
                let from = header.extra.get("forkedFrom");
                let from = from.and_then(|from| from.get("session")?.as_str());
                fork = from.map(|from| format!("a fork of {from}"));
            }
            _ => {}
        }
    }
    fork
}

/// `ctx sessions show`.
pub fn show(home: &Home, key: &Key, json: bool) -> Result<(), CliError> {
    let mut out = Out::new();
    if json {
        // As they were written, so that nothing is lost on the way.
        for record in home.sessions.records(key)? {
            out.data(format!("{}\n", record?.text()).as_bytes())?;
        }
        return Ok(out.flush()?);
    }
    let loaded = home.load(key)?;
    view::entries(&loaded, Paint::stdout(), &mut out)?;
    Ok(out.flush()?)
}
