//! What a text is made of, as far as it decides how tokenizers differ on it.

use std::collections::HashSet;
use std::sync::LazyLock;

/// What is counted. Each has its weights in the table of [`super::estimate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trait {
    /// 1 for every text.
    One,
    /// Ten times the square root of the `o200k_base` tokens: what a text may stray from the
    /// average grows with its length, but slower than it.
    Root,
    /// Tokens of `o200k_base`.
    Tokens,
    /// Frequent words that are one token even in the smallest vocabulary measured (`common.txt`).
    Common,
    /// Lower-case letters that stand alone.
    Single,
    /// All other words in lower case or with one capital in front.
    Rare,
    /// Letters 4 to 9 of those.
    RareLength,
    /// Letters from the tenth on of those.
    RareTail,
    /// Words that start with a capital.
    Capital,
    /// Letters of words in capitals.
    Capitals,
    /// Places where two words meet inside a run of letters, as in `camelCase`.
    Joint,
    /// ASCII digits.
    Digit,
    /// ASCII punctuation that is no repeat.
    Punctuation,
    /// Letters that repeat the two before, punctuation that repeats the last but one.
    Repeat,
    /// Sixteens of spaces in a row.
    Spaces,
    /// Newlines after a space or tab.
    Trailing,
    /// Newlines after a newline.
    BlankLine,
    /// Tabs.
    Tab,
    /// Carriage returns.
    Return,
    /// Other ASCII control characters.
    Control,
    /// Latin letters beyond ASCII.
    Latin,
    /// Other characters of two bytes: Greek, Cyrillic, Hebrew, Arabic.
    TwoBytes,
    /// Chinese characters.
    Han,
    /// Japanese syllables.
    Kana,
    /// Korean syllables.
    Hangul,
    /// Other characters of three bytes: the scripts of India, Thai, Georgian, the joints of emoji.
    ThreeBytes,
    /// General punctuation, arrows, boxes, full-width forms.
    Symbol,
    /// Characters of four bytes, most of them emoji, and those of any script that repeat the two
    /// before.
    FourBytes,
}

const TRAITS: usize = Trait::FourBytes as usize + 1;

/// How often each trait occurs in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape([usize; TRAITS]);

impl Shape {
    /// Reads `text` once. `tokens` are its `o200k_base` tokens.
    pub(super) fn of(text: &str, tokens: usize) -> Self {
        let mut shape = Self([0; TRAITS]);
        shape.add(Trait::One, 1);
        shape.add(Trait::Root, tokens.saturating_mul(100).isqrt());
        shape.add(Trait::Tokens, tokens);
        let (mut rest, mut before) = (text, None);
        while let Some((run, class)) = first_run(rest) {
            shape.read(run, class, before);
            before = Some(class);
            rest = rest.get(run.len()..).unwrap_or_default();
        }
        shape
    }

    pub(super) fn get(&self, of: Trait) -> usize {
        self.0.get(of as usize).copied().unwrap_or_default()
    }

    fn add(&mut self, to: Trait, n: usize) {
        if let Some(count) = self.0.get_mut(to as usize) {
            *count += n;
        }
    }

    fn read(&mut self, run: &str, class: Class, before: Option<Class>) {
        let bytes = run.as_bytes();
        match class {
            Class::Letters => self.letters(bytes),
            Class::Digits => self.add(Trait::Digit, bytes.len()),
            Class::Punctuation => {
                let repeats = bytes.windows(3).filter(|w| w.first() == w.last()).count();
                self.add(Trait::Repeat, repeats);
                self.add(Trait::Punctuation, bytes.len() - repeats);
            }
            Class::Spaces => self.add(Trait::Spaces, bytes.len() / 16),
            Class::Newlines => {
                self.add(Trait::BlankLine, bytes.len() - 1);
                let trailing = matches!(before, Some(Class::Spaces | Class::Tabs));
                self.add(Trait::Trailing, usize::from(trailing));
            }
            Class::Tabs => self.add(Trait::Tab, bytes.len()),
            Class::Returns => self.add(Trait::Return, bytes.len()),
            Class::Controls => self.add(Trait::Control, bytes.len()),
            Class::Beyond => self.beyond(run),
        }
    }

