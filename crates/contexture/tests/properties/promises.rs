//! What must hold of every request, worked out from its body, its receipt and the log.

use std::collections::HashMap;

use contexture::build::{Built, ItemReceipt, Receipt, Rule, Wire};
use contexture::message::openai;
use contexture::prompt::Stability;
use contexture::{Content, ContextError, Entry, Message, Part, Payload, Role, View};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::common;
use crate::properties::history::{How, TurnSeed};
use crate::properties::{anthropic, responses};

/// A request, taken out of its session.
#[derive(Clone)]
pub struct Request {
    pub body: Vec<u8>,
    pub digest: String,
    pub receipt: Receipt,
    pub messages: Vec<Message>,
    pub shown: Vec<Value>,
    pub tools: Vec<Value>,
    pub appended: Vec<Entry>,
    pub tokens: usize,
    pub made_room: bool,
}

impl From<Built<'_>> for Request {
    fn from(built: Built<'_>) -> Self {
        let stats = built.stats();
        let messages: Vec<Message> = built.messages().cloned().collect();
        assert_eq!(stats.message_count, messages.len());
        Self {
            body: built.body().to_vec(),
            digest: built.digest().to_owned(),
            receipt: built.receipt(),
            shown: messages.iter().map(openai::shown).collect(),
            messages,
            tools: built.tools().to_vec(),
            appended: built.entries_to_append().cloned().collect(),
            tokens: stats.input_tokens,
            made_room: built.made_room(),
        }
    }
}

/// Holds a request against every promise. `last` is the one that was recorded before it.
pub fn check_request(
    how: &How,
    view: &View,
    request: &Request,
    seed: &TurnSeed,
    last: Option<&Request>,
) {
    check_limits(how, view, request);
    check_digest(request);
    match how.wire {
        Wire::OpenAi => {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            common::check_pairs("story", body["messages"].as_array().unwrap());
        }
        Wire::Anthropic => anthropic::check_body(&request.body),
        Wire::Responses => responses::check_body(&request.body),
    }
    check_account(how, view, request);
    check_pins(view, request);
    check_injections(view, request);
    check_hidden(view, request);
    check_prefix(request, last);
    check_input(request, seed);
}

/// The only error that a valid log can lead to.
pub fn check_error(how: &How, error: &ContextError) {
    let ContextError::Overflow(overflow) = error else {
        panic!("{error}");
    };
    assert!(overflow.needed > overflow.limit, "{overflow}");
    let parts: usize = overflow.parts.iter().map(|(_, size)| size).sum();
    // What a provider counted stands for the parts that it counted.
    assert!(parts == overflow.needed || !how.exact, "{overflow}");
}

/// Never over: by a count of its own.
fn check_limits(how: &How, view: &View, request: &Request) {
    let config = &how.config;
    let budget = &request.receipt.budget;
    let limit = config.max_input_tokens - config.reserved_output;
    assert!(budget.used <= limit, "{} of {limit}", budget.used);
    assert_eq!(budget.used, request.tokens);
    assert_eq!(
        budget.used + budget.free + budget.reserved,
        config.max_input_tokens
    );
    assert!(config.max_bytes.is_none_or(|max| request.body.len() <= max));
    let of_history = |item: &&ItemReceipt| {
        let id = item.origin.strip_prefix("entry:").unwrap_or_default();
        let entry = view.log().iter().find(|entry| entry.id.as_str() == id);
        let is_said = entry.is_some_and(|entry| {
            matches!(
                entry.payload,
                Payload::Message { .. } | Payload::Injection(_)
            )
        });
        is_said && item.rule != Rule::Repaired && !matches!(item.role, "system" | "developer")
    };
    let counted = request.receipt.items.iter().filter(of_history).count();
    assert!(counted <= config.max_history_messages.unwrap_or(usize::MAX));
    if how.exact && how.wire == Wire::OpenAi {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let counted = common::count_body(&body);
        if request.messages.iter().all(is_text) {
            assert_eq!(counted, budget.used);
        } else {
            assert!(counted <= budget.used, "{counted} > {}", budget.used);
        }
    }
}

fn is_text(message: &Message) -> bool {
    match &message.content {
        Content::Parts(parts) => parts.iter().all(|p| matches!(p, Part::Text { .. })),
        Content::Null | Content::Text(_) => true,
    }
}

fn check_digest(request: &Request) {
    let hash = Sha256::digest(&request.body);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(request.digest, format!("sha256:{hex}"));
    assert_eq!(request.digest, request.receipt.digest);
}

