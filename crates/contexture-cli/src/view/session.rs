use std::fmt::Write as _;
use std::io;

use contexture::import::is_helpers;
use contexture::{Entry, Payload};
use contexture_store::{Loaded, StreamInfo};

use super::{Paint, clip, describe, plural, safe, thousands, width};
use crate::output::Out;
use contexture_agent::clock::ago;

/// A session, and what it is about.
pub struct Listed {
    pub info: StreamInfo,
    pub title: Option<String>,
    /// Whether somebody else began it: it came with the folder.
    pub foreign: bool,
}

/// The sessions, one a line.
pub fn sessions(all: &[Listed], paint: Paint) -> String {
    let name = |listed: &Listed| safe(listed.info.stream.key.as_str());
    let widest = all.iter().map(|listed| name(listed).chars().count()).max();
    let names = widest.unwrap_or(0).clamp(7, 60);
    let mut out = String::new();
    let head = format!(" {:<names$} {:>12}  {:<10}", "session", "bytes", "updated");
    let _ = writeln!(out, "{}", paint.dim(head.trim_end()));
    for listed in all {
        let name = name(listed);
        let updated = listed.info.updated.map(ago).unwrap_or_default();
        let pad = names.saturating_sub(name.chars().count());
        let bytes = usize::try_from(listed.info.bytes).unwrap_or(usize::MAX);
        let line = format!(
            " {}{} {:>12}  {}",
            paint.bold(&name),
            " ".repeat(pad),
            thousands(bytes),
            paint.dim(&format!("{updated:<10}")),
        );
        let room = paint.width.saturating_sub(width(&line) + 3);
        let mark = if listed.foreign { "(not yours) " } else { "" };
        let title = safe(listed.title.as_deref().unwrap_or_default());
        let title = format!("{mark}{title}");
        let title = console::truncate_str(&title, room, "…");
        let _ = writeln!(out, "{}", format!("{line}  {title}").trim_end());
    }
    let mut sum = plural(all.len(), "session");
    let foreign = all.iter().filter(|listed| listed.foreign).count();
    if foreign > 0 {
        let _ = write!(sum, ", {foreign} not yours: `ctx trust` shows them");
    }
    let _ = writeln!(out, " {}", paint.dim(&sum));
    out
}

/// Sessions to choose from by number.
pub fn choices(all: &[Listed], more: usize, paint: Paint) -> String {
    let mut out = String::new();
    for (number, listed) in all.iter().enumerate() {
        let name = safe(listed.info.stream.key.as_str());
        let updated = listed.info.updated.map(ago).unwrap_or_default();
        let number = paint.bold(&format!("{:>3}", number + 1));
        let head = format!("{number}  {name}  {}", paint.dim(&updated));
        let title = safe(listed.title.as_deref().unwrap_or_default());
        let row = format!("{head}  {title}");
        let _ = writeln!(out, "{}", clip(&row, paint.width.saturating_sub(1)));
    }
    if more > 0 {
        let more = format!("     and {more} older, by name: `ctx sessions list`");
        let _ = writeln!(out, "{}", paint.dim(&more));
    }
    out
}

/// The entries of a session, one a line, with those that it was forked from.
pub fn entries(loaded: &Loaded, paint: Paint, out: &mut Out) -> io::Result<()> {
    let log = loaded.view.log();
    let own = loaded.owners.last().map_or(0, |(_, start)| *start);
    let active = loaded.view.active();
    // What helpers said beside the conversation, and what they were told, is one line each time.
    let mut aside: Vec<bool> = Vec::with_capacity(log.len());
    for (entry, active) in log.iter().zip(active) {
        let theirs = is_helpers(entry)
            || matches!(entry.payload, Payload::Request(_)) && aside.last() == Some(&true);
        aside.push(theirs && !active);
    }
    let mut position = 0;
    while position < log.len() {
        let entry = &log[position];
        if let Some((owner, _)) = loaded.owners.iter().find(|(_, start)| *start == position)
            && loaded.owners.len() > 1
        {
            let what = if position == own { "its own" } else { "from" };
            let head = format!("── {what}: {}", safe(owner.as_str()));
            out.text(&format!(" {}\n", paint.dim(&head)))?;
        }
        let end = (position..log.len()).find(|&at| !aside[at]);
        let end = end.unwrap_or(log.len());
        if end - position < 2 {
            out.text(&format!("{}\n", line(entry, position, loaded, paint)))?;
            position += 1;
            continue;
        }
        let folded = format!(
            " {position:>5}  ▸ {} of sub-agents, as --json shows them",
            plural(end - position, "entry")
        );
        out.text(&format!("{}\n", paint.dim(&folded)))?;
        position = end;
    }
    Ok(())
}

