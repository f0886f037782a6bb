//! Small helps for texts, to people and to models.

pub mod hidden;
pub mod markdown;

use std::borrow::Cow;

/// The name in `known` that `word` was probably meant to be, written in whatever case; none where
/// more than half of it would have to change.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = folded(word);
    known
        .iter()
        .map(|name| (distance(&word, &folded(name)), *name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 2))
        .map(|(_, name)| name)
}

fn folded(name: &str) -> Vec<char> {
    name.chars()
        .take(64)
        .filter(|c| !matches!(c, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Levenshtein's distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let best = (diagonal + usize::from(x != y))
                .min(left + 1)
                .min(*above + 1);
            diagonal = *above;
            *above = best;
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, wanted) in [
            ("", "", 0),
            ("", "ab", 2),
            ("ab", "", 2),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(&folded(a), &folded(b)), wanted, "{a} {b}");
        }
    }

    #[test]
    fn the_case_of_another_language_is_near() {
        let known = ["runContext", "toolPolicy", "agent"];
        assert_eq!(nearest("tool_policy", &known), Some("toolPolicy"));
        assert_eq!(nearest("RunCtx", &known), Some("runContext"));
        assert_eq!(nearest("x", &[]), None);
        assert_eq!(nearest("somethingElse", &known), None);
    }
}
