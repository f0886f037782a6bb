//! Recognises tokens in what agents say, in whatever spelling, without knowing them.
//!
//! Kept of each are its first digits, which are shown anyway, and a keyed hash of its first half. So a token that
//! was cut is recognised as well, and what passes unrecognised lacks half of it at least.

use std::collections::{HashMap, VecDeque};

use contexture_tools::secrets::mask::{Found, Mask};
use contexture_tools::secrets::spelling::{self, Spelled};

use super::{DIGITS, SHOWN};

/// The digits of a token's first half.
const HEAD: usize = DIGITS / 2;
/// The most bytes between two digits of one token: line breaks, dashes, quotes.
const MAX_GAP: usize = 16;
/// How many tokens that no longer count are recognised all the same: an agent may say its token when it ends.
const MAX_GONE: usize = 1_024;
/// What stands in the place of a token's digits behind those that are shown.
const MASKED: &str = "…";

/// What is known of secrets in digits.
#[derive(Default)]
pub(super) struct Hidden {
    heads: HashMap<u32, Vec<[u8; 32]>>,
    gone: VecDeque<Head>,
}

/// What is known of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    first: u32,
    hash: [u8; 32],
}

impl Head {
    /// That of a secret; none where it is not one in digits.
    pub fn new(key: &[u8; 32], secret: &str) -> Option<Self> {
        let head = secret.get(..HEAD)?.to_ascii_lowercase();
        let first = u32::from_str_radix(head.get(..SHOWN)?, 16).ok()?;
        let hash = *blake3::keyed_hash(key, head.as_bytes()).as_bytes();
        Some(Self { first, hash })
    }
}

impl Hidden {
    pub fn insert(&mut self, head: Head) {
        self.heads.entry(head.first).or_default().push(head.hash);
    }

    /// It no longer counts.
    pub fn retire(&mut self, head: Head) {
        self.gone.push_back(head);
        if self.gone.len() <= MAX_GONE {
            return;
        }
        if let Some(oldest) = self.gone.pop_front()
            && let Some(hashes) = self.heads.get_mut(&oldest.first)
        {
            hashes.retain(|hash| *hash != oldest.hash);
            if hashes.is_empty() {
                self.heads.remove(&oldest.first);
            }
        }
    }

    pub fn find(&self, key: &[u8; 32], text: &str, more: bool) -> Found {
        if self.heads.is_empty() {
            return Found::default();
        }
        let found = Scan::new(self, key, text, false).run(more);
        if !spelling::has_any(text) {
            return found;
        }
        // Once more as a reader of URLs or JSON sees it: the same characters can mean either.
        found.and(Scan::new(self, key, text, true).run(more))
    }
}

/// One way through a text.
struct Scan<'a> {
    hidden: &'a Hidden,
    key: &'a [u8; 32],
    text: &'a str,
    /// Whether characters may be spelled.
    spelled: bool,
    /// How many digits came without a break.
    digits: usize,
    /// The last of them, as a number, and where they begin.
    last: u32,
    starts: [usize; SHOWN],
    /// The bytes since the last one.
    gap: usize,
    /// Tokens that have begun.
    begun: Vec<Begun>,
    found: Found,
}

/// A token that may have begun.
struct Begun {
    start: usize,
    /// Where the digits that are shown end.
    shown: usize,
    /// The end of its last digit so far.
    end: usize,
    head: Vec<u8>,
    digits: usize,
    /// It is one: its first half has come.
    is_one: bool,
}

enum Kind {
    Digit(u8),
    Gap,
    Break,
}

fn kind(c: char) -> Kind {
    match c {
        '0'..='9' | 'a'..='f' | 'A'..='F' => {
            Kind::Digit(c.to_digit(16).map_or(0, |digit| digit as u8))
        }
        c if c.is_alphanumeric() => Kind::Break,
        _ => Kind::Gap,
    }
}

