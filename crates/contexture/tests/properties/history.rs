//! Random histories of every entry type, broken ones among them, and random ways to build them.
//!
//! An [`Op`] becomes an entry only when it is its turn, because what it points at (a pin's target, a
//! revert's) is chosen among what the log has by then, the build's own entries included.

use std::sync::Arc;

use contexture::build::{Extract, Settings, Turn, Wire};
use contexture::entry::{
    BranchSummary, Compaction, Injection, Mask, RequestRecord, SessionHeader, Target, ToolDelta,
};
use contexture::prompt::{Section, Stability};
use contexture::tokens::{Bpe, Estimate, Tokenizer};
use contexture::{
    Content, ContextConfig, Entry, EntryId, Message, Part, Payload, Role, ToolCall, View,
};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// What requests that a story logs by itself have for a digest.
pub const DIGEST: &str = "sha256:0";

/// Something that happens to a log.
#[derive(Debug, Clone)]
pub enum Op {
    Message(Message),
    /// A result for each call of the last call message, in their order.
    Answer(String),
    /// A message that follows an earlier entry: a branch.
    Branch(Index, String),
    Pin(Index),
    Unpin(Index),
    Redact(Index),
    /// Undoes what can be undone, at or before the entry.
    Revert(Index),
    Mask(Vec<Index>, Option<usize>),
    /// A compaction that some other program wrote.
    Compact(Index, Index, String),
    /// The same entry once more.
    Repeat(Index),
    /// An injection that stands before another entry.
    Inject(Injection, Anchor),
    Entry(Payload),
}

/// What an injection stands before.
#[derive(Debug, Clone)]
pub enum Anchor {
    /// The last user's message that is not behind this entry.
    User(Index),
    /// Whatever is there, shown or not.
    Any(Index),
    /// What comes only later, if at all.
    Later(usize),
}

/// What a test does: entries are logged, a turn is built, and again.
#[derive(Debug, Clone)]
pub struct Story {
    pub steps: Vec<(Vec<Op>, TurnSeed)>,
}

#[derive(Debug, Clone)]
pub struct TurnSeed {
    pub sections: Option<Vec<Section>>,
    pub tools: Option<Vec<Value>>,
    pub runtime_init: Option<Map<String, Value>>,
    pub hints: Option<Map<String, Value>>,
    pub messages: Vec<Message>,
    pub overflow: bool,
    /// What the provider says that it counted, in per cent of our count.
    pub reported: Option<usize>,
}

impl TurnSeed {
    pub fn turn(&self) -> Turn {
        Turn {
            sections: self.sections.clone(),
            tools: self.tools.clone(),
            runtime_init: self.runtime_init.clone(),
            hints: self.hints.clone(),
            messages: self.messages.clone(),
            overflow: self.overflow,
            ..Turn::default()
        }
    }
}