    fn beyond(&mut self, run: &str) {
        let mut before = [None; 2];
        for c in run.chars() {
            // Where one vocabulary has a token for three equal characters, another spells each.
            let repeat = before == [Some(c); 2];
            self.add(if repeat { Trait::FourBytes } else { script(c) }, 1);
            before = [before[1], Some(c)];
        }
    }

    fn letters(&mut self, mut run: &[u8]) {
        let repeats = run
            .windows(3)
            .filter(|w| w.iter().all(|b| w.first() == Some(b)))
            .count();
        self.add(Trait::Repeat, repeats);
        let mut words = 0;
        while !run.is_empty() {
            let (word, rest) = run.split_at(first_word(run));
            self.word(word);
            words += 1;
            run = rest;
        }
        self.add(Trait::Joint, words - 1);
    }

    fn word(&mut self, word: &[u8]) {
        let capital = word.first().is_some_and(u8::is_ascii_uppercase);
        if capital && word.last().is_some_and(u8::is_ascii_uppercase) {
            return self.add(Trait::Capitals, word.len());
        }
        self.add(Trait::Capital, usize::from(capital));
        if word.len() == 1 {
            self.add(Trait::Single, 1);
        } else if is_common(word) {
            self.add(Trait::Common, 1);
        } else {
            self.add(Trait::Rare, 1);
            self.add(Trait::RareLength, word.len().clamp(3, 9) - 3);
            self.add(Trait::RareTail, word.len().max(9) - 9);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letters,
    Digits,
    Punctuation,
    Spaces,
    Newlines,
    Tabs,
    Returns,
    Controls,
    Beyond,
}

impl Class {
    fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Self::Letters,
            b'0'..=b'9' => Self::Digits,
            b' ' => Self::Spaces,
            b'\n' => Self::Newlines,
            b'\t' => Self::Tabs,
            b'\r' => Self::Returns,
            b'!'..=b'~' => Self::Punctuation,
            0..=0x1f | 0x7f => Self::Controls,
            0x80.. => Self::Beyond,
        }
    }
}

/// The bytes at the start of `text` that are of one class. A class is all ASCII or none, so the
/// run ends where a character does.
fn first_run(text: &str) -> Option<(&str, Class)> {
    let class = Class::of(*text.as_bytes().first()?);
    let end = text.bytes().position(|b| Class::of(b) != class);
    Some((text.get(..end.unwrap_or(text.len()))?, class))
}

/// Where the first word of a run of letters ends: `HTTP|Server`, `camel|Case`.
fn first_word(run: &[u8]) -> usize {
    let capitals = run.iter().take_while(|b| b.is_ascii_uppercase()).count();
    let small = run.iter().skip(capitals);
    match small.take_while(|b| b.is_ascii_lowercase()).count() {
        0 => capitals,
        // The last capital belongs to the word behind it.
        _ if capitals > 1 => capitals - 1,
        small => capitals + small,
    }
}

fn is_common(word: &[u8]) -> bool {
    static WORDS: LazyLock<HashSet<&[u8]>> = LazyLock::new(|| {
        let words = include_str!("common.txt").split_whitespace();
        words.map(str::as_bytes).collect()
    });
    let mut lower = [0; 11];
    match lower.get_mut(..word.len()) {
        Some(lower) => {
            lower.copy_from_slice(word);
            lower.make_ascii_lowercase();
            WORDS.contains(&*lower)
        }
        // Longer than any of them.
        None => false,
    }
}

fn script(c: char) -> Trait {
    match c {
        '\0'..='\u{24f}' => Trait::Latin,
        ..='\u{7ff}' => Trait::TwoBytes,
        '\u{10000}'.. => Trait::FourBytes,
        // What joins and colours emoji costs as they do.
        '\u{200d}' | '\u{20e3}' | '\u{fe00}'..='\u{fe0f}' => Trait::ThreeBytes,
        '\u{4e00}'..='\u{9fff}' => Trait::Han,
        '\u{3040}'..='\u{30ff}' => Trait::Kana,
        '\u{ac00}'..='\u{d7a3}' => Trait::Hangul,
        '\u{2000}'..='\u{303f}' | '\u{fe00}'..='\u{ffff}' => Trait::Symbol,
        _ => Trait::ThreeBytes,
    }
}
