//! Where a hidden character does its work: inside the writing of a script, a symbol with two looks, an emoji.
//!
//! A rule looks at the characters beside it alone, and a hidden one counts for no more than the mark that may take its
//! place. So text that was made visible once stays as it is.

use super::table::{is_hidden, is_selector, is_tag};

/// Whether the character at this place is needed there. One at a time: of two in a row at most the first is.
pub(super) fn is_needed(text: &str, at: usize, c: char) -> bool {
    let before = text[..at].chars().next_back();
    let mut behind = text[at + c.len_utf8()..].chars();
    let after = behind.next();
    let is = |c: Option<char>, kind: fn(char) -> bool| c.is_some_and(|c| kind(c) && !is_hidden(c));
    match c {
        // No word is broken behind each of its letters.
        '\u{ad}' => {
            let second = [text[..at].chars().nth_back(1), behind.next()];
            is(before, char::is_alphabetic)
                && is(after, char::is_alphabetic)
                && !second.contains(&Some('\u{ad}'))
        }
        '\u{34f}' => (is(before, char::is_alphabetic) || is(before, is_mark)) && is(after, is_mark),
        '\u{115f}' => is(after, is_medial),
        '\u{1160}' => is(before, is_leading),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => is(before, is_mongolian),
        '\u{180e}' => is(base(text, at), is_mongolian) && is(after, is_mongolian),
        '\u{200b}' => is(before, runs_on) && is(after, runs_on),
        '\u{200c}' => joins(text, at, after),
        '\u{200d}' => joins(text, at, after) || is(base(text, at), is_emoji) && is(after, is_emoji),
        '\u{fe00}'..='\u{fe0f}' => before.is_some_and(|base| selects(c, base, after)),
        '\u{1bca0}'..='\u{1bca3}' => is(before, is_shorthand),
        '\u{1d173}'..='\u{1d17a}' => is(before, is_music) || is(after, is_music),
        '\u{e0100}'..='\u{e01ef}' => is(before, is_han),
        _ => false,
    }
}

/// Whether the run of tags ends one of the flags that are made of them: those of England, Scotland and Wales are a black
/// flag and tags, up to one that ends them.
pub(super) fn is_flag(before: &str, run: &str) -> bool {
    let tags = |name: &str| -> String {
        let tag = |c: char| char::from_u32(0xe0000 + u32::from(c));
        name.chars().filter_map(tag).chain(['\u{e007f}']).collect()
    };
    before.ends_with('\u{1f3f4}')
        && run.starts_with(is_tag)
        && ["gbeng", "gbsct", "gbwls"]
            .iter()
            .any(|name| run == tags(name))
}

/// The character before this place, or the one whose look a needed selector there has chosen.
fn base(text: &str, at: usize) -> Option<char> {
    let before = text[..at].chars().next_back()?;
    let from = at - before.len_utf8();
    match before {
        c if is_selector(c) || matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}') => {
            is_needed(text, from, c).then(|| text[..from].chars().next_back())?
        }
        c => Some(c),
    }
}

/// Whether a joiner there touches a letter whose form depends on its neighbours, and no other hidden character.
fn joins(text: &str, at: usize, after: Option<char>) -> bool {
    let base = base(text, at).filter(|c| !is_hidden(*c));
    let is_bare = |c: Option<char>| c.is_none_or(|c| !is_hidden(c));
    let starts = at == 0;
    is_bare(after)
        && (base.is_some() || starts)
        && (base.is_some_and(is_joined) || after.is_some_and(is_joined))
}