/// Nothing hidden: each piece of content is an item or left out, once, and the prices add up.
fn check_account(how: &How, view: &View, request: &Request) {
    let Receipt {
        items,
        tools,
        excluded,
        budget,
        ..
    } = &request.receipt;
    let mut index = 0;
    for (at, item) in items.iter().enumerate() {
        let section = item.origin.starts_with("section:");
        assert!(item.index == index || (section && at > 0 && item.index + 1 == index));
        index = item.index + 1;
        assert_eq!(item.role, request.messages[item.index].role.as_str());
        if let Some(position) = item.position {
            assert_eq!(item.origin, format!("entry:{}", view.log()[position].id));
        }
    }
    assert_eq!(index, request.messages.len());
    assert_eq!(tools.len(), request.tools.len());
    let item_tokens: usize = items.iter().map(|item| item.tokens).sum();
    let tool_tokens: usize = tools.iter().map(|tool| tool.tokens).sum();
    assert_eq!(
        budget.frame + item_tokens + tool_tokens,
        budget.used,
        "{item_tokens} for items, {tool_tokens} for tools"
    );
    if how.exact {
        assert_eq!(budget.frame, 3);
    }
    let mut seen: HashMap<usize, usize> = HashMap::new();
    let shown = items.iter().filter_map(|item| item.position);
    for position in shown.chain(excluded.iter().map(|out| out.position)) {
        *seen.entry(position).or_default() += 1;
    }
    let mut repeated: HashMap<usize, usize> = HashMap::new();
    for &position in view.duplicates() {
        *repeated.entry(position).or_default() += 1;
    }
    for (position, entry) in view.log().iter().enumerate() {
        let times = seen.get(&position).copied().unwrap_or_default();
        let again = repeated.get(&position).copied().unwrap_or_default();
        if is_content(&entry.payload) {
            assert_eq!(times, 1 + again, "entry {position}: {:?}", entry.payload);
        } else {
            assert!(times <= 1 + again, "entry {position}: {:?}", entry.payload);
        }
    }
    let made = |rule: Rule| {
        items
            .iter()
            .filter(|item| item.rule == rule && item.position.is_none())
            .count()
    };
    let answers = request
        .messages
        .iter()
        .filter(|m| m.role == Role::Tool && m.text() == "[no result: the call was interrupted]");
    assert!(made(Rule::Repaired) <= answers.count());
    for out in excluded {
        let kept = [
            Rule::Kept,
            Rule::Pinned,
            Rule::Truncated,
            Rule::Masked,
            Rule::Summary,
            Rule::Repaired,
        ];
        assert!(!kept.contains(&out.rule), "{out:?}");
    }
}

/// Whether the entry says something to a model by itself.
fn is_content(payload: &Payload) -> bool {
    match payload {
        Payload::Message { .. }
        | Payload::Injection(_)
        | Payload::BranchSummary(_)
        | Payload::Hints { .. }
        | Payload::RuntimeInit { .. } => true,
        Payload::CompactionSummary(compaction) => !compaction.summary.is_empty(),
        Payload::Sections { sections } => sections
            .iter()
            .any(|s| s.stability == Stability::Volatile && !s.text.trim().is_empty()),
        _ => false,
    }
}

/// Nothing that a tool says or injects reaches the model unseen.
fn check_hidden(view: &View, request: &Request) {
    let hides = |text: &str| {
        let tags = '\u{e0000}'..='\u{e007f}';
        let turns = "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        text.contains(|c| tags.contains(&c) || turns.contains(c) || "\u{200b}\u{2060}".contains(c))
    };
    for item in &request.receipt.items {
        let message = &request.messages[item.index];
        let entry = item.position.map(|position| &view.log()[position].payload);
        let injected = matches!(entry, Some(Payload::Injection(_)));
        if message.role == Role::Tool || injected {
            assert!(!hides(&message.text()), "{message:?}");
        } else {
            assert_eq!(item.hidden, 0);
        }
    }
    for (tool, receipt) in request.tools.iter().zip(&request.receipt.tools) {
        assert!(!hides(&tool.to_string()), "{tool}");
        assert_eq!(receipt.hidden > 0, tool.to_string().contains('⟨'));
    }
}

/// An injection stands right before the message that it names, system first, where the log has
/// nothing that could have taken that message away.
fn check_injections(view: &View, request: &Request) {
    let log = view.log();
    let covers = |e: &Entry| matches!(e.payload, Payload::CompactionSummary(_));
    if !only_grows(view) || log.iter().any(|entry| covers(entry)) {
        return;
    }
    let items = &request.receipt.items;
    let positions: Vec<Option<usize>> = items.iter().map(|item| item.position).collect();
    for (at, item) in items.iter().enumerate() {
        let injected = |position: Option<usize>| match &log[position?].payload {
            Payload::Injection(injection) => Some(injection),
            _ => None,
        };
        let Some(injection) = injected(item.position) else {
            continue;
        };
        let anchor = injection.before_entry_id.as_ref();
        let Some(anchor) = anchor.and_then(|id| view.position(id)) else {
            continue;
        };
        let own = item.position.unwrap();
        let shown = positions.iter().position(|p| *p == Some(anchor));
        let Some(shown) = shown.filter(|_| anchor < own) else {
            continue;
        };
        let mut facts = 0;
        let leads = log[..=anchor].iter().all(|e| match &e.payload {
            Payload::Message { message } => message.role.is_system(),
            // The first facts stand at the front, behind the stored system prompt.
            Payload::RuntimeInit { .. } => {
                facts += 1;
                facts == 1
            }
            payload => !is_content(payload),
        });
        match &log[anchor].payload {
            Payload::Message { message } if message.role != Role::Tool && !leads => {}
            _ => continue,
        }
        assert!(at < shown, "injection {own} is behind message {anchor}");
        let mut before = (injection.role.is_system(), own);
        for next in &positions[at + 1..shown] {
            let beside = injected(*next).expect("only injections stand between");
            assert_eq!(beside.before_entry_id, injection.before_entry_id);
            let here = (beside.role.is_system(), next.unwrap());
            assert!(here.0 == before.0 && here.1 > before.1 || before.0 && !here.0);
            before = here;
        }
    }
}

