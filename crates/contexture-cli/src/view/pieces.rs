//! Text that arrives in pieces, which may end in the middle of an emoji.

use contexture::text::hidden::is_hidden;

/// What is kept of the last piece until the next one shows how it is to be read.
#[derive(Debug, Default)]
pub struct Pieces {
    held: String,
}

/// The most that is kept, in bytes: the longest emoji are shorter.
const MAX_HELD_BYTES: usize = 64;

impl Pieces {
    /// Adds a piece; gives what can be shown by now.
    pub fn add(&mut self, piece: &str) -> String {
        let mut text = std::mem::take(&mut self.held) + piece;
        let end = settled(&text);
        if text.len() - end <= MAX_HELD_BYTES {
            self.held = text.split_off(end);
        }
        text
    }

    /// What was kept, as nothing follows.
    pub fn end(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Up to where a text is the same whatever follows: before its last sign, and all that hides between signs there.
fn settled(text: &str) -> usize {
    let alone = |c: char| c.is_ascii() && !matches!(c, '0'..='9' | '#' | '*' | '\r');
    // Alone these are what they are; digits may become keycaps.
    if text.ends_with(alone) {
        return text.len();
    }
    let mut end = text.len();
    loop {
        let seen = text[..end].trim_end_matches(is_hidden);
        end = seen.len() - seen.chars().next_back().map_or(0, char::len_utf8);
        if end == 0 || !text[..end].ends_with(is_hidden) {
            return end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::safe_lines;

    #[test]
    fn pieces_show_what_the_whole_shows() {
        let texts = [
            "plain text, 1, 2 and 3.",
            "a family 👩\u{200d}👩\u{200d}👧, keycap 1\u{fe0f}\u{20e3} and ❤\u{fe0f}\u{200d}🔥!",
            "می\u{200c}خواهم و \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "stray\u{200b}\u{202e} \u{1b}[2J\r\nnext\rline",
            "数据\u{e0100} 漢字",
        ];
        for text in texts {
            let marks: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            for first in &marks {
                for second in marks.iter().filter(|second| *second >= first) {
                    let mut pieces = Pieces::default();
                    let mut shown = String::new();
                    for piece in [&text[..*first], &text[*first..*second], &text[*second..]] {
                        shown += &safe_lines(&pieces.add(piece));
                    }
                    shown += &safe_lines(&pieces.end());
                    assert_eq!(shown, safe_lines(text), "{first} {second}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_kept_for_long() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.add("word"), "word");
        assert_eq!(pieces.add("\u{200b}"), "");
        let long = "\u{200b}".repeat(1_000);
        assert_eq!(pieces.add(&long).len(), 3_003);
    }
}
