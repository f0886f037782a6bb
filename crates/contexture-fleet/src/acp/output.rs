//! The end of what a command printed, in bounded memory.

use std::borrow::Cow;

use serde_json::{Value, json};

/// The end of what a command printed.
pub(super) struct Output {
    kept: Vec<u8>,
    limit: usize,
    /// The number of bytes that were printed.
    pub total: u64,
}

impl Output {
    pub fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit,
            total: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.kept.extend_from_slice(bytes);
        // Twice as much is kept before the beginning goes, so that it is not moved for every byte.
        if self.kept.len() > self.limit.saturating_mul(2) {
            self.kept.drain(..self.kept.len() - self.limit);
        }
    }

    /// From now on only so many bytes of the end.
    pub fn keep(&mut self, limit: usize) {
        self.limit = self.limit.min(limit);
        let beyond = self.kept.len().saturating_sub(self.limit);
        self.kept.drain(..beyond);
        self.kept.shrink_to_fit();
    }

    pub fn shown(&self) -> Value {
        let (text, cut) = self.tail(self.limit);
        json!({"output": text, "truncated": cut > 0})
    }

    /// The end of it, with a mark that says how much is missing.
    pub fn end(&self, limit: usize) -> String {
        match self.tail(limit.min(self.limit)) {
            (text, 0) => text.into_owned(),
            (text, cut) => format!("[{cut} bytes were cut]\n{text}"),
        }
    }

    /// So many bytes of the end, and how many came before.
    fn tail(&self, limit: usize) -> (Cow<'_, str>, u64) {
        let mut start = self.kept.len().saturating_sub(limit);
        let truncated = self.total > (self.kept.len() - start) as u64;
        // Not inside a character.
        while truncated && self.kept.get(start).is_some_and(|byte| byte & 0xC0 == 0x80) {
            start += 1;
        }
        let kept = &self.kept[start..];
        (
            String::from_utf8_lossy(kept),
            self.total - kept.len() as u64,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_keeps_its_end_at_whole_characters() {
        let mut output = Output::new(5);
        output.push("ab".as_bytes());
        assert_eq!(output.shown(), json!({"output": "ab", "truncated": false}));
        output.push("äöü".as_bytes());
        assert_eq!(output.shown(), json!({"output": "öü", "truncated": true}));
        for _ in 0..10_000 {
            output.push(b"xyz");
        }
        assert_eq!(
            output.shown(),
            json!({"output": "yzxyz", "truncated": true})
        );
        assert!(output.kept.len() <= 10);
    }

    #[test]
    fn what_was_released_is_kept_shorter() {
        let mut output = Output::new(1_000);
        output.push(&[b'x'; 900]);
        assert_eq!(output.end(1_000), "x".repeat(900));
        assert_eq!(output.end(2), "[898 bytes were cut]\nxx");
        output.keep(10);
        assert_eq!(
            output.end(1_000),
            format!("[890 bytes were cut]\n{}", "x".repeat(10))
        );
        assert!(output.kept.capacity() < 100);
    }
}
