//! Spellings of a character: as it is, or as URLs, JSON, HTML and wide type write it.

/// The longest spelling of a character that is read, in bytes.
pub const MAX_SPELLING_BYTES: usize = 16;
/// How often a spelling may itself be escaped: JSON in JSON, a URL in a URL.
const MAX_LEVELS: usize = 8;

/// What stands at a place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelled {
    /// A character, and how many bytes spell it.
    Char(char, usize),
    /// The text ends inside what may be a spelling.
    Cut,
}

/// Whether a text can hold a character that is not spelled as it is.
pub fn has_any(text: &str) -> bool {
    text.bytes()
        .any(|byte| matches!(byte, b'%' | b'\\' | b'&') || !byte.is_ascii())
}

/// The character at `at`, which is the beginning of one.
pub fn read(text: &str, at: usize) -> Option<Spelled> {
    let rest = &text[at..];
    let plain = rest.chars().next()?;
    let decoded = match plain {
        '%' => percent(rest),
        '\\' => backslash(rest),
        '&' => entity(rest),
        '\u{FF01}'..='\u{FF5E}' => Read::of(wide(plain), plain.len_utf8()),
        _ => Read::Other,
    };
    Some(match decoded {
        Read::Char(c, length) => Spelled::Char(c, length),
        Read::Cut if rest.len() < MAX_SPELLING_BYTES => Spelled::Cut,
        Read::Cut | Read::Other => Spelled::Char(plain, plain.len_utf8()),
    })
}

enum Read {
    Char(char, usize),
    /// The beginning of a spelling, and the text ends.
    Cut,
    Other,
}

impl Read {
    fn of(c: Option<char>, length: usize) -> Self {
        c.map_or(Self::Other, |c| Self::Char(c, length))
    }
}

/// The usual character for one of the width of an ideograph.
fn wide(c: char) -> Option<char> {
    char::from_u32(u32::from(c) - 0xFEE0)
}

/// `%61`, and `%2561` where it was escaped again.
fn percent(rest: &str) -> Read {
    let mut at = 1;
    for _ in 0..MAX_LEVELS {
        let behind = &rest.as_bytes()[at..];
        match behind {
            [b'2', b'5', ..] => at += 2,
            _ => return number(rest, at, 16, 2, 2, None),
        }
    }
    Read::Other
}

/// `\u0061`, `\u{61}`, `\x61`, `\/`, `\"`, `\n`; with more backslashes where it was escaped again.
fn backslash(rest: &str) -> Read {
    let bytes = rest.as_bytes();
    // No more are counted than matter: a text may be nothing but backslashes.
    let first = bytes.iter().take(MAX_LEVELS + 1);
    let slashes = first.take_while(|byte| **byte == b'\\').count();
    if slashes > MAX_LEVELS {
        return Read::Other;
    }
    match &bytes[slashes..] {
        [] => Read::Cut,
        [b'u', b'{', ..] => number(rest, slashes + 2, 16, 1, 6, Some(b'}')),
        [b'u', ..] => number(rest, slashes + 1, 16, 4, 4, None),
        [b'x', ..] => number(rest, slashes + 1, 16, 2, 2, None),
        [b'n' | b'r' | b't', ..] => Read::Char(' ', slashes + 1),
        [quoted @ (b'"' | b'/' | b'\''), ..] => Read::Char(char::from(*quoted), slashes + 1),
        _ if slashes > 1 => Read::Char('\\', slashes),
        _ => Read::Other,
    }
}

/// `&#97;`, `&#x61;`, and the names of those few that have one everywhere.
fn entity(rest: &str) -> Read {
    const NAMED: [(&str, char); 5] = [
        ("&amp;", '&'),
        ("&quot;", '"'),
        ("&apos;", '\''),
        ("&lt;", '<'),
        ("&gt;", '>'),
    ];
    for (name, c) in NAMED {
        if rest.starts_with(name) {
            return Read::Char(c, name.len());
        }
        if name.starts_with(rest) {
            return Read::Cut;
        }
    }
    match rest.as_bytes() {
        [b'&', b'#', b'x' | b'X', ..] => number(rest, 3, 16, 1, 7, Some(b';')),
        [b'&', b'#', ..] => number(rest, 2, 10, 1, 7, Some(b';')),
        _ => Read::Other,
    }
}

/// A character by its number, in so many digits from `at` on, with what ends it.
fn number(rest: &str, at: usize, base: u32, least: usize, most: usize, end: Option<u8>) -> Read {
    let digits = &rest.as_bytes()[at..];
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(base);
    let count = digits.iter().take(most).take_while(is_digit).count();
    let ends_here = digits.len() == count;
    if (count < least || end.is_some()) && ends_here && count < most {
        return Read::Cut;
    }
    if count < least {
        return Read::Other;
    }
    let value = u32::from_str_radix(&rest[at..at + count], base).ok();
    let c = value.and_then(char::from_u32);
    match end {
        // Browsers take a number that nothing ends.
        Some(end) if digits.get(count) == Some(&end) => Read::of(c, at + count + 1),
        Some(b'}') => Read::Other,
        _ => Read::of(c, at + count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_read_in_every_spelling() {
        for (text, c) in [
            ("a", 'a'),
            ("%61", 'a'),
            ("%2561", 'a'),
            ("%252561", 'a'),
            ("\\u0061", 'a'),
            ("\\\\u0061", 'a'),
            ("\\u{61}", 'a'),
            ("\\x61", 'a'),
            ("&#97;", 'a'),
            ("&#x61;", 'a'),
            ("&#x0061;", 'a'),
            ("&amp;", '&'),
            ("\\/", '/'),
            ("\\n", ' '),
            ("ａ", 'a'),
            ("é", 'é'),
        ] {
            assert_eq!(read(text, 0), Some(Spelled::Char(c, text.len())), "{text}");
            let behind = format!("{text}-");
            assert_eq!(
                read(&behind, 0),
                Some(Spelled::Char(c, text.len())),
                "{text}"
            );
            assert!(text.len() <= MAX_SPELLING_BYTES, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_spelling_stands_for_itself() {
        for text in ["%zz", "\\f", "\\u12 ", "&x", "&#;", "%%", "&#99999999999"] {
            let c = text.chars().next().unwrap_or_default();
            assert_eq!(read(text, 0), Some(Spelled::Char(c, 1)), "{text}");
        }
        for text in [
            "%", "%6", "%25", "\\", "\\u00", "\\u{6", "&", "&#", "&#9", "&am",
        ] {
            assert_eq!(read(text, 0), Some(Spelled::Cut), "{text}");
        }
    }
}
