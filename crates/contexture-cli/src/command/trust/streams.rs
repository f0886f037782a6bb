//! Foreign content of `.contexture`: conversations that an agent would go on with, and what would act.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture::{Entry, EntryId, Payload, Role};
use contexture_store::{Earlier, Foreign, From, Kind, Log, ProjectLog, Stream};
use serde_json::{Value, json};

use crate::config::Config;
use crate::error::CliError;
use crate::store;
use crate::view::{plural, revealed, safe, thousands};

/// Streams that are not the user's own, with what they would do.
#[derive(Default)]
pub struct Streams {
    foreign: Vec<Foreign>,
    earlier: Earlier,
    shown: Shown,
}

/// The summary of them that a person is shown.
#[derive(Default, PartialEq)]
struct Shown {
    foreign: Vec<Conversation>,
    earlier: Vec<String>,
}

/// The parts of a foreign stream that an agent would take over.
#[derive(PartialEq)]
struct Conversation {
    kind: &'static str,
    key: String,
    records: usize,
    messages: usize,
    /// What it would be told as if it came from its host, and what is kept for good.
    standing: Vec<String>,
}

/// The most that is shown of a stream, and of one text in it.
const MAX_STANDING: usize = 40;
const MAX_TEXT_CHARS: usize = 400;

impl Streams {
    /// Looks for them. Nothing is changed.
    pub fn look(config: &Config) -> Result<Self, CliError> {
        let log = Arc::new(store::on_disk(config)?);
        let foreign = log.foreign()?;
        let earlier = log.earlier()?;
        let shown = Shown::new(&log, &foreign, &earlier)?;
        Ok(Self {
            foreign,
            earlier,
            shown,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.foreign.is_empty() && self.earlier.is_empty()
    }

    /// Makes them the user's own, as they were shown. Gives the names of what had to stay where it is.
    pub fn take(&self, config: &Config) -> Result<Vec<String>, CliError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let log = Arc::new(store::on_disk(config)?);
        if Shown::new(&log, &log.foreign()?, &log.earlier()?)? != self.shown {
            return Err(CliError::NotAllowed {
                what: "what is in .contexture changed while it was looked at".to_owned(),
                hint: "`ctx trust` shows it as it is now".to_owned(),
            });
        }
        for foreign in &self.foreign {
            log.claim_foreign(foreign)?;
        }
        if self.earlier.is_empty() {
            return Ok(Vec::new());
        }
        let left = log.migrate(&self.earlier)?;
        let name = |stream: &Stream| format!("{} {}", stream.kind.as_str(), stream.key);
        Ok(left.iter().map(name).collect())
    }

    pub fn in_words(&self) -> String {
        let mut out = String::new();
        for conversation in &self.shown.foreign {
            let Conversation { kind, key, .. } = conversation;
            out.push_str(&format!(
                "  goes on with the {kind} {}, which came with the folder: {}\n",
                safe(key),
                conversation.size()
            ));
            for line in &conversation.standing {
                out.push_str(&format!("    {line}\n"));
            }
        }
        for line in &self.shown.earlier {
            out.push_str(&format!("  {line}\n"));
        }
        out
    }

    pub fn foreign_value(&self) -> Value {
        let value = |of: &Conversation| {
            json!({
                "kind": of.kind, "key": of.key, "records": of.records, "messages": of.messages,
                "standing": of.standing,
            })
        };
        self.shown.foreign.iter().map(value).collect()
    }

    pub fn earlier_value(&self) -> Value {
        json!(self.shown.earlier)
    }
}

impl Shown {
    fn new(log: &ProjectLog, foreign: &[Foreign], earlier: &Earlier) -> Result<Self, CliError> {
        let conversations = foreign.iter();
        let conversations = conversations.map(|one| Conversation::read(log, &one.info.stream));
        let mut acting = Vec::new();
        for info in &earlier.streams {
            match info.stream.kind {
                Kind::Agent => acting.push(agent(log, &info.stream)?),
                Kind::Pool => acting.extend(board(log, &info.stream)?),
                _ => acting.push(format!(
                    "takes over what happened to agents: {} ({} bytes)",
                    safe(info.stream.key.as_str()),
                    thousands(usize::try_from(info.bytes).unwrap_or(usize::MAX))
                )),
            }
        }
        if earlier.hub_key {
            acting.push("takes over hub.key, by which workers prove who they are".to_owned());
        }
        Ok(Self {
            foreign: conversations.collect::<Result<_, _>>()?,
            earlier: acting,
        })
    }
}

impl Conversation {
    fn read(log: &ProjectLog, stream: &Stream) -> Result<Self, CliError> {
        let mut shown = Self {
            kind: stream.kind.as_str(),
            key: stream.key.as_str().to_owned(),
            records: 0,
            messages: 0,
            standing: Vec::new(),
        };
        let mut facts = Facts::default();
        for record in log.read(stream, From::Start)? {
            // What is damaged is left aside when the stream is read, and the doctor says so.
            let Ok(record) = record else { continue };
            shown.records += 1;
            let value = contexture::json::parse(record.text().as_bytes(), 1);
            if let (Kind::Session, Ok(Ok(entry))) = (stream.kind, value.map(Entry::from_value)) {
                facts.take(&entry);
            }
        }
        shown.messages = facts.messages;
        // Their texts stand somewhere before or behind the pins.
        if !facts.pins.is_empty() {
            for record in log.read(stream, From::Start)?.flatten() {
                let pin = facts.pins.get_mut(record.id());
                if let Some(text) = pin
                    && let Ok(value) = contexture::json::parse(record.text().as_bytes(), 1)
                    && let Ok(entry) = Entry::from_value(value)
                {
                    *text = said(&entry).unwrap_or_else(|| entry.payload.type_name().to_owned());
                }
            }
        }
        shown.standing = facts.in_words(&shown.key);
        Ok(shown)
    }