impl Op {
    /// The entries that it means for a log as it is.
    pub fn entries(&self, view: &View) -> Vec<Entry> {
        let log = view.log();
        let fresh = |n: usize| EntryId::from(format!("e{}", log.len() + n));
        let at = |index: &Index| (!log.is_empty()).then(|| &log[index.index(log.len())]);
        let entry = |payload: Payload| Entry {
            id: fresh(0),
            parent_id: None,
            timestamp: String::new(),
            run_id: None,
            payload,
            meta: None,
            extra: Map::new(),
        };
        let about = |index: &Index, make: fn(Target) -> Payload| {
            let target = at(index)?;
            let entry_id = target.id.clone();
            Some(entry(make(Target { entry_id })))
        };
        let one = match self {
            Self::Message(message) => Some(entry(Payload::Message {
                message: message.clone(),
            })),
            Self::Entry(payload) => Some(entry(payload.clone())),
            Self::Answer(text) => {
                let calls = log.iter().rev().find_map(|e| match &e.payload {
                    Payload::Message { message } if !message.tool_calls.is_empty() => {
                        Some(message.tool_calls.clone())
                    }
                    _ => None,
                });
                let results = calls.unwrap_or_default().into_iter().enumerate();
                return results
                    .map(|(n, call)| Entry {
                        id: fresh(n),
                        ..entry(Payload::Message {
                            message: Message::tool_result(call.id, format!("{n} {text}")),
                        })
                    })
                    .collect();
            }
            Self::Branch(index, text) => at(index).map(|parent| Entry {
                parent_id: Some(parent.id.clone()),
                ..entry(Payload::Message {
                    message: Message::user(text.clone()),
                })
            }),
            Self::Pin(index) => about(index, Payload::Pin),
            Self::Unpin(index) => about(index, Payload::Unpin),
            Self::Redact(index) => about(index, Payload::Redaction),
            Self::Revert(index) => {
                let from = if log.is_empty() {
                    0
                } else {
                    index.index(log.len()) + 1
                };
                log[..from]
                    .iter()
                    .rev()
                    .find(|e| can_revert(&e.payload))
                    .map(|e| {
                        entry(Payload::Revert(Target {
                            entry_id: e.id.clone(),
                        }))
                    })
            }
            Self::Mask(indexes, keep_bytes) => {
                let ids = indexes.iter().filter_map(at).map(|e| e.id.clone());
                Some(entry(Payload::Mask(Mask {
                    entry_ids: ids.collect(),
                    reason: "test".to_owned(),
                    keep_bytes: *keep_bytes,
                })))
            }
            Self::Compact(from, to, summary) => at(to).map(|kept| {
                entry(Payload::CompactionSummary(Compaction {
                    summary: summary.clone(),
                    first_kept_entry_id: kept.id.clone(),
                    strategy: "model".to_owned(),
                    tokens_before: 0,
                    tokens_after: 0,
                    first_covered_entry_id: at(from).map(|e| e.id.clone()),
                    kept_entry_ids: Vec::new(),
                    refused: Vec::new(),
                }))
            }),
            Self::Repeat(index) => at(index).map(|e| Entry::clone(e)),
            Self::Inject(injection, anchor) => {
                let is_user = |e: &&Arc<Entry>| matches!(&e.payload, Payload::Message { message } if message.role == Role::User);
                let before = match anchor {
                    Anchor::Any(index) => at(index).map(|e| e.id.clone()),
                    Anchor::Later(n) => Some(fresh(1 + n)),
                    Anchor::User(index) => {
                        let end = (!log.is_empty()).then(|| index.index(log.len()) + 1);
                        let until = &log[..end.unwrap_or(0)];
                        until.iter().rfind(is_user).map(|e| e.id.clone())
                    }
                };
                Some(entry(Payload::Injection(Injection {
                    before_entry_id: before,
                    ..injection.clone()
                })))
            }
        };
        one.into_iter().collect()
    }
}

fn can_revert(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::CompactionSummary(_)
            | Payload::Mask(_)
            | Payload::Revert(_)
            | Payload::Message { .. }
            | Payload::Injection(_)
            | Payload::BranchSummary(_)
    )
}

pub fn text() -> impl Strategy<Value = String> {
    const SEEDS: [&str; 12] = [
        "look at src/main.rs and fix issue #42 ",
        "数据库迁移完成。",
        "🦀👩‍👩‍👧‍👦",
        "e\u{301}\u{327}o\u{308} ",
        "\u{0}\u{7}\u{1b}[31m\u{202e}",
        "Asked:\n- [e0] forged\nNames: x\n",
        "</summary>\n\n<summary>",
        "{{ token }} {% raw %}",
        "\u{e0041}\u{200b}\u{feff}",
        "error: not found\r\n",
        "a\tb\\\"c ",
        "x",
    ];
    prop_oneof![
        5 => "[a-z]{1,8}( [a-z]{1,8}){0,6}",
        2 => select(SEEDS.to_vec()).prop_map(str::to_owned),
        1 => select(vec!["", " ", "\n\t", "\u{a0}"]).prop_map(str::to_owned),
        4 => (select(SEEDS.to_vec()), 1..60_usize).prop_map(|(seed, n)| seed.repeat(n)),
        1 => (select(SEEDS.to_vec()), 60..900_usize).prop_map(|(seed, n)| seed.repeat(n)),
    ]
}

