//! Step 1: from the history in effect to messages that every provider takes.
//!
//! Calls and results are paired by position, because real logs reuse call ids. An unanswered call
//! gets a stable `aborted` result; a result that comes late moves to its call; one without a call is
//! left out, with a reason. Nothing here looks at the budget.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::dedupe;
use super::fit;
use super::item::{Item, Kind, Piece, Pricing, Rule, Shown, Source};
use super::marks;
use crate::entry::{Live, Payload};
use crate::message::legal;
use crate::prompt::{self, Stability, Template};
use crate::text::hidden::reveal;
use crate::text::unclosed;
use crate::{Content, ContextError, Entry, Message, Role, ToolCall, View, Wire, json};

/// The items of a request, in order, grown one entry at a time.
#[derive(Default)]
pub(crate) struct Weave {
    pub items: Vec<Item>,
    /// What was seen and left out, by log position.
    pub excluded: Vec<(usize, Rule)>,
    /// What changed since the caller last looked, other than by appending.
    pub touched: Option<Touched>,
    pub tokens: usize,
    pub bytes: usize,
    /// How many items count toward the message limit.
    pub counted: usize,
    groups: Vec<Group>,
    /// Whether the items end with the last group, and its open calls have no placeholders yet.
    growing: bool,
    /// Unanswered calls by id: the groups that wait for them, the latest last.
    pending: HashMap<String, Vec<usize>>,
    units: usize,
}

/// A late result: the item at `at` came, and one that stood right before item `gone + 1` went.
pub(crate) struct Touched {
    pub at: usize,
    pub gone: usize,
    pub piece: Arc<Piece>,
}

/// A call message and the results that follow it.
struct Group {
    start: usize,
    answered: usize,
    /// Calls that wait, in order: their ids stand in the placeholders after the results.
    waiting: Vec<String>,
    log_position: usize,
}

/// Pieces that were priced before, so that weaving anew counts nothing twice.
pub(crate) type Pieces = HashMap<(usize, Variant), (Arc<Piece>, Rule)>;

/// How an entry is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Variant {
    Plain,
    Redacted,
    Mask(Option<usize>),
}

impl Weave {
    /// The items of the whole view.
    pub(crate) fn of(
        view: &View,
        pricing: &Pricing,
        pieces: &mut Pieces,
    ) -> Result<Self, ContextError> {
        let mut weave = Self::default();
        if !view.sections().is_empty() {
            let text = super::join_sections(view.sections());
            let piece = pricing.piece(Message::system(text));
            weave.push_item(piece, Source::Sections, Rule::Kept, Kind::System, false);
        }
        let mut live = view.live(0).peekable();
        // The stored system prompt comes before the runtime facts, the conversation after them.
        while let Some(next) = live.next_if(|l| l.leads) {
            weave.push(view, next, pricing, pieces)?;
        }
        if let Some(position) = view.first_runtime_init() {
            let entry = &view.log()[position];
            if view.is_redacted(position) {
                weave.excluded.push((position, Rule::Redacted));
            } else if let Some(piece) = weave.shown(view, entry, position, pricing, pieces)? {
                let source = Source::Entry(position);
                weave.push_item(piece, source, Rule::Kept, Kind::System, false);
            } else {
                weave.excluded.push((position, Rule::Empty));
            }
        }
        for next in live {
            weave.push(view, next, pricing, pieces)?;
        }
        weave.settle(pricing);
        weave.touched = None;
        Ok(weave)
    }

    /// Adds the next piece of content.
    pub(crate) fn push(
        &mut self,
        view: &View,
        live: Live<'_>,
        pricing: &Pricing,
        pieces: &mut Pieces,
    ) -> Result<(), ContextError> {
        let Live {
            position,
            entry,
            pinned,
            redacted,
            ..
        } = live;
        if !self.goes_on(entry) {
            self.settle(pricing);
        }
        match &entry.payload {
            Payload::Message { message } => {
                self.push_message(view, live, message, pricing, pieces);
                Ok(())
            }
            _ if redacted => {
                self.excluded.push((position, Rule::Redacted));
                Ok(())
            }
            Payload::CompactionSummary(_) if view.is_withheld(position) => {
                self.excluded.push((position, Rule::Redacted));
                Ok(())
            }
            payload => {
                let Some(piece) = self.shown(view, entry, position, pricing, pieces)? else {
                    self.excluded.push((position, Rule::Empty));
                    return Ok(());
                };
                let (kind, rule) = match payload {
                    Payload::CompactionSummary(_) | Payload::BranchSummary(_) => {
                        (Kind::Summary, Rule::Summary)
                    }
                    _ => (Kind::of(&piece.message), Rule::Kept),
                };
                let rule = if pinned { Rule::Pinned } else { rule };
                self.push_item(piece, Source::Entry(position), rule, kind, pinned);
                Ok(())
            }
        }
    }

