//! Characters that a reader does not see and a model does, made visible. Every place that shows text of others, to a
//! model or to a person, takes this one.
//!
//! A character of the [table](is_hidden) stays where a script or an emoji needs it: a joiner between Arabic letters,
//! a variation selector behind an emoji. Anywhere else it is *stray*, and a mark stands in its place.

mod needed;
mod table;

use std::borrow::Cow;

use needed::{is_flag, is_needed};
use table::{first_bytes, is_selector, is_tag, may_be_hidden};

pub use table::is_hidden;

/// The text for a model, with a mark in the place of each stray character, and how many there were; nothing where there
/// is none. Control characters stay: JSON escapes them, and models know them.
///
/// Characters that come again and again are one mark with their number. A run of tag characters or of variation
/// selectors is one mark, too, which shows the ASCII text that they spell.
pub fn reveal(text: &str) -> Option<(String, usize)> {
    // Most text of tools is this.
    if text.is_ascii() {
        return None;
    }
    revealed(text, Reader::Model)
}

/// The text for a person, with a mark in the place of each stray or control character, but for the ends of lines and
/// tabs. Nothing of it commands a terminal or changes how the rest is read.
pub fn legible(text: &str) -> Cow<'_, str> {
    // A line that ends in the way of another system is no surprise to anyone.
    if text.contains("\r\n") {
        return Cow::Owned(legible(&text.replace("\r\n", "\n")).into_owned());
    }
    match revealed(text, Reader::Person) {
        Some((shown, _)) => Cow::Owned(shown),
        None => Cow::Borrowed(text),
    }
}

/// What a person would not see in a text or should not get raw, each piece with its place.
pub fn stray(text: &str) -> impl Iterator<Item = (usize, &str)> {
    Stray {
        text,
        at: 0,
        reader: Reader::Person,
    }
}

/// For whom it is made visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Model,
    Person,
}

impl Reader {
    /// Whether such a character is of interest at all.
    fn minds(self, c: char) -> bool {
        is_hidden(c) || self == Self::Person && c.is_control() && !matches!(c, '\n' | '\t')
    }

    /// The bytes that may begin such a character.
    fn first_bytes(self) -> &'static [bool; 256] {
        match self {
            Self::Model => &FIRST_BYTES,
            Self::Person => &FIRST_OR_CONTROL,
        }
    }

    /// Whether two bytes, of which the first is one of those, may begin such a character.
    fn may_mind(self, first: u8, second: Option<&u8>) -> bool {
        match second {
            _ if first.is_ascii() => true,
            Some(second) if self == Self::Person && first == 0xc2 => {
                second < &0xa0 || second == &0xad
            }
            Some(second) => may_be_hidden(first, *second),
            None => false,
        }
    }
}

/// The bytes that may begin a hidden character in UTF-8, and with them those that may begin a control character: a text
/// is read by them, and most texts have few.
const FIRST_BYTES: [bool; 256] = first_bytes();
const FIRST_OR_CONTROL: [bool; 256] = {
    let mut first = first_bytes();
    let mut byte = 0;
    while byte < 0x20 {
        first[byte] = byte != b'\n' as usize && byte != b'\t' as usize;
        byte += 1;
    }
    first[0x7f] = true;
    first[0xc2] = true;
    first
};

fn revealed(text: &str, reader: Reader) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut found = 0;
    let mut done = 0;
    let stray = Stray {
        text,
        at: 0,
        reader,
    };
    for (at, run) in stray {
        let chars = run.chars().count();
        out.push_str(&text[done..at]);
        out.push_str(&mark(run, chars));
        found += chars;
        done = at + run.len();
    }
    if found == 0 {
        return None;
    }
    out.push_str(&text[done..]);
    Some((out, found))
}

/// The stray runs of a text.
struct Stray<'a> {
    text: &'a str,
    at: usize,
    reader: Reader,
}

impl<'a> Iterator for Stray<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let first = self.reader.first_bytes();
        loop {
            let next = bytes[self.at..]
                .iter()
                .position(|byte| first[usize::from(*byte)]);
            let at = self.at + next?;
            if !self.reader.may_mind(bytes[at], bytes.get(at + 1)) {
                self.at = at + 1;
                continue;
            }
            let c = self.text[at..].chars().next()?;
            if !self.reader.minds(c) || self.stays(at, c) {
                self.at = at + c.len_utf8();
                continue;
            }
            let run = run_of(c, &self.text[at..]);
            self.at = at + run.len();
            if !is_flag(&self.text[..at], run) {
                return Some((at, run));
            }
        }
    }
}

impl Stray<'_> {
    fn stays(&self, at: usize, c: char) -> bool {
        // The mark that many files begin with; a person never needs it.
        let begins = c == '\u{feff}' && at == 0 && self.reader == Reader::Model;
        begins || is_needed(self.text, at, c)
    }
}

/// What the text begins with: tag characters, variation selectors, or the same character again and again.
fn run_of(first: char, text: &str) -> &str {
    let goes_on =
        |c: char| c == first || is_tag(first) && is_tag(c) || is_selector(first) && is_selector(c);
    let end = text.find(|c| !goes_on(c)).unwrap_or(text.len());
    &text[..end]
}

fn mark(run: &str, chars: usize) -> String {
    let first = run.chars().next().unwrap_or_default();
    if is_tag(first) {
        return format!("⟨{chars} tag characters: {:?}⟩", spelled(run));
    }
    if is_selector(first) && run.chars().any(|c| c != first) {
        return format!("⟨{chars} variation selectors: {:?}⟩", spelled(run));
    }
    let name = name(first);
    match chars {
        1 => format!("⟨{name}⟩"),
        chars => format!("⟨{name} ×{chars}⟩"),
    }
}

/// What ASCII calls its control characters. Unicode has a picture of each, but few fonts do.
const NAMES: [&str; 32] = [
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF", "CR",
    "SO", "SI", "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC",
    "FS", "GS", "RS", "US",
];

fn name(c: char) -> Cow<'static, str> {
    match NAMES.get(c as usize) {
        Some(name) => Cow::Borrowed(name),
        None if c == '\u{7f}' => Cow::Borrowed("DEL"),
        None => Cow::Owned(format!("U+{:04X}", u32::from(c))),
    }
}

/// The ASCII text that tag characters spell, or variation selectors as the bytes 0 to 255.
fn spelled(run: &str) -> String {
    let letters = run.chars().filter_map(|c| {
        let code = u32::from(c);
        let byte = match c {
            '\u{fe00}'..='\u{fe0f}' => code - 0xfe00,
            '\u{e0100}'..='\u{e01ef}' => code - 0xe0100 + 16,
            c if is_tag(c) => code - 0xe0000,
            _ => return None,
        };
        char::from_u32(byte).filter(|c| matches!(c, ' '..='~'))
    });
    letters.collect()
}