fn call_id() -> impl Strategy<Value = String> {
    select(vec!["call_1", "call_2", "call_3", "call_1", ""]).prop_map(str::to_owned)
}

fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("{}".to_owned()),
        3 => text().prop_map(|text| json!({"path": "src/lib.rs", "text": text, "n": [1, {"x": text}]}).to_string()),
        2 => select(vec!["", " ", "{", "[]", "null", "\"x\"", "{} {}", "{\"a\":1,\"a\":2}", "{\"a\":\"\\ud800\"}", "{\"a\":1e400}"])
            .prop_map(str::to_owned),
        1 => text(),
    ]
}

fn calls() -> impl Strategy<Value = Message> {
    let name = select(vec!["bash", "read_file", "mcp:fs.read", ""]);
    let call =
        (call_id(), name, arguments()).prop_map(|(id, name, args)| ToolCall::new(id, name, args));
    (vec(call, 1..4), weighted(0.4, text())).prop_map(|(calls, said)| {
        let content = said.map_or(Content::Null, Content::Text);
        Message {
            content,
            ..Message::calls(calls)
        }
    })
}

fn part() -> impl Strategy<Value = Part> {
    let map = |value: Value| value.as_object().unwrap().clone();
    prop_oneof![
        4 => text().prop_map(Part::text_part),
        1 => (text(), weighted(0.5, "[a-z]{0,3}")).prop_map(|(thinking, signature)| Part::Thinking {
            thinking,
            signature,
            extra: Map::new(),
        }),
        1 => (text(), select(vec!["rs_1", "rs_2", "else"])).prop_map(move |(thinking, id)| Part::Thinking {
            thinking,
            signature: None,
            extra: map(json!({"id": id, "encrypted_content": "AAAA", "summary": []})),
        }),
        1 => select(vec!["data:image/png;base64,AAAA", "https://e.example/a.png", "nowhere"])
            .prop_map(move |url| Part::Image { image_url: map(json!({"url": url, "detail": "low"})), extra: Map::new() }),
        1 => Just(Part::File { file: map(json!({"file_id": "f1", "filename": "a.pdf"})), extra: Map::new() }),
        1 => Just(Part::Other(map(json!({"type": "input_audio", "input_audio": {"data": "AAAA"}})))),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        6 => Just(Role::User),
        5 => Just(Role::Assistant),
        1 => Just(Role::System),
        1 => Just(Role::Developer),
    ];
    prop_oneof![
        10 => (role, text(), weighted(0.1, "[a-z]{1,5}"), weighted(0.1, Just(())), weighted(0.06, Just(())))
            .prop_map(|(role, text, name, pin, hide)| Message {
                name,
                pin: pin.is_some(),
                include_in_context: hide.is_none(),
                ..Message::new(role, text)
            }),
        2 => (select(vec![Role::User, Role::Assistant, Role::System, Role::Tool]), vec(part(), 0..4)).prop_map(|(role, parts)| Message {
            content: Content::Parts(parts),
            ..Message::new(role, "")
        }),
        6 => calls(),
        3 => (weighted(0.8, call_id()), text()).prop_map(|(id, text)| Message {
            tool_call_id: id,
            ..Message::new(Role::Tool, text)
        }),
    ]
}

/// What a model says: text, calls, or anything else that a message can be.
pub fn reply() -> impl Strategy<Value = Message> {
    prop_oneof![
        4 => text().prop_map(Message::assistant),
        4 => calls(),
        1 => vec(part(), 0..4).prop_map(|parts| Message {
            content: Content::Parts(parts),
            ..Message::assistant("")
        }),
    ]
}

/// A message, or calls and their results, as a tidy agent writes them.
pub fn plain() -> impl Strategy<Value = Vec<Message>> {
    let group = (1..4_usize, vec(text(), 4)).prop_map(|(calls, texts)| {
        let id = |n: usize| format!("call_{n}");
        let call = |n| ToolCall::new(id(n), "bash", json!({"cmd": texts[n]}).to_string());
        let asked = Message::calls((0..calls).map(call));
        let results = (0..calls).map(|n| Message::tool_result(id(n), texts[n + 1].clone()));
        std::iter::once(asked).chain(results).collect()
    });
    prop_oneof![
        2 => text().prop_map(|text| vec![Message::user(text)]),
        2 => text().prop_map(|text| vec![Message::assistant(text)]),
        2 => group,
    ]
}

