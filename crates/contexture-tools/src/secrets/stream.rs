//! A text that comes in pieces, without the secrets that only the pieces together hold.

use std::collections::VecDeque;

use super::mask::{Found, Mask};

/// Masks a text piece by piece. Held back is only what may be a part of a secret; each piece keeps its tag, by which
/// its owner knows it.
#[derive(Debug)]
pub struct MaskedStream<T> {
    /// The text from where a secret may have begun.
    text: String,
    /// How much of that was given out.
    given: usize,
    /// Whose the rest is, and how many bytes of it.
    held: VecDeque<(T, usize)>,
}

impl<T> Default for MaskedStream<T> {
    fn default() -> Self {
        Self {
            text: String::new(),
            given: 0,
            held: VecDeque::new(),
        }
    }
}

impl<T: Clone> MaskedStream<T> {
    /// Takes a piece, and gives what can be shown by now.
    pub fn push(&mut self, mask: &(impl Mask + ?Sized), tag: T, piece: &str) -> Vec<(T, String)> {
        self.text.push_str(piece);
        self.held.push_back((tag, piece.len()));
        let found = mask.find(&self.text, true);
        self.give(found)
    }

    /// Gives what was held back: the text is over.
    pub fn finish(&mut self, mask: &(impl Mask + ?Sized)) -> Vec<(T, String)> {
        let found = mask.find(&self.text, false);
        self.give(found)
    }

    fn give(&mut self, found: Found) -> Vec<(T, String)> {
        let end = self.text.len();
        let (mut keep, mut show) = found.open.unwrap_or((end, end));
        for (range, _) in &found.hits {
            if range.start < show {
                (keep, show) = (keep.max(range.end), show.max(range.end));
            }
        }
        let mut out: Vec<(T, String)> = Vec::new();
        let mut hits = found.hits.into_iter().peekable();
        let mut at = self.given;
        while at < show {
            let Some((tag, length)) = self.held.front_mut() else {
                break;
            };
            let stop = show.min(at + *length);
            let mut shown = String::new();
            let mut from = at;
            while let Some((range, with)) = hits.peek()
                && range.start < stop
            {
                // What was given out, or replaced in an earlier piece, is not said again.
                if range.start >= at {
                    shown.push_str(&self.text[from..range.start.max(from)]);
                    shown.push_str(with);
                }
                from = range.end.clamp(from, stop);
                if range.end > stop {
                    break;
                }
                hits.next();
            }
            shown.push_str(&self.text[from..stop]);
            if !shown.is_empty() {
                out.push((tag.clone(), shown));
            }
            *length -= stop - at;
            if *length == 0 {
                self.held.pop_front();
            }
            at = stop;
        }
        // Pieces of nothing hold nobody up.
        while self.held.front().is_some_and(|(_, length)| *length == 0) {
            self.held.pop_front();
        }
        self.text.drain(..keep);
        self.given = at.max(show) - keep;
        out
    }
}
