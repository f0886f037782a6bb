use std::path::Path;

use contexture::import::Imported;
use contexture::{Entry, Payload, replay};
use contexture_store::{Key, StoreError, Stream};
use serde_json::json;

use super::append::header;
use crate::args::Import;
use crate::command::{at, print, print_json};
use crate::error::CliError;
use crate::output::note;
use crate::view::{plural, safe};
use crate::{config, input, settings, store};
use contexture_agent::clock::now;

/// `ctx sessions import`.
pub fn import(options: &Import, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let key = Key::new(options.session.as_str())?;
    let home = store::open(dir)?;
    if home.sessions.exists(&key)? {
        return Err(StoreError::Exists {
            stream: Stream::session(key),
        }
        .into());
    }
    let bytes = input::read(&options.source)?;
    let imported = Imported::read(&bytes).map_err(at(&options.source))?;
    let source = imported.source.as_str();
    let entries = match options.no_requests {
        true => imported.entries,
        false => {
            let config = config::load(dir)?;
            let settings = settings::of_session(&options.limits, None, &config)?;
            let view = replay::recorded(settings, imported.entries).map_err(at(&options.source))?;
            view.log()
                .iter()
                .map(|entry| entry.as_ref().clone())
                .collect()
        }
    };
    let count = entries.len();
    let is_request = |entry: &&Entry| matches!(entry.payload, Payload::Request(_));
    let requests = entries.iter().filter(is_request).count();
    home.sessions.put(&key, header(), &now(), entries)?;
    let kept: usize = imported.kept.values().sum();
    for (line, why) in &imported.skipped {
        note!("ctx: line {line} was skipped: {}", safe(why));
    }
    if json {
        return print_json(&json!({
            "session": key.as_str(),
            "source": source,
            "entries": count,
            "requests": requests,
            "keptInMeta": imported.kept,
            "skippedLines": imported.skipped.iter().map(|(line, _)| line).collect::<Vec<_>>(),
        }));
    }
    let mut text = format!(
        "{}: {} from {source}",
        safe(key.as_str()),
        plural(count, "entry")
    );
    if requests > 0 {
        text.push_str(&format!(
            ", {} as they would have been made",
            plural(requests, "request")
        ));
    }
    if kept > 0 {
        text.push_str(&format!(
            "\n{} without a place here, kept in `meta`:\n",
            plural(kept, "field")
        ));
        for (field, count) in &imported.kept {
            text.push_str(&format!("  {count:>6}  {}\n", safe(field)));
        }
    }
    print(format!("{}\n", text.trim_end()).as_bytes())
}