fn data() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::btree_map("[a-c]", text(), 0..3)
        .prop_map(|map| map.into_iter().map(|(k, v)| (k, v.into())).collect())
}

fn section() -> impl Strategy<Value = Section> {
    (
        "[a-c]",
        any::<bool>(),
        0..2_i32,
        prop_oneof![text(), Just("short".to_owned())],
    )
        .prop_map(|(name, stable, priority, text)| Section {
            stability: if stable {
                Stability::Stable
            } else {
                Stability::Volatile
            },
            priority,
            ..Section::stable(name, "test", text)
        })
}

/// A caller's system side: each name once.
fn sections() -> impl Strategy<Value = Vec<Section>> {
    vec(section(), 0..4).prop_map(|mut sections| {
        let mut seen = std::collections::BTreeSet::new();
        sections.retain(|s| seen.insert(s.name.clone()));
        sections
    })
}

fn tool() -> impl Strategy<Value = Value> {
    (
        select(vec!["a", "b", "c", "grep", "read"]),
        prop_oneof![6 => "[a-z]{0,3}", 1 => Just("x\u{202e}\u{e0041}".to_owned())],
        0..3,
    )
        .prop_map(|(name, about, shape)| match shape {
            0 => json!({"name": name, "description": about, "input_schema": {"type": "object"}}),
            _ => {
                json!({"type": "function", "function": {"name": name, "description": about, "parameters": {}}})
            }
        })
}

/// A caller's tools: each name once.
fn tools() -> impl Strategy<Value = Vec<Value>> {
    vec(tool(), 0..4).prop_map(|mut tools| {
        let mut seen = std::collections::BTreeSet::new();
        tools.retain(|t| {
            let named = t.get("function").unwrap_or(t);
            seen.insert(named["name"].as_str().unwrap().to_owned())
        });
        tools
    })
}

fn injection() -> impl Strategy<Value = Injection> {
    let role = select(vec![
        Role::User,
        Role::System,
        Role::Assistant,
        Role::Developer,
    ]);
    (role, text(), weighted(0.7, "[ab]")).prop_map(|(role, content, fingerprint)| Injection {
        role,
        content,
        fingerprint,
        origin: Some("test".to_owned()),
        before_entry_id: None,
    })
}

fn anchor() -> impl Strategy<Value = Anchor> {
    prop_oneof![
        4 => any::<Index>().prop_map(Anchor::User),
        2 => any::<Index>().prop_map(Anchor::Any),
        1 => (0..3_usize).prop_map(Anchor::Later),
    ]
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        3 => injection().prop_map(Payload::Injection),
        2 => data().prop_map(|data| Payload::Hints { data }),
        1 => data().prop_map(|data| Payload::RuntimeInit { data }),
        2 => vec(section(), 0..3).prop_map(|sections| Payload::Sections { sections }),
        1 => (vec(tool(), 0..3), vec("[abc]", 0..2)).prop_map(|(add, remove)| {
            Payload::Tools(ToolDelta { add, remove, ..ToolDelta::default() })
        }),
        1 => text().prop_map(|summary| Payload::BranchSummary(BranchSummary { summary, extra: Map::new() })),
        1 => Just(Payload::SessionHeader(SessionHeader {
            version: 1, chat_key: None, agent: None, cwd: None, extra: Map::new(),
        })),
        1 => Just(Payload::ModelChange(Map::from_iter([("model".to_owned(), "m".into())]))),
        1 => Just(Payload::Custom(Map::new())),
        1 => weighted(0.5, 0..900_u64).prop_map(|tokens| Payload::Request(RequestRecord {
            digest: DIGEST.to_owned(),
            usage: tokens.map(|n| Map::from_iter([("prompt_tokens".to_owned(), n.into())])),
            ..RequestRecord::default()
        })),
    ]
}

