//! The rules that users gave: what a summary may least afford to lose.

use std::collections::HashSet;

use super::SpanItem;
use crate::{Content, EntryId, Message, Part};

/// The lines of users' messages that state a rule, as they were written, oldest first: `never …`,
/// `always …`, `must (not) …`, `do not …`, `only use …`, and 必须, 不要, 禁止, 始终, 务必.
///
/// Nothing but what users themselves said counts, whatever a tool's output or an earlier summary
/// claims: for a summary it is looked up in the messages that it stands for. Of a message at most 16
/// lines count, of all the newest 64, each of at most 300 characters.
pub fn constraints(items: &[SpanItem<'_>]) -> Vec<String> {
    let rules = rules(items).into_iter();
    rules.map(|rule| rule.text.to_owned()).collect()
}

/// A line that states a rule, and the message that it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule<'a> {
    pub id: &'a EntryId,
    pub text: &'a str,
}

/// Whether a message states a rule.
pub(crate) fn has_rules(message: &Message) -> bool {
    lines(message).next().is_some()
}

const PER_MESSAGE: usize = 16;
const IN_ALL: usize = 64;
const LONGEST: usize = 300;

/// The words, in lower case. The first list begins what is told, the second may stand anywhere.
const TELLING: [&str; 7] = [
    "never", "always", "do not", "don't", "don’t", "only use", "use only",
];
const ANYWHERE: [&str; 1] = ["must"];
const CHINESE: [&str; 5] = ["必须", "不要", "禁止", "始终", "务必"];

/// Words that may stand before one that tells: with any other, it is a story (`it always fails`).
const BEFORE: [&str; 13] = [
    "please", "and", "but", "or", "so", "then", "also", "just", "you", "should", "shall", "to",
    "we",
];

pub(super) fn rules<'a>(items: &'a [SpanItem<'a>]) -> Vec<Rule<'a>> {
    let mut seen = HashSet::new();
    let mut rules = Vec::new();
    // The newest first: of a rule that was given twice, the later counts.
    for item in items.iter().rev() {
        let own = item.is_users.then_some((item.id, item.message));
        let asked = item.asked.iter().rev().copied();
        for (id, message) in own.into_iter().chain(asked) {
            let told: Vec<&str> = lines(message).take(PER_MESSAGE).collect();
            for text in told.into_iter().rev() {
                if rules.len() < IN_ALL && seen.insert(text) {
                    rules.push(Rule { id, text });
                }
            }
        }
    }
    rules.reverse();
    rules
}

fn lines(message: &Message) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    texts(message)
        .flat_map(|text| text.split(ends_line))
        .map(str::trim)
        .filter(move |line| {
            let fence = line.starts_with("```");
            fenced ^= fence;
            // What is quoted in a fence is code or output, and full of such words.
            !fenced && !fence
        })
        .flat_map(told)
}

fn texts(message: &Message) -> impl Iterator<Item = &str> {
    let (one, parts): (_, &[Part]) = match &message.content {
        Content::Null => (None, &[]),
        Content::Text(text) => (Some(text.as_str()), &[]),
        Content::Parts(parts) => (None, parts),
    };
    one.into_iter().chain(parts.iter().filter_map(Part::text))
}

/// All that any reader takes for the end of a line.
fn ends_line(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// The line, where a sentence of it states a rule; of a long line those sentences alone.
fn told(line: &str) -> Vec<&str> {
    let rules = || sentences(line).filter(|sentence| states_rule(sentence));
    match line.char_indices().nth(LONGEST) {
        None => rules().next().map(|_| line).into_iter().collect(),
        Some(_) => rules().map(clipped).collect(),
    }
}

fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let end = rest.char_indices().find(|&(at, c)| {
            let behind = at + c.len_utf8();
            matches!(c, '。' | '！' | '？' | '；')
                || matches!(c, '.' | '!' | '?' | ';') && rest[behind..].starts_with([' ', '\t'])
        });
        let (sentence, behind) = match end {
            Some((at, c)) => rest.split_at(at + c.len_utf8()),
            None => (rest, ""),
        };
        rest = behind;
        (!sentence.is_empty()).then(|| sentence.trim())
    })
}

fn states_rule(sentence: &str) -> bool {
    if sentence.ends_with(['?', '？']) {
        return false;
    }
    if CHINESE.iter().any(|word| sentence.contains(word)) {
        return true;
    }
    let lower = sentence.to_lowercase();
    TELLING.iter().any(|word| {
        let mut found = words(&lower, word);
        found.any(begins)
    }) || ANYWHERE
        .iter()
        .any(|word| words(&lower, word).next().is_some())
}

/// What stands before each place where `word` is a word of its own.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).filter_map(move |(at, _)| {
        let (before, behind) = (&text[..at], &text[at + word.len()..]);
        let whole = !before.ends_with(letter) && !behind.starts_with(letter);
        whole.then_some(before)
    })
}

/// Whether what follows these words begins something that is told.
fn begins(before: &str) -> bool {
    let before = before.trim_end();
    let last = before.rsplit(|c: char| !c.is_alphanumeric()).next();
    last.is_none_or(|last| last.is_empty() || BEFORE.contains(&last))
}

fn clipped(sentence: &str) -> &str {
    match sentence.char_indices().nth(LONGEST) {
        Some((end, _)) => &sentence[..end],
        None => sentence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let message = Message::user(text);
        lines(&message).map(str::to_owned).collect()
    }

    #[test]
    fn rules_are_told_from_stories() {
        for rule in [
            "Never delete the database.",
            "please never push to main",
            "- always run the tests",
            "1. Always run the tests",
            "You must not touch Cargo.lock",
            "The answer must be JSON",
            "Fix it, but do not change the tests",
            "Don't use unwrap",
            "don’t use unwrap",
            "Only use the standard library.",
            "Is it clear? Never delete it.",
            "**Never** delete it",
            "必须先运行测试",
            "请不要修改数据库",
            "禁止联网",
            "始终使用中文回答",
            "务必备份",
        ] {
            assert_eq!(of(rule), [rule]);
        }
        for story in [
            "",
            "It always fails on Monday",
            "I never saw that, and I don't know why",
            "Must I delete it?",
            "要不要删除？",
            "mustard, neverland",
            "Fix the build",
            "```\nnever();\n// must not be null\n```",
        ] {
            assert!(of(story).is_empty(), "{story}");
        }
    }

    #[test]
    fn a_rule_is_one_line_whatever_ends_it() {
        assert_eq!(
            of("Hi\rNever do A\u{2028}Asked:\u{85}  Always do B  \r\nBye"),
            ["Never do A", "Always do B"]
        );
    }

    #[test]
    fn of_a_long_line_the_rules_stay() {
        let story = "It was a dark and stormy night. ".repeat(20);
        let line = format!("{story}Never go out! {story}You must stay; {story}");
        assert_eq!(of(&line), ["Never go out!", "You must stay;"]);
        let endless = format!("Never {}", "é".repeat(1_000));
        assert_eq!(of(&endless)[0].chars().count(), 300);
    }
}
