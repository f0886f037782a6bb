//! `ctx events`: the fleet's events, from the log or as they happen.

use std::path::Path;
use std::time::{Duration, SystemTime};

use contexture::json;
use contexture_agent::clock;
use contexture_server::Client;
use contexture_store::{From, Kind};
use serde_json::Value;

use super::runtime;
use crate::args::Events;
use crate::error::CliError;
use crate::fleet::daemon_only;
use crate::output::{Out, note};
use crate::store;
use crate::view::{Paint, clip, safe};

/// `ctx events`: those that were logged, or with `--follow` those that the daemon tells of.
pub fn events(options: &Events, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let wanted = Wanted {
        since: options.since.as_deref().map(since).transpose()?,
        options,
        json,
    };
    if options.follow {
        let client = daemon_only(dir)?;
        return runtime()?.block_on(follow(&client, &wanted));
    }
    past(&wanted, dir)
}

/// The selection of events to print, and their format.
struct Wanted<'a> {
    since: Option<String>,
    options: &'a Events,
    json: bool,
}

fn past(wanted: &Wanted<'_>, dir: Option<&Path>) -> Result<(), CliError> {
    let home = store::open(dir)?;
    let log = home.sessions.log();
    let mut out = Out::new();
    // A stream a day, named after it.
    for info in log.list(Kind::Events)? {
        let day = info.stream.key.as_str();
        let since = wanted.since.as_deref().and_then(|since| since.get(..10));
        if since.is_some_and(|since| day < since) {
            continue;
        }
        for record in log.read(&info.stream, From::Start)? {
            match json::from_text::<Value>(record?.text()) {
                Ok(event) => wanted.print(&event, &mut out)?,
                Err(error) => note!("ctx: {day}, left aside: {}", safe(&error.to_string())),
            }
        }
    }
    Ok(out.flush()?)
}

async fn follow(client: &Client, wanted: &Wanted<'_>) -> Result<(), CliError> {
    // The daemon remembers some, for whoever asks for what was.
    let after = wanted.since.as_ref().map(|_| 0);
    let mut events = client.events(after).await?;
    loop {
        let event = tokio::select! {
            event = events.next() => event?,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        let Some(event) = event else {
            note!("ctx: the daemon ended");
            return Ok(());
        };
        let mut out = Out::new();
        wanted.print(&event, &mut out)?;
        out.flush()?;
    }
}

impl Wanted<'_> {
    fn print(&self, event: &Value, out: &mut Out) -> Result<(), CliError> {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        // Word of what was missed has neither a time nor an agent, and is for everybody.
        let missed = text("type") == "missed";
        let agent = self.options.agent.as_deref();
        let is = text("type").starts_with(&self.options.kind)
            && agent.is_none_or(|agent| text("agent") == agent)
            && self
                .since
                .as_deref()
                .is_none_or(|since| text("at") >= since);
        if !is && !missed {
            return Ok(());
        }
        if self.json {
            out.json(event)?;
        } else {
            out.text(&in_words(event, Paint::stdout()))?;
        }
        Ok(())
    }
}

/// A line: when, what, and the rest of its fields.
fn in_words(event: &Value, paint: Paint) -> String {
    let text = |key: &str| safe(event[key].as_str().unwrap_or_default());
    let (at, kind) = (text("at"), text("type"));
    let at = at.get(..19).unwrap_or(&at).replacen('T', " ", 1);
    let fields = event.as_object().into_iter().flatten();
    let rest: Vec<String> = fields
        .filter(|(name, _)| !matches!(name.as_str(), "id" | "at" | "type"))
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={}", safe(text)),
            value => format!("{name}={}", safe(&value.to_string())),
        })
        .collect();
    let line = format!("{}  {kind:<22} {}", paint.dim(&at), rest.join(" "));
    format!("{}\n", clip(&line, paint.width))
}

/// The time that `--since` names, as events have it.
fn since(text: &str) -> Result<String, CliError> {
    let wrong = || CliError::Usage {
        what: format!("--since {text}: not a time"),
        hint: "write 2026-11-19, 2026-11-19T10:30:00Z, or 15m, 2h, 3d".to_owned(),
    };
    let unit = |unit| match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(60 * 60),
        'd' => Some(24 * 60 * 60),
        _ => None,
    };
    if let Some((last, seconds)) = text.chars().next_back().and_then(|c| Some((c, unit(c)?))) {
        let number: u64 = text.trim_end_matches(last).parse().map_err(|_| wrong())?;
        let ago = Duration::from_secs(number.checked_mul(seconds).ok_or_else(wrong)?);
        let then = SystemTime::now().checked_sub(ago).ok_or_else(wrong)?;
        return Ok(clock::rfc3339(then));
    }
    // Compared as text: each event's time begins with its day.
    let shape = "dddd-dd-ddTdd:dd:dd";
    let is_date = text.len() >= 10
        && text.chars().zip(shape.chars()).all(|(c, form)| match form {
            'd' => c.is_ascii_digit(),
            form => c == form,
        });
    // A time with its fraction comes behind the same one without.
    let start = text.trim_end_matches('Z').to_owned();
    is_date.then_some(start).ok_or_else(wrong)
}