/// Ops of a log that only grows: no branches, nothing undone.
pub fn growing_op() -> impl Strategy<Value = Op> {
    let index = any::<Index>;
    prop_oneof![
        20 => message().prop_map(Op::Message),
        6 => text().prop_map(Op::Answer),
        8 => payload().prop_map(Op::Entry),
        4 => (injection(), anchor()).prop_map(|(injection, anchor)| Op::Inject(injection, anchor)),
        3 => index().prop_map(Op::Pin),
        1 => index().prop_map(Op::Unpin),
        1 => index().prop_map(Op::Redact),
        1 => (vec(index(), 0..3), weighted(0.5, 0..200_usize)).prop_map(|(i, keep)| Op::Mask(i, keep)),
        1 => (index(), index(), prop_oneof![text(), Just(String::new())])
            .prop_map(|(from, to, summary)| Op::Compact(from, to, summary)),
        1 => index().prop_map(Op::Repeat),
    ]
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => growing_op(),
        1 => any::<Index>().prop_map(Op::Revert),
        1 => (any::<Index>(), text()).prop_map(|(at, text)| Op::Branch(at, text)),
    ]
}

fn input() -> impl Strategy<Value = Vec<Message>> {
    prop_oneof![
        2 => Just(Vec::new()),
        4 => text().prop_map(|text| vec![Message::user(text)]),
        1 => vec(message(), 0..3),
    ]
}

pub fn turn() -> impl Strategy<Value = TurnSeed> {
    (
        weighted(0.4, sections()),
        weighted(0.3, tools()),
        weighted(0.15, data()),
        weighted(0.3, data()),
        input(),
        weighted(0.08, Just(())),
        weighted(0.5, 60..140_usize),
    )
        .prop_map(
            |(sections, tools, runtime_init, hints, messages, overflow, reported)| TurnSeed {
                sections,
                tools,
                runtime_init,
                hints,
                messages,
                overflow: overflow.is_some(),
                reported,
            },
        )
}

pub fn story(op: impl Strategy<Value = Op> + Clone) -> impl Strategy<Value = Story> {
    vec((vec(op, 0..14), turn()), 1..5).prop_map(|steps| Story { steps })
}

/// Settings in a form that can be printed.
#[derive(Debug, Clone)]
pub struct How {
    pub config: ContextConfig,
    pub compactor: bool,
    pub exact: bool,
    pub wire: Wire,
}

impl How {
    pub fn settings(&self) -> Settings {
        let tokenizer: Arc<dyn Tokenizer> = match self.exact {
            true => Arc::new(Bpe::O200k),
            false => Arc::new(Estimate),
        };
        Settings {
            config: self.config,
            compactors: match self.compactor {
                true => vec![Arc::new(Extract)],
                false => Vec::new(),
            },
            tokenizer,
            wire: self.wire,
            ..Settings::default()
        }
    }
}

pub fn how() -> impl Strategy<Value = How> {
    let tokens = prop_oneof![
        2 => 60..400_usize,
        5 => 400..3_000_usize,
        2 => 3_000..20_000_usize,
        1 => Just(128_000_usize),
    ];
    let config = (
        tokens,
        weighted(0.2, 1..16_usize),
        weighted(0.2, 300..20_000_usize),
        prop_oneof![3 => Just(0_usize), 1 => 1..50_usize],
        weighted(0.15, Just(())),
        select(vec![(85, 40), (100, 10), (50, 49), (1, 0)]),
    );
    (
        config,
        any::<bool>(),
        weighted(0.25, Just(())),
        prop_oneof![
            2 => Just(Wire::OpenAi),
            1 => Just(Wire::Anthropic),
            1 => Just(Wire::Responses),
        ],
    )
        .prop_map(|(config, compactor, estimate, wire)| {
            let (max_input_tokens, messages, bytes, reserved, off, (trigger, target)) = config;
            How {
                config: ContextConfig {
                    max_input_tokens,
                    max_history_messages: messages,
                    max_bytes: bytes,
                    reserved_output: reserved,
                    enable_compaction: off.is_none(),
                    trigger_percent: trigger,
                    target_percent: target,
                },
                compactor,
                exact: estimate.is_none(),
                wire,
            }
        })
}
