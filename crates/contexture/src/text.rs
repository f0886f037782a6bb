//! Small helps for texts, to people and to models.

use std::borrow::Cow;

/// The candidate that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), *candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= 2.max(candidate.len() / 3))
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, taken away or changed to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// `text` without anything that a reader could take for the end of the element `tag` around it.
pub(crate) fn unclosed<'a>(text: &'a str, tag: &str) -> Cow<'a, str> {
    let closes = |&(at, _): &(usize, &str)| {
        let rest = text[at + 1..].trim_start();
        rest.strip_prefix('/')
            .and_then(|rest| rest.trim_start().get(..tag.len()))
            .is_some_and(|name| name.eq_ignore_ascii_case(tag))
    };
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.match_indices('<').filter(closes) {
        out.push_str(&text[done..at]);
        out.push_str("&lt;");
        done = at + 1;
    }
    if done == 0 {
        return text.into();
    }
    out.push_str(&text[done..]);
    out.into()
}