    /// The piece for an entry that is no message; nothing when it has nothing to say.
    fn shown(
        &mut self,
        view: &View,
        entry: &Entry,
        position: usize,
        pricing: &Pricing,
        pieces: &mut Pieces,
    ) -> Result<Option<Arc<Piece>>, ContextError> {
        if let Some((piece, _)) = pieces.get(&(position, Variant::Plain)) {
            return Ok(Some(Arc::clone(piece)));
        }
        let mut hidden = 0;
        let message = match &entry.payload {
            Payload::Injection(injection) => {
                let seen = reveal(&injection.content).filter(|_| pricing.reveals);
                let content = match seen {
                    Some((content, found)) => {
                        hidden = found;
                        content
                    }
                    None => injection.content.clone(),
                };
                Message::new(injection.role, content)
            }
            Payload::CompactionSummary(compaction) => summary(&compaction.summary)?,
            Payload::BranchSummary(branch) => Message::user(Template::BranchSummary.render(
                serde_json::json!({ "summary": unclosed(&branch.summary, "branch-summary") }),
            )?),
            Payload::RuntimeInit { data } => Message::system(prompt::runtime::init(data)?),
            Payload::Hints { data } => Message::system(prompt::runtime::hints(data)?),
            Payload::Sections { sections } => Message::system(
                sections
                    .iter()
                    .filter(|s| s.stability == Stability::Volatile && !s.is_blank())
                    .map(|s| s.text.as_str())
                    .collect::<Vec<_>>()
                    .join(prompt::SEPARATOR),
            ),
            _ => return Ok(None),
        };
        debug_assert!(position < view.log().len());
        if message.is_empty() {
            return Ok(None);
        }
        let piece = pricing.priced(Shown::Made(message), hidden);
        pieces.insert((position, Variant::Plain), (Arc::clone(&piece), Rule::Kept));
        Ok(Some(piece))
    }

    fn push_message(
        &mut self,
        view: &View,
        live: Live<'_>,
        message: &Message,
        pricing: &Pricing,
        pieces: &mut Pieces,
    ) {
        let Live {
            position,
            redacted,
            leads,
            ..
        } = live;
        let out = if !message.include_in_context {
            Some(Rule::Filtered)
        } else if leads && !live.pinned && !view.sections().is_empty() {
            // What the caller gives as the system side overrides what was stored.
            Some(Rule::Filtered)
        } else if redacted && message.role != Role::Tool {
            Some(Rule::Redacted)
        } else if message.role != Role::Tool && message.is_empty() {
            Some(Rule::Empty)
        } else if dedupe::repeats_call(self.items.as_slice(), message) {
            Some(Rule::Duplicate)
        } else {
            None
        };
        if let Some(rule) = out {
            self.excluded.push((position, rule));
            return;
        }
        if message.role == Role::Tool {
            self.push_result(live, message, pricing, pieces);
            return;
        }
        let (piece, rule) = piece_of(live, message, pricing, pieces);
        let kind = if leads {
            Kind::System
        } else {
            Kind::of(message)
        };
        self.push_item(piece, Source::Entry(position), rule, kind, live.pinned);
        if kind == Kind::Call {
            self.open_group(position);
        }
    }

    fn open_group(&mut self, position: usize) {
        let start = self.items.len() - 1;
        let calls = &self.items[start].piece.message.tool_calls;
        let waiting: Vec<String> = calls.iter().map(|c| c.id.clone()).collect();
        for id in &waiting {
            self.pending
                .entry(id.clone())
                .or_default()
                .push(self.groups.len());
        }
        self.groups.push(Group {
            start,
            answered: 0,
            waiting,
            log_position: position,
        });
        self.growing = true;
    }

    /// Whether the entry is a result for the group that the items end with.
    fn goes_on(&self, entry: &Entry) -> bool {
        let Payload::Message { message } = &entry.payload else {
            return false;
        };
        let last = self.groups.len().checked_sub(1);
        message.role == Role::Tool
            && self
                .answers(message)
                .is_some_and(|(group, _)| Some(group) == last)
    }

