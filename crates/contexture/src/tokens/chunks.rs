//! Cuts what no text of the world is: tens of kilobytes without a place where two tokens must part.
//!
//! Merging one unbroken stretch of text costs more than linear time, so a hostile megabyte of it
//! would take most of a second, and ten take fifteen.

/// A text is counted in chunks of at most this many bytes.
const LIMIT: usize = 64 * 1024;

/// What a forced cut may hide. A cut can save a token or two, against intuition (greedy merges are
/// not the best): two at the most in 640,000 random cuts.
pub(super) const FORCED: usize = 4;

/// `text` in chunks, each with whether its end was forced. Where it was not, the counts of the
/// chunks add up to that of the whole.
pub(super) fn chunks(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (end, forced) = end(rest);
        let (chunk, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = tail;
        Some((chunk, forced))
    })
}

fn end(text: &str) -> (usize, bool) {
    if text.len() <= LIMIT {
        return (text.len(), false);
    }
    let limit = text.floor_char_boundary(LIMIT);
    let window = text.get(..limit).unwrap_or(text);
    let mut after = text.get(limit..).and_then(|tail| tail.chars().next());
    for (at, before) in window.char_indices().rev() {
        let here = at + before.len_utf8();
        if after.is_some_and(|after| parts(before, after)) {
            return (here, false);
        }
        after = Some(before);
    }
    (limit, true)
}

/// Whether both vocabularies always begin a token between these two characters, by the patterns
/// they split text with before they merge.
fn parts(before: char, after: char) -> bool {
    match after {
        // A space only ever begins a token, unless it follows another.
        ' ' => !before.is_whitespace(),
        // Letters end where they end, except before `'s` and its like.
        '0'..='9' | '!'..='&' | '('..='/' | ':'..='@' | '['..='`' | '{'..='~' => {
            before.is_ascii_alphabetic() || is_ideograph(before)
        }
        '\u{3001}' | '\u{3002}' | '\u{ff0c}' => is_ideograph(before),
        // Line ends close a token, but `o200k_base` lets a slash follow them.
        after => before == '\n' && !after.is_whitespace(),
    }
}

/// Whether it is a letter of the scripts that put no space between words.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fff}')
}