fn line(entry: &Entry, position: usize, loaded: &Loaded, paint: Paint) -> String {
    let (kind, colour, what) = match &entry.payload {
        Payload::Message { message } => {
            let colour = match message.role.as_str() {
                "user" => 71,
                "assistant" => 37,
                "tool" => 173,
                _ => 69,
            };
            (message.role.as_str(), colour, describe(message))
        }
        payload => (payload.type_name(), 245, said(payload)),
    };
    let undone = loaded.view.is_reverted(position);
    let time = safe(entry.timestamp.get(11..19).unwrap_or(""));
    let head = format!(" {position:>5}  {:<16}  {time:<8}  ", shortened(&entry.id));
    let kind = paint.fg(colour, &format!("{kind:<18}"));
    let room = paint.width.saturating_sub(56);
    let what = console::truncate_str(&what, room, "…");
    let mark = if undone {
        paint.fg(167, "undone ")
    } else {
        String::new()
    };
    format!("{}{kind} {mark}{}", paint.dim(&head), what.trim_end())
}

/// Ids of other tools may be long; the beginning will do to name an entry.
fn shortened(id: &contexture::EntryId) -> String {
    safe(&id.as_str().chars().take(16).collect::<String>())
}

/// What an entry that is no message says, in a line.
fn said(payload: &Payload) -> String {
    let text = match payload {
        Payload::SessionHeader(header) => match header.extra.get("forkedFrom") {
            Some(fork) => format!(
                "forked from {} at {}",
                fork["session"].as_str().unwrap_or("?"),
                fork["entryId"].as_str().unwrap_or("?")
            ),
            None => format!(
                "version {} · {}",
                header.version,
                header.cwd.as_deref().unwrap_or("")
            ),
        },
        Payload::Request(record) => format!(
            "{} tokens · {} · {}",
            thousands(record.input_tokens),
            record.model.as_deref().unwrap_or("no model"),
            record.digest.get(..23).unwrap_or(&record.digest),
        ),
        Payload::CompactionSummary(c) => format!(
            "{} → {} tokens ({}) · {}",
            thousands(c.tokens_before),
            thousands(c.tokens_after),
            if c.summary.is_empty() {
                "dropped"
            } else {
                &c.strategy
            },
            c.summary
        ),
        Payload::Mask(mask) => format!(
            "{} · {}",
            plural(mask.entry_ids.len(), "entry"),
            mask.reason
        ),
        Payload::Pin(target)
        | Payload::Unpin(target)
        | Payload::Redaction(target)
        | Payload::Revert(target) => target.entry_id.to_string(),
        Payload::Injection(injection) => injection.content.clone(),
        Payload::Sections { sections } => {
            let names: Vec<&str> = sections
                .iter()
                .map(|section| section.name.as_str())
                .collect();
            names.join(", ")
        }
        Payload::Tools(delta) => format!("+{} −{}", delta.add.len(), delta.remove.len()),
        Payload::RuntimeInit { data }
        | Payload::Hints { data }
        | Payload::ModelChange(data)
        | Payload::Custom(data) => serde_json::to_string(data).unwrap_or_default(),
        Payload::BranchSummary(branch) => branch.summary.clone(),
        Payload::Message { message } => return describe(message),
    };
    safe(&text.chars().take(400).collect::<String>())
}
