use std::path::Path;

use contexture::entry::RequestRecord;
use contexture::import::{self, Imported, is_helpers};
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
            // Counted as the model would that was at work there, not as one that nobody named.
            let model = import::model(imported.entries.iter());
            let record = RequestRecord {
                model: model.map(str::to_owned),
                ..RequestRecord::default()
            };
            let settings = settings::of_session(&options.limits, Some(&record), &config)?;
            let view = replay::recorded(settings, imported.entries).map_err(at(&options.source))?;
            view.log()
                .iter()
                .map(|entry| entry.as_ref().clone())
                .collect()
        }
    };
    let count = entries.len();
    let is_message = |entry: &&Entry| matches!(entry.payload, Payload::Message { .. });
    let messages = || entries.iter().filter(is_message);
    let helpers = messages().filter(|entry| is_helpers(entry)).count();
    // A helper's own file is a conversation like any other.
    let helpers = if helpers < messages().count() {
        helpers
    } else {
        0
    };
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
    if helpers > 0 {
        text.push_str(&format!(", {} of sub-agents", plural(helpers, "message")));
    }
    if kept > 0 {
        text.push_str(&format!(
            "\n{} in {} without a place here, kept in `meta`; --json counts them\n",
            plural(kept, "value"),
            plural(imported.kept.len(), "field")
        ));
    }
    print(format!("{}\n", text.trim_end()).as_bytes())
}
