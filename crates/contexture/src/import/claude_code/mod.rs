//! Claude Code: lines in a tree, an API message over several lines, a block each.

mod blocks;

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::fields::{flag, put_back, take_object, take_text, take_time};
use super::log::{Draft, Log, Parent, compaction};
use super::parts::{extend, take_content};
use super::{Imported, Lines, Object, Source};
use crate::{Message, Payload, Role};
use blocks::{block, silence, user_pieces};

const SOURCE: Source = Source::ClaudeCode;

pub(super) fn read(lines: Lines) -> Imported {
    let first = |key: &str| lines.read.iter().find_map(|line| line.get(key)?.as_str());
    let mut extra = Object::new();
    if let Some(id) = first("sessionId") {
        extra.insert("sessionId".to_owned(), id.into());
    }
    let header = Draft::header(SOURCE, first("cwd").map(str::to_owned), extra);
    // A helper's own file is a conversation like any other.
    let main = |line: &Object| is_said(line) && !flag(line, "isSidechain");
    let mut reader = Reader {
        log: Log::new(SOURCE, header),
        messages: HashMap::new(),
        boundaries: HashMap::new(),
        has_main: lines.read.iter().any(main),
    };
    for line in lines.read {
        reader.line(line);
    }
    reader.log.finish(lines.skipped)
}

struct Reader {
    log: Log,
    /// Where each API message is, by its id and its request's.
    messages: HashMap<(String, String), usize>,
    /// What a compaction said of itself, by the place of its line.
    boundaries: HashMap<usize, Object>,
    has_main: bool,
}

/// What a line says of its place.
struct Place {
    kind: String,
    id: Option<(&'static str, String)>,
    parent: Parent,
    timestamp: String,
    aside: bool,
}

impl Place {
    fn put(self, draft: Draft) -> Draft {
        Draft {
            kind: self.kind,
            id: self.id,
            parent: self.parent,
            timestamp: self.timestamp,
            aside: self.aside,
            ..draft
        }
    }
}

impl Reader {
    fn line(&mut self, mut line: Object) {
        let name = line.get("uuid").and_then(Value::as_str);
        if name.is_some_and(|name| self.log.named(name).is_some()) {
            // Written again: what it says has its place in the tree already.
            self.log.add(Draft::custom(SOURCE, "repeated", line));
            return;
        }
        let is_said = is_said(&line);
        if let Some(prompt) = queued(&line) {
            let place = self.place(&mut line, false);
            return self.queued(place, line, prompt);
        }
        let is_boundary = line.get("subtype").is_some_and(|s| s == "compact_boundary");
        let place = self.place(&mut line, is_boundary);
        if is_boundary {
            let said = line.get("compactMetadata").and_then(Value::as_object);
            let said = said.cloned().unwrap_or_default();
            let kind = place.kind.clone();
            let position = self.log.add(place.put(Draft::custom(SOURCE, kind, line)));
            self.boundaries.insert(position, said);
        } else if !is_said {
            let kind = place.kind.clone();
            self.log.add(place.put(Draft::custom(SOURCE, kind, line)));
        } else if flag(&line, "isCompactSummary") {
            self.summary(place, line);
        } else {
            self.said(place, line);
        }
    }

    fn place(&self, line: &mut Object, is_boundary: bool) -> Place {
        let tag = line.get("type").and_then(Value::as_str).unwrap_or("line");
        let kind: String = tag.chars().take(40).collect();
        let id = take_text(line, "uuid").map(|id| ("uuid", id));
        // Where a compaction cut the tree, it names what it goes on from.
        let logical = "logicalParentUuid";
        let known = |line: &Object| self.log.named(line.get(logical)?.as_str()?);
        let parent = if is_boundary && known(line).is_some() {
            take_text(line, logical).map(|name| Parent::Named(logical, name))
        } else {
            take_text(line, "parentUuid").map(|name| Parent::Named("parentUuid", name))
        };
        let rooted = line.get("parentUuid").is_some_and(Value::is_null);
        if rooted {
            line.shift_remove("parentUuid");
        }
        let parent = parent.unwrap_or(match rooted && !is_boundary {
            true if flag(line, "isCompactSummary") => Parent::Tip,
            true => Parent::Root,
            false => Parent::Tip,
        });
        Place {
            kind,
            id,
            parent,
            timestamp: take_time(line),
            aside: self.has_main && flag(line, "isSidechain"),
        }
    }

    fn said(&mut self, place: Place, mut line: Object) {
        let inner = take_object(&mut line, "message").unwrap_or_default();
        match inner.get("role").is_some_and(|role| role == "assistant") {
            true => self.assistant(place, line, inner),
            false => self.user(place, line, inner),
        }
    }

    fn assistant(&mut self, place: Place, mut line: Object, mut inner: Object) {
        let text =
            |map: &Object, key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let request = text(&line, "requestId").unwrap_or_default();
        let key = text(&inner, "id").map(|id| (id, request));
        let (content, calls) = take_content(&mut inner, "content", block);
        if let Some(position) = self.continued(key.as_ref(), &place.parent) {
            put_back(&mut line, "message", inner);
            if let Some((field, id)) = place.id {
                self.log.name(&id, position);
                line.insert(field.to_owned(), id.into());
            }
            if let Parent::Named(field, id) = place.parent {
                line.insert(field.to_owned(), id.into());
            }
            if !place.timestamp.is_empty() && !line.contains_key("timestamp") {
                line.insert("timestamp".to_owned(), place.timestamp.into());
            }
            self.log.amend(position, &place.kind, line, |message| {
                extend(message, content, calls);
            });
            return;
        }
        inner.shift_remove("role");
        put_back(&mut line, "message", inner);
        let message = Message {
            content,
            tool_calls: calls,
            // What the tool itself said of a failed request was never a model's.
            include_in_context: !flag(&line, "isApiErrorMessage"),
            ..Message::assistant("")
        };
        let mut draft = place.put(Draft::message("", message));
        draft.rest = line;
        let position = self.log.add(draft);
        if let Some(key) = key {
            self.messages.insert(key, position);
        }
    }