/// Whether the variation selector gives the character before it one of the looks that Unicode lists.
fn selects(selector: char, base: char, after: Option<char>) -> bool {
    let nth = u32::from(selector) - 0xfe00;
    match base {
        c if is_hidden(c) => false,
        // Keycaps are signs of ASCII up to the cap; a zero may be slashed.
        '0'..='9' | '#' | '*' if nth == 15 => after == Some('\u{20e3}'),
        '0' | '\u{ff10}' => nth == 0,
        c if nth >= 14 => is_emoji(c),
        '\u{1000}'..='\u{109f}' | '\u{aa60}'..='\u{aa7f}' => nth == 0,
        '\u{a840}'..='\u{a877}' | '\u{10ac0}'..='\u{10aff}' => nth == 0,
        '\u{2200}'..='\u{22ff}' | '\u{2a00}'..='\u{2aff}' => nth == 0,
        '\u{2018}'..='\u{2019}' | '\u{201c}'..='\u{201d}' | '\u{3001}'..='\u{3002}' => nth <= 1,
        '\u{ff01}' | '\u{ff0c}' | '\u{ff0e}' | '\u{ff1a}'..='\u{ff1b}' | '\u{ff1f}' => nth <= 1,
        '\u{2100}'..='\u{214f}' | '\u{1d49c}'..='\u{1d4cf}' => nth <= 1,
        '\u{13000}'..='\u{1342f}' => nth <= 6,
        c => is_han(c) && nth <= 2,
    }
}

/// Letters of scripts that are joined, stacked or turned by joiners: Arabic's and its kin, Hebrew's, those of India and
/// of the countries around it, Mongolian's.
fn is_joined(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{8ff}'
        | '\u{900}'..='\u{dff}'
        | '\u{f00}'..='\u{109f}'
        | '\u{1700}'..='\u{18af}'
        | '\u{1900}'..='\u{19ff}'
        | '\u{1a00}'..='\u{1aaf}'
        | '\u{1b00}'..='\u{1c4f}'
        | '\u{1cd0}'..='\u{1cff}'
        | '\u{a800}'..='\u{a8ff}'
        | '\u{a900}'..='\u{a95f}'
        | '\u{a980}'..='\u{aaff}'
        | '\u{abc0}'..='\u{abff}'
        | '\u{fb1d}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}'
        | '\u{10a00}'..='\u{10aff}'
        | '\u{10b80}'..='\u{10baf}'
        | '\u{10d00}'..='\u{10d3f}'
        | '\u{10f30}'..='\u{10fdf}'
        | '\u{11000}'..='\u{11fff}'
        | '\u{1e900}'..='\u{1e95f}')
}

/// Letters of scripts that put no blank between words: Thai, Lao, Burmese, Khmer, Tai Tham.
fn runs_on(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{19e0}'..='\u{19ff}'
        | '\u{1a20}'..='\u{1aaf}'
        | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aa7f}')
}

/// Emoji and what they are made of, and the symbols of their blocks, most of which have two looks.
fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{a9}'
        | '\u{ae}'
        | '\u{203c}'
        | '\u{2049}'
        | '\u{2122}'
        | '\u{2139}'
        | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}'
        | '\u{24c2}'
        | '\u{25a0}'..='\u{27bf}'
        | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}'
        | '\u{3030}'
        | '\u{303d}'
        | '\u{3297}'
        | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

fn is_han(c: char) -> bool {
    matches!(c,
        '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

fn is_mongolian(c: char) -> bool {
    matches!(c, '\u{1807}' | '\u{1810}'..='\u{18af}')
}

fn is_leading(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{115e}' | '\u{a960}'..='\u{a97c}')
}

fn is_medial(c: char) -> bool {
    matches!(c, '\u{1161}'..='\u{11a7}' | '\u{d7b0}'..='\u{d7c6}')
}

fn is_shorthand(c: char) -> bool {
    matches!(c, '\u{1bc00}'..='\u{1bc9f}')
}

fn is_music(c: char) -> bool {
    matches!(c, '\u{1d100}'..='\u{1d1ff}')
}

/// Marks that stand above or below a letter, of the scripts in which their order matters.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{487}'
        | '\u{591}'..='\u{5c7}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{6d6}'..='\u{6ed}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}')
}