    fn size(&self) -> String {
        if self.kind == Kind::Session.as_str() {
            return plural(self.messages, "message");
        }
        plural(self.records, "record")
    }
}

/// What of a session speaks with more weight than its messages.
#[derive(Default)]
struct Facts {
    messages: usize,
    /// Sections of the system side by name, with their origin.
    sections: BTreeMap<String, String>,
    /// Messages and injections in the system's name.
    rules: Vec<String>,
    pins: BTreeMap<EntryId, String>,
    /// How much there is beyond what is kept here.
    more: usize,
}

impl Facts {
    fn take(&mut self, entry: &Entry) {
        match &entry.payload {
            Payload::Message { message } => {
                self.messages += 1;
                if matches!(message.role, Role::System | Role::Developer) {
                    self.rule(entry);
                }
            }
            Payload::Injection(injection) if injection.role == Role::System => self.rule(entry),
            Payload::Sections { sections } => {
                for section in sections {
                    if section.text.is_empty() {
                        self.sections.remove(&section.name);
                    } else if self.sections.len() >= MAX_STANDING {
                        self.more += 1;
                    } else {
                        let origin = &section.origin;
                        let text = format!("({}): {}", revealed(origin), short(&section.text));
                        self.sections.insert(section.name.clone(), text);
                    }
                }
            }
            Payload::Pin(_) if self.pins.len() >= MAX_STANDING => self.more += 1,
            Payload::Pin(target) => {
                self.pins
                    .insert(target.entry_id.clone(), "is not there".to_owned());
            }
            Payload::Unpin(target) => {
                self.pins.remove(&target.entry_id);
            }
            _ => {}
        }
    }

    fn rule(&mut self, entry: &Entry) {
        if self.rules.len() < MAX_STANDING {
            self.rules.extend(said(entry));
        } else {
            self.more += 1;
        }
    }

