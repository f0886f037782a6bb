//! Our own forms and OpenAI's: whatever a build reads.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Imported, Object, Source};
use crate::build::BuildInput;
use crate::entry::ToolDelta;
use crate::{ContextError, Entry, Payload, View, json};

pub(super) fn read(bytes: &[u8]) -> Result<Imported, ContextError> {
    let mut input = BuildInput::read(bytes)?;
    let sections = input.turn.take_sections();
    let mut imported = Imported {
        source: Source::Transcript,
        entries: input.session_entries,
        kept: BTreeMap::new(),
        skipped: Vec::new(),
    };
    let now = input.turn.now.unwrap_or_default();
    let entry = |payload| Entry {
        // Without a parent it follows what stands before it, wherever the log came from.
        parent_id: None,
        ..Entry::derived(None, &now, payload)
    };
    // What a request's body says beside its messages held before the first of them.
    let mut before = Vec::new();
    let fields = other_fields(bytes);
    if !fields.is_empty() {
        for key in fields.keys() {
            let path = format!("{}.{key}", Source::Transcript.as_str());
            *imported.kept.entry(path).or_default() += 1;
        }
        let source = Source::Transcript.as_str();
        before.push(entry(Payload::Custom(Object::from_iter([
            ("source".to_owned(), source.into()),
            ("fields".to_owned(), fields.into()),
        ]))));
    }
    if let Some(model) = input.model {
        let change = Object::from_iter([("model".to_owned(), model.into())]);
        before.push(entry(Payload::ModelChange(change)));
    }
    if let Some(sections) = sections.filter(|s| !s.is_empty()) {
        before.push(entry(Payload::Sections { sections }));
    }
    if let Some(add) = input.turn.tools.filter(|t| !t.is_empty()) {
        before.push(entry(Payload::Tools(ToolDelta {
            add,
            ..ToolDelta::default()
        })));
    }
    let facts = input
        .turn
        .runtime_init
        .map(|data| Payload::RuntimeInit { data });
    let hints = input.turn.hints.map(|data| Payload::Hints { data });
    // A log may begin in the middle of another; nothing can stand before its first entry.
    let sliced = imported
        .entries
        .first()
        .is_some_and(|e| e.parent_id.is_some());
    if sliced {
        imported.entries.append(&mut before);
    } else {
        imported.entries.splice(0..0, before);
    }
    imported
        .entries
        .extend(facts.into_iter().chain(hints).map(entry));
    for message in input.turn.messages {
        let last = imported.entries.last().map(|entry| entry.id.clone());
        let mut next = Entry::message(last.as_ref(), &now, message);
        next.parent_id = None;
        imported.entries.push(next);
    }
    if imported.entries.is_empty() {
        return Err(ContextError::invalid(
            "line 1",
            "there is nothing in it",
            "give a session file of Claude Code, Codex or pi, or a transcript as `ctx build` reads it",
        ));
    }
    View::fold(imported.entries.iter().cloned())?;
    Ok(imported)
}

/// The fields of a request's body, or of an input, that no entry type fits.
fn other_fields(bytes: &[u8]) -> Object {
    const TAKEN: [&str; 12] = [
        "messages",
        "tools",
        "model",
        "sessionEntries",
        "inputMessages",
        "newMessages",
        "systemPrompt",
        "sections",
        "toolSpecs",
        "runtimeInitData",
        "runtimeHints",
        "now",
    ];
    match json::parse(bytes, 1) {
        Ok(Value::Object(mut map)) if TAKEN.iter().any(|key| map.contains_key(*key)) => {
            if map.contains_key("role") || map.contains_key("payload") {
                return Object::new();
            }
            map.retain(|key, _| !TAKEN.contains(&key.as_str()));
            map
        }
        _ => Object::new(),
    }
}
