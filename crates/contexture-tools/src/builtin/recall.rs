//! `context_recall`: back to what a compaction, a mask or a drop took out of sight.
//!
//! What it gives is a tool's result, whoever said it first: the role is a word in the text.

use std::collections::HashSet;

use contexture::entry::Gone;
use contexture::{Entry, Part, Payload, View};
use contexture_store::resolve;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::Stores;
use super::arguments::{Number, text};
use super::inject::{MOST, chat};
use crate::plain::{hanging, one_line, plural};
use crate::{Outcome, RunContext};

/// A character of an entry, or a hit of a search.
pub(super) const OFFSET: Number = Number {
    name: "offset",
    least: 0,
    most: 100_000_000,
    usual: 0,
};

/// Characters of an entry, or hits of a search.
pub(super) const LIMIT: Number = Number {
    name: "limit",
    least: 1,
    most: MOST,
    usual: MOST,
};

/// The most characters of a search.
pub(super) const LONGEST_QUERY: usize = 500;

/// The most hits of a search, and how many unless told.
const MOST_HITS: usize = 50;
const HITS: usize = 10;

/// How much of an entry stands around a hit.
const BEFORE: usize = 200;
const AFTER: usize = 400;

pub(super) fn recall(
    _: &Stores,
    run: &RunContext,
    arguments: &Map<String, Value>,
) -> Result<Outcome, String> {
    let log = run.log();
    let view = View::fold(log.iter().cloned())
        .map_err(|error| format!("the log cannot be read: {error}"))?;
    let offset = OFFSET.of(arguments)?;
    let limit = LIMIT.given(arguments)?;
    if let Some(id) = text(arguments, "entryId", LONGEST_QUERY)? {
        return page(&view, run, id, offset, limit.unwrap_or(MOST));
    }
    let words = words(text(arguments, "words", LONGEST_QUERY)?.unwrap_or_default())?;
    search(&view, &words, offset, limit.unwrap_or(HITS).min(MOST_HITS))
}

/// One entry, from a character on.
fn page(
    view: &View,
    run: &RunContext,
    id: &str,
    offset: usize,
    limit: usize,
) -> Result<Outcome, String> {
    let id = resolve(view, &chat(run)?, id.trim()).map_err(|error| {
        format!("{error}; search with `words`, or leave both out for a list of what is not shown")
    })?;
    let position = view.position(&id).unwrap_or_default();
    if is_barred(view, position) {
        return Err(format!(
            "entry {id} was taken back or redacted: it is not shown again"
        ));
    }
    let entry = &view.log()[position];
    let Some(whole) = content(entry) else {
        let kind = entry.payload.type_name();
        return Err(format!("entry {id} is no content: it is a `{kind}`"));
    };
    let length = whole.chars().count();
    if offset >= length && length > 0 {
        return Err(format!("entry {id} has {length} characters"));
    }
    let piece: String = whole.chars().skip(offset).take(limit).collect();
    let end = offset + piece.chars().count();
    let more = match end < length {
        true => format!("; offset {end} goes on"),
        false => String::new(),
    };
    let head = format!(
        "{}, characters {offset} to {end} of {length}{more}",
        label(entry)
    );
    Ok(Outcome::done(format!("{head}\n\n{piece}")).saying(head))
}

