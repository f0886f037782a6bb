//! The history in effect, a line an item.

use std::fmt::Write;

use contexture::entry::Live;
use contexture::import::Imported;
use contexture::{Content, Message, Part, Payload, View};

/// As in `03 assistant "I look…" + read({"path":"a"})`.
pub fn history(imported: &Imported) -> String {
    let view = View::fold(imported.entries.clone()).unwrap();
    let mut out = String::new();
    for (n, live) in view.live(0).enumerate() {
        writeln!(out, "{n:02} {}", item(&live)).unwrap();
    }
    out
}

/// The types of the entries, in order, runs together.
pub fn types(imported: &Imported) -> String {
    let mut runs: Vec<(&str, usize)> = Vec::new();
    for entry in &imported.entries {
        let name = entry.payload.type_name();
        match runs.last_mut() {
            Some((last, n)) if *last == name => *n += 1,
            _ => runs.push((name, 1)),
        }
    }
    let shown = runs.iter().map(|(name, n)| match n {
        1 => (*name).to_owned(),
        n => format!("{name}×{n}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn item(live: &Live<'_>) -> String {
    match &live.entry.payload {
        Payload::Message { message } => said(message),
        Payload::CompactionSummary(c) => format!("summary {}", clip(&c.summary)),
        Payload::BranchSummary(b) => format!("branch {}", clip(&b.summary)),
        other => other.type_name().to_owned(),
    }
}

fn said(message: &Message) -> String {
    let mut words = vec![match &message.tool_call_id {
        Some(id) => format!("{}({id})", message.role),
        None => message.role.to_string(),
    }];
    if !message.include_in_context {
        words.push("hidden".to_owned());
    }
    match &message.content {
        Content::Null => {}
        Content::Text(text) => words.push(clip(text)),
        Content::Parts(parts) => words.extend(parts.iter().map(part)),
    }
    for call in &message.tool_calls {
        words.push(format!("+ {}({})", call.name, clip(&call.arguments)));
    }
    words.join(" ")
}

fn part(part: &Part) -> String {
    match part {
        Part::Text { text, .. } => clip(text),
        Part::Image { image_url, .. } => {
            format!("image {}", clip(image_url["url"].as_str().unwrap()))
        }
        Part::File { .. } => "file".to_owned(),
        Part::Thinking {
            thinking,
            signature,
            ..
        } => {
            let seal = if signature.is_some() { " sealed" } else { "" };
            format!("thinking{seal} {}", clip(thinking))
        }
        Part::Other(map) => map["type"].as_str().unwrap().to_owned(),
    }
}

fn clip(text: &str) -> String {
    const LONGEST: usize = 44;
    let line = format!("{text:?}");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