impl<'a> Scan<'a> {
    fn new(hidden: &'a Hidden, key: &'a [u8; 32], text: &'a str, spelled: bool) -> Self {
        Self {
            hidden,
            key,
            text,
            spelled,
            digits: 0,
            last: 0,
            starts: [0; SHOWN],
            gap: 0,
            begun: Vec::new(),
            found: Found::default(),
        }
    }

    fn run(mut self, more: bool) -> Found {
        let mut at = 0;
        while let Some(plain) = self.text[at..].chars().next() {
            let mut read = (plain, plain.len_utf8());
            if self.spelled {
                match spelling::read(self.text, at) {
                    Some(Spelled::Char(c, length)) => read = (c, length),
                    _ if more => break,
                    _ => {}
                }
            }
            let (c, length) = read;
            match kind(c) {
                Kind::Digit(digit) => self.digit(digit, at, at + length),
                Kind::Break => self.stop(),
                Kind::Gap => {
                    self.gap += length;
                    if self.gap > MAX_GAP {
                        self.stop();
                    }
                }
            }
            at += length;
        }
        if more {
            self.found.open = self.open(at);
        } else {
            self.stop();
        }
        self.found
    }

    fn digit(&mut self, digit: u8, start: usize, end: usize) {
        self.gap = 0;
        self.starts[self.digits % SHOWN] = start;
        self.digits += 1;
        self.last = self.last << 4 | u32::from(digit);
        let (hidden, key) = (self.hidden, self.key);
        let mut whole = None;
        self.begun.retain_mut(|begun| {
            begun.digits += 1;
            begun.end = end;
            if begun.head.len() < HEAD {
                begun.head.push(b"0123456789abcdef"[usize::from(digit)]);
            }
            if begun.digits == HEAD {
                let hash = *blake3::keyed_hash(key, &begun.head).as_bytes();
                let known = u32::from_str_radix(
                    std::str::from_utf8(&begun.head[..SHOWN]).unwrap_or_default(),
                    16,
                );
                let known = known.ok().and_then(|first| hidden.heads.get(&first));
                begun.is_one = known.is_some_and(|hashes| hashes.contains(&hash));
                return begun.is_one;
            }
            if begun.digits == DIGITS {
                whole = Some((begun.shown, end));
            }
            true
        });
        if let Some((shown, end)) = whole {
            self.found.hits.push((shown..end, MASKED));
            self.begun.clear();
            self.digits = 0;
        } else if self.digits >= SHOWN && hidden.heads.contains_key(&self.last) {
            self.begun.push(Begun {
                start: self.starts[self.digits % SHOWN],
                shown: end,
                end,
                head: format!("{:08x}", self.last).into_bytes(),
                digits: SHOWN,
                is_one: false,
            });
        }
    }

    /// No token goes on here. One that was cut is masked as far as it goes.
    fn stop(&mut self) {
        let cut = self.begun.iter().find(|begun| begun.is_one);
        if let Some(cut) = cut {
            self.found.hits.push((cut.shown..cut.end, MASKED));
        }
        self.begun.clear();
        (self.digits, self.gap) = (0, 0);
    }

    /// What may be the beginning of a token at the end of the text, which was read until `at`.
    fn open(&self, at: usize) -> Option<(usize, usize)> {
        let begun = self.begun.iter().map(|begun| begun.start).min();
        let shown = self.begun.iter().map(|begun| begun.shown).min();
        // Digits that are shown anyway hold nothing up.
        let shown = shown.unwrap_or(self.text.len());
        let few = self.digits.min(SHOWN - 1);
        let last = self.starts[(self.digits - few) % SHOWN];
        let last = if few > 0 { last } else { at };
        let start = begun.unwrap_or(last).min(last);
        (start < self.text.len()).then_some((start, shown))
    }
}

impl Mask for super::Tokens {
    fn find(&self, text: &str, more: bool) -> Found {
        let hidden = self.hidden.read();
        let hidden = hidden.unwrap_or_else(std::sync::PoisonError::into_inner);
        hidden.find(&self.key, text, more)
    }
}
