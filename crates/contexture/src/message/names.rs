//! Ids and names that a provider takes: legal, and each once.

use std::collections::{BTreeMap, BTreeSet};

/// The longest call id that OpenAI takes. Anthropic names no limit; those who serve its models
/// elsewhere do.
pub(super) const ID_MAX: usize = 64;

/// What stands for a name of which nothing is left.
const UNNAMED: &str = "unnamed";

/// Gives out legal names, each once, in order: a name depends on those before it only.
pub(super) struct Unique {
    max: usize,
    taken: BTreeSet<String>,
    /// The number to try next for a name that was asked for again.
    next: BTreeMap<String, usize>,
}

impl Unique {
    pub fn new(max: usize) -> Self {
        Self {
            max,
            taken: BTreeSet::new(),
            next: BTreeMap::new(),
        }
    }

    /// The legal form of `wish`, numbered from 2 where it is taken.
    pub fn claim(&mut self, wish: &str) -> String {
        let plain = legal(wish, self.max);
        if self.taken.insert(plain.clone()) {
            return plain;
        }
        let next = self.next.entry(plain.clone()).or_insert(2);
        loop {
            let number = format!("_{next}");
            *next += 1;
            let mut name = plain.clone();
            name.truncate(self.max - number.len());
            name.push_str(&number);
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The names of tools as they are sent: those of the specs first, then those that only calls name.
pub(super) struct ToolNames {
    unique: Unique,
    /// From a tool's own name to the one that is sent.
    known: BTreeMap<String, String>,
    /// Names that may not change.
    fixed: BTreeSet<String>,
    /// Each name that was sent for a spec, with the tool's own.
    sent: Vec<(String, String)>,
}

impl ToolNames {
    /// None yet; each will have `max` characters at most.
    pub fn new(max: usize) -> Self {
        Self {
            unique: Unique::new(max),
            known: BTreeMap::new(),
            fixed: BTreeSet::new(),
            sent: Vec::new(),
        }
    }

    /// Keeps the name of a tool that is the provider's own.
    pub fn fix(&mut self, name: &str) {
        self.unique.taken.insert(name.to_owned());
        self.fixed.insert(name.to_owned());
        self.sent.push((name.to_owned(), name.to_owned()));
    }

    /// The name for one more spec. Of several specs with one name, calls mean the first.
    pub fn declare(&mut self, own: &str) -> String {
        let name = self.unique.claim(own);
        self.known.entry(own.to_owned()).or_insert(name.clone());
        self.sent.push((name.clone(), own.to_owned()));
        name
    }

    /// The name for a call.
    pub fn called(&mut self, own: &str) -> String {
        if let Some(name) = self.known.get(own) {
            return name.clone();
        }
        let name = match self.fixed.get(own) {
            Some(name) => name.clone(),
            None => self.unique.claim(own),
        };
        self.known.insert(own.to_owned(), name.clone());
        name
    }

    /// The name of a tool that there is a spec for.
    pub fn declared(&self, own: &str) -> Option<&str> {
        let known = self.known.get(own).or_else(|| self.fixed.get(own))?;
        Some(known)
    }

    pub fn into_sent(self) -> Vec<(String, String)> {
        self.sent
    }
}

/// `name` with what the API does not take replaced, and no longer than `max`.
pub(crate) fn legal(name: &str, max: usize) -> String {
    let legal: String = name
        .chars()
        .take(max)
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
            _ => '_',
        })
        .collect();
    if legal.is_empty() {
        UNNAMED.to_owned()
    } else {
        legal
    }
}

/// A name of at least the length that `wish` has once it is sent, number and all: a number counts
/// no further than there are names, and no memory holds as many as eleven digits name.
pub(super) fn longest(wish: &str, max: usize) -> String {
    const NUMBER: usize = "_12345678901".len();
    let mut name = legal(wish, max);
    let len = (name.len() + NUMBER).min(max);
    name.extend(std::iter::repeat_n('_', len - name.len()));
    name
}
