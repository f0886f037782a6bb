use std::collections::HashSet;

use super::SpanItem;
use crate::Role;
use crate::tokens::Tokenizer;

/// What it costs to name one more.
const SEPARATOR: usize = 2;

/// How many names may find no room before no older one is looked for.
const MISSES: usize = 16;

/// What a summary of these messages must name: the paths and ids last worked with, and the tools
/// whose calls are still open.
///
/// Only what users asked about and what the model itself wrote into its calls counts: output is
/// full of names that nobody will need again. At most `max_tokens` of them.
pub fn probes(items: &[SpanItem<'_>], max_tokens: usize, tokenizer: &dyn Tokenizer) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut probes = Vec::new();
    let mut room = max_tokens;
    let mut misses = 0;
    // Whether it is worth looking for another.
    let mut take = |probe: &str| {
        if !seen.contains(probe) {
            let cost = tokenizer.count(probe) + SEPARATOR;
            if cost <= room {
                room -= cost;
                seen.insert(probe.to_owned());
                probes.push(probe.to_owned());
            } else {
                misses += 1;
            }
        }
        misses < MISSES
    };
    for item in items.iter().filter(|item| item.is_open) {
        for call in &item.message.tool_calls {
            take(&call.name);
        }
    }
    for item in items.iter().rev() {
        let mut more = true;
        if item.message.role == Role::User {
            more &= names(&item.message.text()).all(&mut take);
        }
        for call in &item.message.tool_calls {
            more &= names(&call.arguments).all(&mut take);
        }
        if !more {
            break;
        }
    }
    probes
}

/// The words of a text that name something: a path, a file, an address, an id.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    const LONGEST: usize = 96;
    text.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;=|\\*".contains(c))
        .map(|word| word.trim_matches(|c: char| ".:!?/-_&$".contains(c) && c != '/'))
        .filter(|word| (3..=LONGEST).contains(&word.len()))
        .filter(|word| is_path(word) || is_id(word))
}

fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "/._-~+@:#%".contains(c);
    if !word.chars().all(plain) || !word.chars().any(char::is_alphabetic) {
        return false;
    }
    if word.contains('/') {
        return word.split('/').filter(|part| !part.is_empty()).count() > 1;
    }
    word.rsplit_once('.').is_some_and(|(stem, extension)| {
        stem.len() > 1
            && (1..=5).contains(&extension.len())
            && extension.chars().all(|c| c.is_ascii_alphanumeric())
            && extension.chars().any(|c| c.is_ascii_lowercase())
            && !extension.chars().all(|c| c.is_ascii_digit())
    })
}

/// Letters and digits in one word, as in a commit, a booking or a ticket; or a number after `#`.
fn is_id(word: &str) -> bool {
    if let Some(number) = word.strip_prefix('#') {
        return !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    }
    word.len() >= 5
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_alphabetic())
}
