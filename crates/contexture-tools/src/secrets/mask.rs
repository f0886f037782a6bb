//! Texts and values without the secrets in them, whatever recognises those.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value};

/// Recognises secrets.
pub trait Mask: Send + Sync {
    /// The secrets in a text. With `more`, the text goes on, so that its end may be the beginning of one.
    fn find(&self, text: &str, more: bool) -> Found;
}

/// What of a text is secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// What to replace and what by, in order and apart from each other.
    pub hits: Vec<(Range<usize>, &'static str)>,
    /// Where a secret may begin whose rest is not there yet, and how far the text may be shown all the same.
    pub open: Option<(usize, usize)>,
}

impl Found {
    /// What is found by either.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.hits.extend(other.hits);
        self.hits.sort_by_key(|(range, _)| range.start);
        let mut apart: Vec<(Range<usize>, &'static str)> = Vec::with_capacity(self.hits.len());
        for (range, with) in self.hits {
            match apart.last_mut() {
                Some((last, _)) if range.start < last.end => last.end = last.end.max(range.end),
                _ => apart.push((range, with)),
            }
        }
        let open = match (self.open, other.open) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.min(d))),
            (a, b) => a.or(b),
        };
        Self { hits: apart, open }
    }
}

/// The text with its secrets masked.
pub fn hide<'a>(mask: &(impl Mask + ?Sized), text: &'a str) -> Cow<'a, str> {
    let found = mask.find(text, false);
    if found.hits.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    for (range, with) in found.hits {
        out.push_str(&text[copied..range.start]);
        out.push_str(with);
        copied = range.end;
    }
    Cow::Owned(out + &text[copied..])
}

/// The same for a text of one's own.
pub fn hide_text(mask: &(impl Mask + ?Sized), text: &mut String) {
    if let Cow::Owned(masked) = hide(mask, text) {
        *text = masked;
    }
}

/// The same for every text of a value, its keys among them.
pub fn hide_in(mask: &(impl Mask + ?Sized), value: &mut Value) {
    match value {
        Value::String(text) => hide_text(mask, text),
        Value::Array(values) => values.iter_mut().for_each(|value| hide_in(mask, value)),
        Value::Object(map) => hide_in_map(mask, map),
        _ => {}
    }
}

/// The same for every key and value of an object.
pub fn hide_in_map(mask: &(impl Mask + ?Sized), map: &mut Map<String, Value>) {
    map.values_mut().for_each(|value| hide_in(mask, value));
    let has_secret = |key: &String| matches!(hide(mask, key), Cow::Owned(_));
    if map.keys().any(has_secret) {
        let old = std::mem::take(map);
        map.extend(old.into_iter().map(|(mut key, value)| {
            hide_text(mask, &mut key);
            (key, value)
        }));
    }
}

/// Two masks at once.
impl<A: Mask, B: Mask> Mask for (A, B) {
    fn find(&self, text: &str, more: bool) -> Found {
        self.0.find(text, more).and(self.1.find(text, more))
    }
}

impl<M: Mask + ?Sized> Mask for std::sync::Arc<M> {
    fn find(&self, text: &str, more: bool) -> Found {
        (**self).find(text, more)
    }
}

impl<M: Mask + ?Sized> Mask for &M {
    fn find(&self, text: &str, more: bool) -> Found {
        (**self).find(text, more)
    }
}

/// No secrets at all.
impl Mask for () {
    fn find(&self, _: &str, _: bool) -> Found {
        Found::default()
    }
}
