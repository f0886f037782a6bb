use std::sync::Arc;

use super::{Bpe, ClaudeEstimate, Estimate, Tokenizer};

/// The tokenizer for a model's name, in any case, as the providers, routers and clouds write it:
/// `gpt-4o`, `openai:gpt-4o`, `openrouter/openai/gpt-4o:free`, `ft:gpt-4o-2024-08-06:org::id`,
/// `us.anthropic.claude-opus-4-7-v1:0`.
///
/// No name means `o200k_base`, as the contract says; a name of a vocabulary means itself; a model
/// whose tokenizer is not public gets an estimate, and the receipt says so.
pub fn for_model(model: Option<&str>) -> Arc<dyn Tokenizer> {
    match model.map_or(Kind::O200k, kind) {
        Kind::O200k => Arc::new(Bpe::O200k),
        Kind::Cl100k => Arc::new(Bpe::Cl100k),
        Kind::Unknown => Arc::new(Estimate),
        Kind::Claude => Arc::new(ClaudeEstimate),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    O200k,
    Cl100k,
    Unknown,
    Claude,
}

/// Names that are whole.
const NAMES: &[(&str, Kind)] = &[
    ("cl100k_base", Kind::Cl100k),
    ("o200k_base", Kind::O200k),
    // o200k_base with other special tokens, which text cannot contain.
    ("o200k_harmony", Kind::O200k),
    // The first Claude 4: a date follows, which as a family would take `claude-opus-4-7` in.
    ("claude-opus-4", Kind::Unknown),
    ("claude-opus-4-20250514", Kind::Unknown),
    ("claude-opus-4@20250514", Kind::Unknown),
    ("claude-sonnet-4", Kind::Unknown),
    ("claude-sonnet-4-20250514", Kind::Unknown),
    ("claude-sonnet-4@20250514", Kind::Unknown),
    ("claude-4-opus", Kind::Unknown),
    ("claude-4-sonnet", Kind::Unknown),
];

/// What names begin with. The longest that fits decides. OpenAI's are those of tiktoken 0.14's own
/// table; Claude has had another tokenizer since Opus 4.7, so what is not known to be older is new.
const FAMILIES: &[(&str, Kind)] = &[
    ("babbage-002", Kind::Cl100k),
    ("chatgpt-4o", Kind::O200k),
    ("codex-mini", Kind::O200k),
    ("davinci-002", Kind::Cl100k),
    ("gpt-3.5", Kind::Cl100k),
    ("gpt-35", Kind::Cl100k),
    ("gpt-4", Kind::Cl100k),
    ("gpt-4.1", Kind::O200k),
    ("gpt-4.5", Kind::O200k),
    ("gpt-4o", Kind::O200k),
    ("gpt-5", Kind::O200k),
    ("gpt-5.", Kind::O200k),
    ("gpt-oss", Kind::O200k),
    ("o1", Kind::O200k),
    ("o3", Kind::O200k),
    ("o4-mini", Kind::O200k),
    ("text-embedding-3", Kind::Cl100k),
    ("text-embedding-ada-002", Kind::Cl100k),
    ("claude", Kind::Claude),
    ("claude-2", Kind::Unknown),
    ("claude-2.", Kind::Unknown),
    ("claude-3", Kind::Unknown),
    ("claude-3.", Kind::Unknown),
    ("claude-instant", Kind::Unknown),
    ("claude-haiku-4-5", Kind::Unknown),
    ("claude-haiku-4.5", Kind::Unknown),
    ("claude-opus-4-0", Kind::Unknown),
    ("claude-opus-4-1", Kind::Unknown),
    ("claude-opus-4.1", Kind::Unknown),
    ("claude-opus-4-5", Kind::Unknown),
    ("claude-opus-4.5", Kind::Unknown),
    ("claude-opus-4-6", Kind::Unknown),
    ("claude-opus-4.6", Kind::Unknown),
    ("claude-sonnet-4-0", Kind::Unknown),
    ("claude-sonnet-4-5", Kind::Unknown),
    ("claude-sonnet-4.5", Kind::Unknown),
];

/// What clouds put in front of a name with a dot: `us.anthropic.claude-…`.
const VENDORS: &[&str] = &["anthropic.", "openai."];

fn kind(model: &str) -> Kind {
    let lower = model.trim().to_ascii_lowercase();
    let mut segments = lower.split(['/', ':']).map(without_vendor);
    // The name stands among providers before it and variants, organisations and ids behind it.
    // Behind `ft` it is the next, whatever the organisation is called.
    while let Some(segment) = segments.next() {
        if segment == "ft" {
            return segments.next().and_then(known).unwrap_or(Kind::Unknown);
        }
        if let Some(kind) = known(segment) {
            return kind;
        }
    }
    Kind::Unknown
}

fn without_vendor(segment: &str) -> &str {
    let behind = |vendor: &&str| segment.split_once(*vendor).map(|(_, name)| name);
    VENDORS.iter().find_map(behind).unwrap_or(segment)
}

fn known(name: &str) -> Option<Kind> {
    let whole = NAMES.iter().find(|(known, _)| *known == name);
    let family = || {
        let of = FAMILIES.iter().filter(|(family, _)| is_of(name, family));
        of.max_by_key(|(family, _)| family.len())
    };
    whole.or_else(family).map(|(_, kind)| *kind)
}

/// Whether `family` is the name's beginning and does not end inside a word or number of it, so that
/// `o1` is no `o10` and `gpt-4` no `gpt-4.7`.
fn is_of(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(['-', '_', '@']) || family.ends_with('.')
    })
}