    fn in_words(self, key: &str) -> Vec<String> {
        let sections = self.sections.iter();
        let sections = sections.map(|(name, text)| format!("section {} {text}", revealed(name)));
        let rules = self.rules.iter().map(|text| format!("rule: {text}"));
        let pins = self.pins.values().map(|text| format!("pinned: {text}"));
        let mut all: Vec<String> = sections.chain(rules).chain(pins).collect();
        let more = self.more + all.len().saturating_sub(MAX_STANDING);
        if more > 0 {
            all.truncate(MAX_STANDING);
            all.push(format!(
                "and {more} more: `ctx sessions show {}`",
                safe(key)
            ));
        }
        all
    }
}

/// The text of a message or an injection.
fn said(entry: &Entry) -> Option<String> {
    match &entry.payload {
        Payload::Message { message } => Some(short(&message.text())),
        Payload::Injection(injection) => Some(short(&injection.content)),
        _ => None,
    }
}

/// A text on one line, as far as it is shown.
fn short(text: &str) -> String {
    let line = |text: &str| {
        let lines: Vec<String> = text.trim_end().split('\n').map(revealed).collect();
        lines.join("⏎")
    };
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        None => line(text),
        Some((end, _)) => {
            let left = text[end..].chars().count();
            format!(
                "{} … and {} characters more",
                line(&text[..end]),
                thousands(left)
            )
        }
    }
}

/// An agent of an earlier version: the last record counts.
fn agent(log: &ProjectLog, stream: &Stream) -> Result<String, CliError> {
    let last = log.read_earlier(stream)?.flatten().last();
    let record = last.and_then(|record| contexture::json::parse(record.text().as_bytes(), 1).ok());
    let record = record.unwrap_or_default();
    let texts = |key: &str| -> Vec<String> {
        let list = record[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str)
            .map(super::allows::quoted)
            .collect()
    };
    let text = |key: &str| record[key].as_str().unwrap_or("?").to_owned();
    let mut what = format!("takes over the agent {}", stream.key);
    match texts("command") {
        command if command.is_empty() => what.push_str(&format!(" of {}", text("backendType"))),
        command => what.push_str(&format!(", which runs {}", command.join(" "))),
    }
    if record["wanted"] == true {
        what.push_str(", started with the daemon");
    }
    let env = texts("env");
    if !env.is_empty() {
        what.push_str(&format!(", with the variables {}", env.join(", ")));
    }
    if record["permissions"] == "allow" {
        what.push_str(", allowed everything it asks for");
    }
    if let Some(workspace) = record["workspace"].as_str() {
        what.push_str(&format!(", in {}", super::allows::quoted(workspace)));
    }
    Ok(revealed(&what))
}

/// A board of an earlier version: its resources, and each task that is not over.
fn board(log: &ProjectLog, stream: &Stream) -> Result<Vec<String>, CliError> {
    let (mut resources, mut tasks) = (0, BTreeMap::new());
    for record in log.read_earlier(stream)?.flatten() {
        let Ok(event) = contexture::json::parse(record.text().as_bytes(), 1) else {
            continue;
        };
        let id = event["taskId"].as_str().unwrap_or_default();
        match event["type"].as_str() {
            Some("resource:added") => resources += 1,
            Some("task:created") => {
                let id = event["task"]["id"].as_str().unwrap_or_default().to_owned();
                let text = event["task"]["description"].as_str().unwrap_or_default();
                tasks.insert(id, short(text));
            }
            Some("task:finished" | "task:cancelled") => drop(tasks.remove(id)),
            _ => {}
        }
    }
    let resources = plural(resources, "resource");
    let mut lines = vec![format!(
        "takes over the pool {} with {resources} and {} to do",
        safe(stream.key.as_str()),
        plural(tasks.len(), "task")
    )];
    let more = tasks.len().saturating_sub(MAX_STANDING);
    let tasks = tasks.iter().take(MAX_STANDING);
    lines.extend(tasks.map(|(id, text)| format!("  task {}: {text}", safe(id))));
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    Ok(lines)
}