    /// The message that a line goes on with: of the same id, and with nothing but results between.
    fn continued(&self, key: Option<&(String, String)>, parent: &Parent) -> Option<usize> {
        let position = *self.messages.get(key?)?;
        let above = match parent {
            Parent::Named(_, name) => self.log.named(name)?,
            Parent::Tip => self.log.tip(),
            Parent::Root | Parent::At(_) => return None,
        };
        (self.log.asked(above) == Some(position)).then_some(position)
    }

    fn user(&mut self, place: Place, mut line: Object, mut inner: Object) {
        let pieces = match inner.shift_remove("content") {
            Some(Value::Array(blocks)) => {
                let (pieces, rest) = user_pieces(blocks);
                put_back(&mut inner, "content", rest);
                pieces
            }
            Some(Value::String(text)) => vec![Message::user(text)],
            other => {
                if let Some(other) = other {
                    inner.insert("content".to_owned(), other);
                }
                vec![silence()]
            }
        };
        // What a tool gave back is no user's for us.
        if pieces.first().is_some_and(|m| m.role == Role::User) {
            inner.shift_remove("role");
        }
        put_back(&mut line, "message", inner);
        let name = place.id.as_ref().map(|(_, id)| id.clone());
        let (kind, timestamp, aside) = (place.kind.clone(), place.timestamp.clone(), place.aside);
        let mut first = Some((place, line));
        let mut last = self.log.tip();
        for message in pieces {
            let mut draft = Draft::message(kind.clone(), message);
            if let Some((place, line)) = first.take() {
                draft = place.put(draft);
                draft.rest = line;
            } else {
                draft.timestamp.clone_from(&timestamp);
                draft.parent = Parent::At(last);
                draft.aside = aside;
            }
            last = self.log.add(draft);
        }
        if let Some(name) = name {
            self.log.name(&name, last);
        }
    }

    /// What the user said while the model worked: no line of theirs has it.
    fn queued(&mut self, place: Place, mut line: Object, prompt: Value) {
        let inner = Object::from_iter([("content".to_owned(), prompt)]);
        if let Some(mut attachment) = take_object(&mut line, "attachment") {
            attachment.shift_remove("prompt");
            put_back(&mut line, "attachment", attachment);
        }
        self.user(place, line, inner);
    }

    /// What a compaction leaves: a summary in the place of all before it but what it kept.
    fn summary(&mut self, place: Place, mut line: Object) {
        let mut inner = take_object(&mut line, "message").unwrap_or_default();
        let text = match inner.get("content") {
            Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
            _ => {
                line.insert("message".to_owned(), inner.into());
                return self.said_again(place, line);
            }
        };
        inner.shift_remove("content");
        put_back(&mut line, "message", inner);
        let boundary = match &place.parent {
            Parent::Named(_, name) => self.log.named(name),
            _ => None,
        };
        let said = boundary.and_then(|p| self.boundaries.get(&p));
        let tokens = |key: &str| said.and_then(|said| said.get(key)?.as_u64());
        let mut compaction = compaction(text, tokens("preTokens"), tokens("postTokens"));
        let at = |keys: [&str; 2]| said.and_then(|said| said.get(keys[0])?.get(keys[1]));
        let position = |name: &Value| self.log.named(name.as_str()?);
        let mut first_kept = None;
        if let Some(Value::Array(names)) = at(["preservedMessages", "uuids"]) {
            // A message of several lines has several names.
            let kept: BTreeSet<usize> = names.iter().filter_map(position).collect();
            compaction.kept_entry_ids = kept.into_iter().map(|p| self.log.id(p)).collect();
        } else {
            first_kept = at(["preservedSegment", "headUuid"]).and_then(position);
        }
        let mut draft = place.put(Draft::new("", Payload::Custom(Object::new())));
        draft.rest = line;
        self.log.compact(draft, compaction, first_kept);
    }

    /// A summary in blocks stays a message, as it was sent; what stood before it is dropped.
    fn said_again(&mut self, place: Place, mut line: Object) {
        if place.aside {
            return self.said(place, line);
        }
        let mut dropped = Draft::new("compaction", Payload::Custom(Object::new()));
        if let Parent::Named(field, name) = &place.parent {
            dropped.parent = Parent::Named(field, name.clone());
            line.insert((*field).to_owned(), name.clone().into());
        }
        self.log
            .compact(dropped, compaction(String::new(), None, None), None);
        let parent = Parent::Tip;
        self.said(Place { parent, ..place }, line);
    }
}

/// Whether the line is a message.
fn is_said(line: &Object) -> bool {
    let tag = line.get("type").and_then(Value::as_str);
    let role = line.get("message").and_then(|message| message.get("role"));
    matches!(tag, Some("user" | "assistant"))
        && role.is_some_and(|role| role == "user" || role == "assistant")
}

/// What was asked while the model worked, in a line that carries it.
fn queued(line: &Object) -> Option<Value> {
    let attachment = line.get("attachment")?;
    let prompt = attachment.get("prompt")?;
    let asks = attachment
        .get("type")
        .is_some_and(|tag| tag == "queued_command");
    (asks && (prompt.is_string() || prompt.is_array())).then(|| prompt.clone())
}
