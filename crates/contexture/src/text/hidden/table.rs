//! The hidden characters: what Unicode has readers ignore, and a few more that turn or hide what stands around them.

/// Whether the character cannot be seen, or changes how the text around it is read. Whether it is stray depends on where
/// it stands.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        // The soft hyphen, and the grapheme joiner.
        '\u{ad}'
        | '\u{34f}'
        // Marks of the direction, its overrides and isolates.
        | '\u{61c}'
        | '\u{200e}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        // Fillers of Hangul, vowels of Khmer that are never written.
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{3164}'
        | '\u{ffa0}'
        // Mongolian's variation selectors and vowel separator.
        | '\u{180b}'..='\u{180f}'
        // Spaces and joiners without width.
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'
        | '\u{feff}'
        // Ends of lines and paragraphs that few readers show as such.
        | '\u{2028}'..='\u{2029}'
        // Invisible operators, what was never assigned, and formats that are deprecated.
        | '\u{2061}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{fff0}'..='\u{fff8}'
        // Annotations between lines.
        | '\u{fff9}'..='\u{fffb}'
        // Formats of shorthand and of music.
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        // Tags, variation selectors, and what is left of their plane.
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character whose UTF-8 begins with these two bytes may be hidden: cheap, and almost always false.
pub(super) const fn may_be_hidden(first: u8, second: u8) -> bool {
    match first {
        0xc2 => second == 0xad,
        0xcd => second == 0x8f,
        0xd8 => second == 0x9c,
        0xe1 => matches!(second, 0x85 | 0x9e | 0xa0),
        0xe2 => matches!(second, 0x80 | 0x81),
        0xe3 => second == 0x85,
        0xef => matches!(second, 0xb8 | 0xbb | 0xbe | 0xbf),
        0xf0 => matches!(second, 0x9b | 0x9d),
        0xf3 => second == 0xa0,
        _ => false,
    }
}

/// The first bytes of all of them.
pub(super) const fn first_bytes() -> [bool; 256] {
    let mut table = [false; 256];
    let mut pair = 0;
    while pair < 1 << 16 {
        let (first, second) = (pair >> 8, pair & 0xff);
        if may_be_hidden(first as u8, second as u8) {
            table[first] = true;
        }
        pair += 1;
    }
    table
}

pub(super) fn is_tag(c: char) -> bool {
    ('\u{e0000}'..='\u{e007f}').contains(&c)
}

/// Variation selectors but for Mongolian's own.
pub(super) fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_bytes_leave_no_hidden_character_out() {
        let mut hidden = 0;
        for c in (0..=0x0010_ffff)
            .filter_map(char::from_u32)
            .filter(|c| is_hidden(*c))
        {
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes).as_bytes();
            assert!(may_be_hidden(bytes[0], bytes[1]), "{:x}", u32::from(c));
            hidden += 1;
        }
        // A change of the table is looked at twice.
        assert_eq!(hidden, 4_179);
    }
}
