//! The memory that JSON takes once it is parsed, bounded from its bytes alone.
//!
//! The bytes that are received say little: `[0],` is four of them and several hundred bytes in memory. So
//! whatever reads JSON from outside looks at it here first, and refuses what would take too much before
//! anything is allocated. The bound holds for [`Value`], and for types of ours, which are smaller.

use serde_json::Value;

/// A value in an array that has just doubled.
const VALUE: usize = 144;
/// What a member of an object takes beyond that: its key's hash and place, in a table that has just doubled.
const MEMBER: usize = 80;
/// The first allocation of an array.
const ARRAY: usize = 304;
/// The first allocations of an object.
const OBJECT: usize = 392;
/// A string's allocation beyond its bytes.
const STRING: usize = 32;
/// The most that one byte of JSON can stand for.
const MAX_PER_BYTE: usize = OBJECT;

const _: () = assert!(2 * size_of::<Value>() <= VALUE);
const _: () = assert!(2 * (size_of::<Value>() + size_of::<String>() + 8 + 8) <= VALUE + MEMBER);

/// What each byte outside of a string stands for.
const COST: [u16; 256] = {
    let mut cost = [0; 256];
    cost[b',' as usize] = VALUE as u16;
    cost[b':' as usize] = MEMBER as u16;
    cost[b'[' as usize] = ARRAY as u16;
    cost[b'{' as usize] = OBJECT as u16;
    cost[b'"' as usize] = STRING as u16;
    cost
};

/// An upper bound of the memory that JSON takes, as far as its text has come.
#[derive(Debug, Clone, Default)]
pub struct Footprint {
    bytes: usize,
    in_string: bool,
    escaped: bool,
}

impl Footprint {
    /// Adds the next bytes of the text, wherever it is cut.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = if self.escaped {
                self.escaped = false;
                self.bytes += 1;
                &rest[1..]
            } else if self.in_string {
                let end = end_of_string(rest);
                self.in_string = end.is_none();
                // A backslash at the end of what has come decides on what comes next.
                self.escaped = self.in_string && backslashes(rest) % 2 == 1;
                self.bytes += end.unwrap_or(rest.len());
                end.map_or(&[], |end| &rest[end + 1..])
            } else {
                // A loop without branches: this is where the time goes.
                let end = memchr::memchr(b'"', rest).map_or(rest.len(), |at| at + 1);
                let cost = |byte: &u8| usize::from(COST[usize::from(*byte)]);
                self.bytes += rest[..end].iter().map(cost).sum::<usize>();
                self.in_string = rest[end - 1] == b'"';
                &rest[end..]
            };
        }
    }

    /// The memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Where a string ends that has begun: at the first quote behind an even number of backslashes.
fn end_of_string(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr(b'"', &text[from..])?;
        if backslashes(&text[from..at]).is_multiple_of(2) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// How many stand at the end.
fn backslashes(text: &[u8]) -> usize {
    text.iter().rev().take_while(|byte| **byte == b'\\').count()
}

/// Whether a JSON text takes at most so much memory once it is parsed. Short ones are not even looked at.
pub fn fits(text: &[u8], max_held: usize) -> bool {
    /// How often the sum is looked at.
    const BLOCK: usize = 64 << 10;
    if text.len().saturating_mul(MAX_PER_BYTE) <= max_held {
        return true;
    }
    let mut footprint = Footprint::default();
    text.chunks(BLOCK).all(|block| {
        footprint.add(block);
        footprint.bytes() <= max_held
    })
}

/// The memory that a value takes, about.
pub fn held(value: &Value) -> usize {
    let text = |text: &String| STRING + text.len();
    let inside = match value {
        Value::String(all) => text(all),
        Value::Array(all) => all.iter().map(held).sum(),
        Value::Object(all) => all
            .iter()
            .map(|(key, value)| MEMBER + text(key) + held(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE + inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &[u8]) -> usize {
        let mut footprint = Footprint::default();
        footprint.add(text);
        footprint.bytes()
    }

    #[test]
    fn what_stands_in_a_string_is_text() {
        assert_eq!(of(br#""[[[{{{,,,:::""#), STRING + 12);
        assert_eq!(of(br#""\"[\\","#), STRING + 5 + VALUE);
        assert_eq!(
            of(br#"{"a":[1,"b"]}"#),
            OBJECT + 2 * (STRING + 1) + MEMBER + ARRAY + VALUE
        );
    }

    #[test]
    fn where_the_text_is_cut_does_not_matter() {
        let text = br#"{"a\"\\":[1,"\u0041[",{}],"":"\\"}"#;
        for cut in 0..=text.len() {
            let mut footprint = Footprint::default();
            footprint.add(&text[..cut]);
            footprint.add(&text[cut..]);
            assert_eq!(footprint.bytes(), of(text), "cut at {cut}");
        }
    }

    /// The everyday line costs a comparison.
    #[test]
    fn short_texts_are_not_looked_at() {
        assert!(fits(&[b'{'; 1_000], 1_000 * MAX_PER_BYTE));
        assert!(!fits(&[b'{'; 1_001], 1_000 * MAX_PER_BYTE));
        assert!(fits("a".repeat(1 << 20).as_bytes(), 1));
        assert!(!fits(
            format!("\"{}\"", "a".repeat(1 << 20)).as_bytes(),
            1 << 20
        ));
    }
}
