//! The estimates are bounds, and on what agents read most, tight ones.

use contexture::tokens::{Bpe, ClaudeEstimate, Estimate, Tokenizer};
use proptest::prelude::*;

use crate::tokens::samples::{self, CODE, ENGLISH};
use crate::tokens::vocabularies::check;

#[test]
fn holds_for_every_class_in_every_vocabulary() {
    let failures: Vec<_> = samples::all()
        .filter_map(|(class, text)| check(text).err().map(|e| format!("{class}: {e}")))
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn holds_for_every_prefix() {
    for (class, text) in samples::all() {
        for (end, _) in text.char_indices().take(80) {
            check(&text[..end]).unwrap_or_else(|e| panic!("{class}: {e}"));
        }
    }
}

/// What is long and all alike. (A line of prose or code repeated keeps its own deviation from the
/// average, which the bound does not promise to cover.)
#[test]
fn holds_for_long_runs() {
    let alike = [
        "base64",
        "digits",
        "emoji",
        "hex",
        "punctuation",
        "repeats",
        "scripts",
        "uuids",
        "whitespace",
    ];
    for (class, text) in samples::all().filter(|(class, _)| alike.contains(class)) {
        check(&text.repeat(40)).unwrap_or_else(|e| panic!("{class}: {e}"));
    }
}

/// The bound for texts of this kind, in hundredths of their `o200k_base` tokens.
fn ratio(tokenizer: &dyn Tokenizer, texts: &[&str]) -> usize {
    // Joined, they are as long as a message is, and the allowance for short texts shows less.
    let text = texts.join("\n");
    tokenizer.count(&text) * 100 / Bpe::O200k.count(&text)
}

#[test]
fn stays_near_o200k_on_english_and_code() {
    let ratios = [ENGLISH, CODE].map(|texts| ratio(&Estimate, texts));
    assert!(ratios.iter().all(|r| *r <= 170), "{ratios:?}");
}

#[test]
fn claude_stays_near_o200k_on_english_and_code() {
    let ratios = [ENGLISH, CODE].map(|texts| ratio(&ClaudeEstimate, texts));
    assert!(ratios.iter().all(|r| *r <= 200), "{ratios:?}");
}

#[test]
fn nothing_is_nothing() {
    assert_eq!(Estimate.count(""), 0);
    assert_eq!(ClaudeEstimate.count(""), 0);
}

#[test]
fn says_that_it_is_no_count() {
    assert_eq!((Estimate.name(), Estimate.exact()), ("estimate", false));
    let claude = (ClaudeEstimate.name(), ClaudeEstimate.exact());
    assert_eq!(claude, ("estimate_claude", false));
}

/// Counts of Claude's API without the frame around the message, as `ctok` 1.2.0 reconstructs them:
/// for Claude 3 to Opus 4.6, and since.
#[test]
fn holds_for_claude_as_reconstructed() {
    let english = ENGLISH
        .iter()
        .zip([(62, 84), (56, 74), (74, 92), (45, 52), (42, 51)]);
    let code = CODE
        .iter()
        .zip([(104, 116), (63, 71), (78, 88), (65, 76), (54, 87), (53, 57)]);
    let names = [
        ("user", (1, 1)),
        ("assistant", (1, 3)),
        ("tool", (1, 2)),
        ("get_user_details", (5, 5)),
        ("call_AbC123xYz", (8, 9)),
        ("listDirectoryRecursively", (6, 10)),
        ("mcp__github__create_pull_request", (10, 12)),
    ];
    let names = names.iter().map(|(text, counts)| (text, *counts));
    for (text, (before, since)) in english.chain(code).chain(names) {
        assert!(Estimate.count(text) >= before, "{text}");
        assert!(ClaudeEstimate.count(text) >= since, "{text}");
    }
}

/// A piece of a sample, or noise of one class.
fn fragment() -> impl Strategy<Value = String> {
    let texts: Vec<&str> = samples::all().map(|(_, text)| text).collect();
    let sample = (prop::sample::select(texts), 0..400_usize, 1..60_usize)
        .prop_map(|(text, from, len)| text.chars().skip(from % text.len()).take(len).collect());
    prop_oneof![
        4 => sample,
        1 => "[a-z]{1,40}",
        1 => "[A-Z]{1,20}",
        1 => "[a-zA-Z0-9+/]{1,60}={0,2}",
        1 => "[0-9a-f]{1,64}",
        1 => "[0-9]{1,40}",
        1 => "[!-/:-@\\[-`{-~]{1,20}",
        1 => "[ ]{1,100}",
        1 => "[ \\t\\n]{1,20}",
        1 => "[a-z]{1,8}( [a-z]{1,8}){0,8}",
        1 => "[A-Z][a-z]{1,8}( [A-Z][a-z]{1,8}){0,5}",
        1 => "[a-z]{1,6}([A-Z][a-z]{1,6}){0,4}",
        1 => "[a-z]{1,6}([_./-][a-z]{1,6}){0,6}",
        1 => "\\PC{1,20}",
        1 => "[一-龥]{1,20}",
        1 => "[ぁ-ん]{1,20}",
        1 => "[가-힣]{1,20}",
        1 => "[а-яА-Я ]{1,30}",
        1 => "[؀-ۿ]{1,20}",
        1 => "[ऀ-ॿ]{1,20}",
        1 => "[ก-๛]{1,20}",
        1 => "[😀-🙏]{1,10}",
        1 => "[\u{80}-\u{ff}]{1,20}",
        1 => ("[ -~\\t\\n]", 1..200_usize).prop_map(|(c, n)| c.repeat(n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn holds_for_mixtures(parts in prop::collection::vec(fragment(), 1..8)) {
        check(&parts.concat()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn holds_for_any_text(text in any::<String>()) {
        check(&text).map_err(TestCaseError::fail)?;
    }
}
