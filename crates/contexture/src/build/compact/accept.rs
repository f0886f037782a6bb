//! Whether a summary will do. Deterministic: no model judges a model here.

use std::collections::HashSet;
use std::fmt;

use super::Span;

/// Why a summary was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is nothing in it.
    Empty,
    /// It is no shorter than what it stands for, or than it may be.
    TooLong {
        /// Its tokens.
        tokens: usize,
        /// The most it may have.
        limit: usize,
    },
    /// It says nothing about its span.
    Unrelated,
    /// It does not name something that it must.
    Missing(String),
}

/// The fewest words of a long span that a summary of it repeats: with fewer, it says nothing about it.
const MIN_SHARED_WORDS: usize = 3;
/// The fewest letters of a word that tells one span from another.
const MIN_WORD_CHARS: usize = 4;

/// Accepts a summary that is shorter than `longest`, says something about its span, and names all that the probes ask
/// for.
pub fn accept(summary: &str, span: &Span<'_>, longest: usize) -> Result<(), Refusal> {
    if summary.trim().is_empty() {
        return Err(Refusal::Empty);
    }
    let tokens = span.tokenizer.count(summary);
    let limit = span.max_tokens.min(longest.saturating_sub(1));
    if tokens > limit {
        return Err(Refusal::TooLong { tokens, limit });
    }
    match span
        .probes
        .iter()
        .find(|probe| !summary.contains(probe.as_str()))
    {
        Some(missing) => Err(Refusal::Missing(missing.clone())),
        None if !is_about(summary, span) => Err(Refusal::Unrelated),
        None => Ok(()),
    }
}

/// Whether a summary repeats enough of the span's own words. A span of few words asks for as many as it has.
fn is_about(summary: &str, span: &Span<'_>) -> bool {
    let told: HashSet<String> = words(summary).collect();
    let mut seen = HashSet::new();
    let mut shared = 0;
    for item in &span.items {
        let text = item.message.text();
        let calls = item.message.tool_calls.iter();
        let calls = calls.flat_map(|call| words(&call.name).chain(words(&call.arguments)));
        for word in words(&text).chain(calls) {
            let is_told = told.contains(&word);
            if seen.insert(word) && is_told {
                shared += 1;
                if shared == MIN_SHARED_WORDS {
                    return true;
                }
            }
        }
    }
    // A third of what there is, where that is less.
    shared * 3 >= seen.len().min(3 * MIN_SHARED_WORDS)
}

/// The words of a text that carry its meaning: those of some length and numbers, in lower case, and each character of a
/// script that is written without spaces.
fn words(text: &str) -> impl Iterator<Item = String> {
    let is_ideograph = |c: char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}');
    let spaced = text
        .split(move |c: char| !c.is_alphanumeric() || is_ideograph(c))
        .filter(|word| {
            word.chars().nth(MIN_WORD_CHARS - 1).is_some()
                || word.contains(|c: char| c.is_ascii_digit())
        })
        .map(str::to_lowercase);
    let unspaced = text
        .chars()
        .filter(move |&c| is_ideograph(c))
        .map(String::from);
    spaced.chain(unspaced)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::TooLong { tokens, limit } => {
                write!(f, "it has {tokens} tokens and may have {limit}")
            }
            Self::Unrelated => f.write_str("it says nothing about the messages"),
            Self::Missing(probe) => write!(f, "it does not name `{probe}`"),
        }
    }
}