/// What is out of sight and has all the words, newest first.
fn search(view: &View, words: &[Regex], offset: usize, limit: usize) -> Result<Outcome, String> {
    let hidden = hidden(view);
    let hits = view
        .log()
        .iter()
        .enumerate()
        .rev()
        .filter(|(position, _)| hidden.contains(position) && !is_barred(view, *position))
        .filter_map(|(_, entry)| Some((entry, content(entry)?)))
        .filter(|(_, text)| words.iter().all(|word| word.is_match(text)));
    let (mut out, mut count, mut shown) = (String::new(), 0, 0);
    for (entry, text) in hits {
        count += 1;
        if count <= offset || shown == limit || out.chars().count() > MOST {
            continue;
        }
        shown += 1;
        out.push_str(&format!(
            "\n\n{}\n    {}",
            label(entry),
            around(&text, words)
        ));
    }
    let what = match words {
        [] => "not shown in this conversation",
        _ => "that the conversation does not show, with these words",
    };
    let head = match count {
        0 => format!("No entries {what}."),
        _ => format!(
            "{} {what}; here are {shown}, newest first.",
            plural(count, "entry")
        ),
    };
    let more = match offset + shown < count && shown > 0 {
        true => format!(" Offset {} goes on.", offset + shown),
        false => String::new(),
    };
    Ok(Outcome::done(format!("{head}{more}{out}")).saying(head))
}

/// The log positions of content that a summary stands for, that was dropped, or that a mask hides.
fn hidden(view: &View) -> HashSet<usize> {
    let gone = view.gone().filter_map(|(position, why)| match why {
        Gone::Summarised(_) | Gone::Dropped(_) => Some(position),
        Gone::Reverted | Gone::Duplicate | Gone::Moot => None,
    });
    let masked = view.live(0).filter(|live| live.mask.is_some());
    gone.chain(masked.map(|live| live.position)).collect()
}

/// Whether somebody wanted it out of the conversation, and not merely out of the way.
fn is_barred(view: &View, position: usize) -> bool {
    view.is_redacted(position) || view.is_reverted(position) || view.is_withheld(position)
}

/// What an entry says, in words.
fn content(entry: &Entry) -> Option<String> {
    match &entry.payload {
        Payload::Message { message } => {
            let mut out = message.text().into_owned();
            let mute = |part: &&Part| part.text().is_none() && !part.is_thinking();
            for _ in message.parts().iter().filter(mute) {
                out.push_str("\n[a part that is no text]");
            }
            for call in &message.tool_calls {
                out.push_str(&format!("\n[calls {}: {}]", call.name, call.arguments));
            }
            Some(out.trim_start_matches('\n').to_owned())
        }
        Payload::Injection(injection) => Some(injection.content.clone()),
        Payload::CompactionSummary(compaction) => Some(compaction.summary.clone()),
        Payload::BranchSummary(branch) => Some(branch.summary.clone()),
        _ => None,
    }
}

/// `entry 3f2a, said by user, 2026-11-15T…`.
fn label(entry: &Entry) -> String {
    let who = match &entry.payload {
        Payload::Message { message } => format!("said by {}", message.role.as_str()),
        Payload::Injection(injection) => format!(
            "injected by {}",
            injection.origin.as_deref().unwrap_or("a tool")
        ),
        _ => "a summary".to_owned(),
    };
    let when = match entry.timestamp.as_str() {
        "" => String::new(),
        time => format!(", {time}"),
    };
    one_line(&format!("entry {}, {who}{when}", entry.id))
}

/// The words of a search, each to be found in any case.
fn words(query: &str) -> Result<Vec<Regex>, String> {
    let word = |word| {
        RegexBuilder::new(&regex::escape(word))
            .case_insensitive(true)
            .build()
            .map_err(|_| format!("`{word}` cannot be looked for"))
    };
    query.split_whitespace().map(word).collect()
}

/// The text around the first word; its beginning where there is none.
fn around(text: &str, words: &[Regex]) -> String {
    let hit = words.first().and_then(|word| word.find(text));
    let at = hit.map_or(0, |hit| hit.start());
    let back = text[..at].char_indices().rev().take(BEFORE).last();
    let start = back.map_or(at, |(start, _)| start);
    let rest = &text[start..];
    let most = BEFORE + AFTER;
    let end = rest
        .char_indices()
        .nth(most)
        .map_or(rest.len(), |(end, _)| end);
    let (before, after) = (
        if start > 0 { "…" } else { "" },
        if end < rest.len() { "…" } else { "" },
    );
    format!("{before}{}{after}", hanging(&rest[..end], "    "))
}