/// Pinned stays, verbatim. Which entries are pinned is worked out here, where the log only grows.
fn check_pins(view: &View, request: &Request) {
    if !only_grows(view) {
        return;
    }
    let log = view.log();
    let mut pinned = HashMap::new();
    for (at, entry) in log.iter().enumerate() {
        match &entry.payload {
            Payload::Message { message } => {
                pinned.insert(at, message.pin);
            }
            Payload::Pin(target) => {
                pinned.insert(view.position(&target.entry_id).unwrap(), true);
            }
            Payload::Unpin(target) => {
                pinned.insert(view.position(&target.entry_id).unwrap(), false);
            }
            _ => {}
        }
    }
    let pinned = pinned.into_iter().filter_map(|(at, pin)| pin.then_some(at));
    for position in pinned {
        let Payload::Message { message } = &log[position].payload else {
            continue;
        };
        let Receipt {
            items, excluded, ..
        } = &request.receipt;
        match items.iter().find(|item| item.position == Some(position)) {
            Some(item) if item.rule == Rule::Redacted => {}
            Some(item) => {
                let shown = &request.messages[item.index];
                assert_eq!(shown.role, message.role);
                // Calls may have been repaired, and with them a blank text beside them.
                if item.hidden == 0 && (message.tool_calls.is_empty() || item.rule == Rule::Pinned)
                {
                    assert_eq!(shown.content, message.content, "pin {position}");
                    assert_eq!(shown.tool_calls, message.tool_calls, "pin {position}");
                }
                assert!(
                    matches!(item.rule, Rule::Pinned | Rule::Repaired),
                    "pin {position}: {item:?}"
                );
            }
            None => {
                let out = excluded
                    .iter()
                    .find(|out| out.position == position)
                    .unwrap();
                let excused = match out.rule {
                    Rule::Orphan => message.role == Role::Tool,
                    Rule::Duplicate => message.role == Role::Tool || !message.tool_calls.is_empty(),
                    Rule::Empty => message.is_empty(),
                    Rule::Filtered => !message.include_in_context,
                    Rule::Redacted => true,
                    _ => false,
                };
                assert!(excused, "pin {position} is gone: {out:?} {message:?}");
            }
        }
    }
}

/// Whether nothing was undone and nothing is on another branch.
fn only_grows(view: &View) -> bool {
    let log = view.log();
    let mut entries = log.iter().enumerate();
    entries.all(|(at, entry)| match (&entry.payload, &entry.parent_id) {
        (Payload::Revert(_), _) => false,
        (_, Some(parent)) => at == 0 || log[at - 1].id == *parent,
        (_, None) => true,
    })
}

/// What is shared with the last request, found by comparing the two.
fn check_prefix(request: &Request, last: Option<&Request>) {
    let same_tools = last.is_some_and(|last| last.tools == request.tools);
    let cache = &request.receipt.cache;
    let Some(last) = last.filter(|_| same_tools) else {
        assert_eq!(cache.shared_prefix_tokens, 0);
        return;
    };
    let both = request.shown.iter().zip(&last.shown);
    let same = both.take_while(|(a, b)| a == b).count();
    let items = request.receipt.items.iter();
    let tools = request.receipt.tools.iter();
    let shared = request.receipt.budget.frame
        + tools.map(|tool| tool.tokens).sum::<usize>()
        + items
            .filter(|item| item.index < same)
            .map(|item| item.tokens)
            .sum::<usize>();
    assert_eq!(cache.shared_prefix_tokens, shared, "{same} messages");
    let grew = same == last.shown.len();
    assert_eq!(cache.first_change.is_none(), grew, "{cache:?}");
}

/// What the user just said is in the request.
fn check_input(request: &Request, seed: &TurnSeed) {
    let user = seed.messages.iter().rev().find(|m| m.role == Role::User);
    if let Some(user) = user.filter(|m| m.include_in_context && !m.is_empty()) {
        let wanted = openai::shown(user);
        assert!(request.shown.contains(&wanted), "the input is not there");
    }
}
