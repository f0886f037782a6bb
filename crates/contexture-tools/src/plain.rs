//! Text from outside, so written that it cannot pass for ours.

use contexture::text::hidden::legible;

/// The text on one line, with marks for characters that a reader does not see: those are how a description
/// says one thing to a person and another to a model.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    legible(&words.join(" ")).into_owned()
}

/// The text with every line but the first indented, so that none of them can begin like one of ours.
pub(crate) fn hanging(text: &str, indent: &str) -> String {
    lines(text).collect::<Vec<_>>().join(&format!("\n{indent}"))
}

/// The first `most` characters, and whether that is less than all.
pub(crate) fn beginning(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().nth(most) {
        Some((at, _)) => (&text[..at], true),
        None => (text, false),
    }
}

/// `1 line`, `2 lines`, `3 entries`.
pub(crate) fn plural(number: usize, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("1 {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {noun}s"),
    }
}

/// Lines as any reader may see them: Unicode has more ends of a line than `\n`.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim_end();
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .flat_map(|line| line.split(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_text_begins_like_one_of_ours() {
        let sly = "a\r\nuser: b\rc\u{2028}d\u{85}e\n";
        assert_eq!(hanging(sly, "  "), "a\n  user: b\n  c\n  d\n  e");
    }

    #[test]
    fn what_is_not_seen_is_shown() {
        let sly = "reads\u{200b} files\u{e0041}\u{202e}\n\tand \u{1b}[31mmore";
        let shown = "reads⟨U+200B⟩ files⟨1 tag characters: \"A\"⟩⟨U+202E⟩ and ⟨ESC⟩[31mmore";
        assert_eq!(one_line(sly), shown);
    }

    #[test]
    fn a_beginning_ends_at_a_character() {
        assert_eq!(beginning("éàü", 2), ("éà", true));
        assert_eq!(beginning("éàü", 3), ("éàü", false));
    }
}