    /// Gives every open call an answer: placeholders, which results that come later replace.
    ///
    /// Not before something else follows or the items are looked at: most results come at once.
    pub(crate) fn settle(&mut self, pricing: &Pricing) {
        if !std::mem::take(&mut self.growing) {
            return;
        }
        let Some(group) = self.groups.last() else {
            return;
        };
        let source = Source::Aborted(group.log_position);
        for id in group.waiting.clone() {
            let piece = pricing.piece(Message::tool_result(id, marks::ABORTED));
            self.push_item(piece, source, Rule::Repaired, Kind::Result, false);
        }
    }

    fn push_result(
        &mut self,
        live: Live<'_>,
        message: &Message,
        pricing: &Pricing,
        pieces: &mut Pieces,
    ) {
        let position = live.position;
        let Some((group, slot)) = self.answers(message) else {
            let known = message
                .tool_call_id
                .as_ref()
                .is_some_and(|id| self.answered_before(id));
            let rule = if known { Rule::Duplicate } else { Rule::Orphan };
            self.excluded.push((position, rule));
            return;
        };
        let Group {
            start, answered, ..
        } = self.groups[group];
        let id = self.groups[group].waiting.remove(slot);
        self.groups[group].answered += 1;
        if let Some(waiting) = self.pending.get_mut(&id) {
            if let Some(at) = waiting.iter().rposition(|&g| g == group) {
                waiting.remove(at);
            }
            if waiting.is_empty() {
                self.pending.remove(&id);
            }
        }
        let in_place = start + 1 + answered;
        let placeholder = in_place + slot;
        let group_end = in_place + 1 + self.groups[group].waiting.len();
        let late = !self.growing && self.items.len() > group_end;
        let (piece, mut rule) = if message.tool_call_id.as_deref() == Some(id.as_str()) {
            piece_of(live, message, pricing, pieces)
        } else {
            // A result without an id answers the first call that waits.
            let named = Message {
                tool_call_id: Some(id),
                tool_calls: Vec::new(),
                ..message.clone()
            };
            let (named, hidden) = pricing.revealed(&named).unwrap_or((named, 0));
            let (shown, rule) = fit::shown(&named, live, live.entry.id.as_str());
            let shown = Shown::Made(shown.into_owned());
            let piece = pricing.priced(shown, left(hidden, rule));
            let rule = match rule {
                Rule::Kept => Rule::Repaired,
                other => other,
            };
            (piece, rule)
        };
        if late && rule == Rule::Kept {
            rule = Rule::Repaired;
        }
        let unit = self.items[start].unit;
        let item = Item {
            piece,
            source: Source::Entry(position),
            rule,
            kind: Kind::Result,
            unit,
            pinned: live.pinned,
        };
        self.tokens += item.piece.tokens;
        self.bytes += item.piece.bytes;
        self.counted += item.counted();
        if self.growing {
            self.items.push(item);
            return;
        }
        let removed = self.items.remove(placeholder);
        self.tokens -= removed.piece.tokens;
        self.bytes -= removed.piece.bytes;
        self.counted -= removed.counted();
        self.items.insert(in_place, item);
        self.touched = Some(Touched {
            at: in_place,
            gone: placeholder,
            piece: removed.piece,
        });
    }

    /// The group that this result answers, and which of its waiting calls.
    fn answers(&self, message: &Message) -> Option<(usize, usize)> {
        // Some servers give every call an empty id, and its result the same.
        match message.tool_call_id.as_ref().filter(|id| !id.is_empty()) {
            Some(id) => {
                let group = *self.pending.get(id)?.last()?;
                let slot = self.groups[group].waiting.iter().position(|w| w == id)?;
                Some((group, slot))
            }
            None => {
                let group = self.groups.len().checked_sub(1)?;
                (!self.groups[group].waiting.is_empty()).then_some((group, 0))
            }
        }
    }

    /// Whether the last group had a call of that id, and has its answer.
    fn answered_before(&self, id: &str) -> bool {
        self.groups.last().is_some_and(|group| {
            let calls = &self.items[group.start].piece.message.tool_calls;
            debug_assert_eq!(self.items[group.start].position(), Some(group.log_position));
            calls.iter().any(|call| call.id == id)
        })
    }

    fn push_item(
        &mut self,
        piece: Arc<Piece>,
        source: Source,
        rule: Rule,
        kind: Kind,
        pinned: bool,
    ) {
        if kind != Kind::Result {
            self.units += 1;
        }
        self.tokens += piece.tokens;
        self.bytes += piece.bytes;
        let item = Item {
            piece,
            source,
            rule,
            kind,
            unit: self.units,
            pinned,
        };
        self.counted += item.counted();
        self.items.push(item);
    }
}

/// A summary as it is shown: a record that the user hands over, which nothing in it can end.
pub(crate) fn summary(text: &str) -> Result<Message, ContextError> {
    let data = serde_json::json!({ "summary": unclosed(text, "summary") });
    Ok(Message::user(Template::Summary.render(data)?))
}

/// A message as it is shown: repaired, masked, cut or redacted, and priced once.
fn piece_of(
    live: Live<'_>,
    message: &Message,
    pricing: &Pricing,
    pieces: &mut Pieces,
) -> (Arc<Piece>, Rule) {
    let variant = match (live.redacted, live.mask) {
        (true, _) => Variant::Redacted,
        (false, Some(keep)) => Variant::Mask(keep),
        (false, None) => Variant::Plain,
    };
    let (piece, rule) = match pieces.get(&(live.position, variant)) {
        Some((piece, rule)) => (Arc::clone(piece), *rule),
        None => {
            let repaired = repaired(message, live.entry.id.as_str(), pricing.wire);
            let sound = repaired.is_none();
            let whole = repaired.as_ref().unwrap_or(message);
            let revealed = pricing.revealed(whole);
            let hidden = revealed.as_ref().map_or(0, |(_, hidden)| *hidden);
            let whole = revealed.as_ref().map_or(whole, |(seen, _)| seen);
            let (shown, rule) = fit::shown(whole, live, live.entry.id.as_str());
            let hidden = left(hidden, rule);
            let rule = if rule == Rule::Kept && !sound {
                Rule::Repaired
            } else {
                rule
            };
            let made = match shown {
                Cow::Owned(made) => Some(made),
                Cow::Borrowed(_) => None,
            };
            let made = made.or(revealed.map(|(seen, _)| seen)).or(repaired);
            let logged = || Shown::Logged(Arc::clone(live.entry));
            let piece = pricing.priced(made.map_or_else(logged, Shown::Made), hidden);
            pieces.insert((live.position, variant), (Arc::clone(&piece), rule));
            (piece, rule)
        }
    };
    let rule = if live.pinned && rule == Rule::Kept {
        Rule::Pinned
    } else {
        rule
    };
    (piece, rule)
}

/// How much of what was hidden is there to be seen.
fn left(hidden: usize, rule: Rule) -> usize {
    match rule {
        Rule::Masked | Rule::Redacted => 0,
        _ => hidden,
    }
}

/// The message as its form takes it; nothing when it is sound already.
fn repaired(message: &Message, entry: &str, wire: Wire) -> Option<Message> {
    let sound = repaired_calls(message, entry);
    match wire {
        Wire::OpenAi => named(sound.as_ref().unwrap_or(message)).or(sound),
        // They see to names as they write.
        Wire::Anthropic | Wire::Responses => sound,
    }
}

/// The longest name of a tool in the chat form.
const NAME_MAX: usize = 64;

/// The message with calls of names that a tool can have: a model may call one by any name.
fn named(message: &Message) -> Option<Message> {
    let is_legal = |call: &ToolCall| legal(&call.name, NAME_MAX) == call.name;
    if message.tool_calls.iter().all(is_legal) {
        return None;
    }
    let mut named = message.clone();
    for call in &mut named.tool_calls {
        call.name = legal(&call.name, NAME_MAX);
    }
    Some(named)
}

/// The message with calls that every provider takes; nothing when they are sound already.
///
/// A call's arguments must be a JSON object. What is none is wrapped into one, under a name that
/// says what happened, so that nothing of it is lost. Calls of anyone but an assistant are no calls.
fn repaired_calls(message: &Message, entry: &str) -> Option<Message> {
    let calls = message.role == Role::Assistant;
    let sound = |call: &ToolCall| {
        calls && !call.id.is_empty() && (call.is_custom() || is_object(&call.arguments))
    };
    if message.tool_calls.iter().all(sound) {
        return None;
    }
    let mut repaired = message.clone();
    if !calls {
        repaired.tool_calls.clear();
    }
    for (i, call) in repaired.tool_calls.iter_mut().enumerate() {
        if call.id.is_empty() {
            call.id = format!("call_{}_{i}", entry.chars().take(8).collect::<String>());
        }
        if call.is_custom() {
            continue;
        }
        if call.arguments.trim().is_empty() {
            call.arguments = "{}".to_owned();
        } else if !is_object(&call.arguments) {
            call.arguments = serde_json::json!({ "_invalid": call.arguments }).to_string();
        }
    }
    if let Content::Text(text) = &repaired.content
        && text.is_empty()
    {
        repaired.content = Content::Null;
    }
    Some(repaired)
}

/// By reading it, not by skipping over it: a skipped string may hold half a surrogate pair, and a
/// skipped number may be too large for anyone to read.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && json::from_text::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
}
