//! Keys never reach the disk: what tools bring back and models say is cleaned first.
//!
//! [`Secrets`] knows values. Other masks may know secrets otherwise ([`mask::Mask`]); what all share is how a text
//! may spell a character ([`spelling`]), and how a secret is found whose parts come one after another ([`MaskedStream`]).

pub mod mask;
pub mod spelling;
mod stream;

use std::borrow::Cow;

use contexture::{Content, Message, Part};

use crate::Outcome;
use mask::{Found, Mask};
use spelling::Spelled;
pub use stream::MaskedStream;

/// What must not be seen: values of the environment that are keys by their name, and whatever looks
/// like one.
#[derive(Default, Clone)]
pub struct Secrets {
    values: Vec<String>,
    /// The bytes that one of the values can begin with, in some spelling.
    begins: Begins,
}

/// A set of bytes.
#[derive(Clone)]
struct Begins([bool; 256]);

impl Default for Begins {
    fn default() -> Self {
        Self([false; 256])
    }
}

/// A shorter value would be found in ordinary words.
const SHORTEST: usize = 8;
/// What stands in the place of a value.
const MASKED: &str = "[masked]";

impl Secrets {
    /// The keys of this process's environment.
    pub fn from_env() -> Self {
        let vars = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::of_variables(vars)
    }

    /// Those of these variables that are keys by their name.
    pub fn of_variables(all: impl IntoIterator<Item = (String, String)>) -> Self {
        let all = all
            .into_iter()
            .filter(|(name, _)| contexture_model::names_key(name));
        Self::of(all.map(|(_, value)| value))
    }

    /// These values.
    pub fn of(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values
            .into_iter()
            .map(|value| value.trim().to_owned())
            .filter(|value| value.len() >= SHORTEST)
            .collect();
        // One may be the beginning of another: the longer goes first, so that nothing of it stays.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        let mut begins = Begins::default();
        for first in values.iter().filter_map(|value| value.bytes().next()) {
            begins.0[usize::from(first.to_ascii_lowercase())] = true;
            begins.0[usize::from(first.to_ascii_uppercase())] = true;
            for escape in [b'%', b'\\', b'&', 0xEF] {
                begins.0[usize::from(escape)] = true;
            }
        }
        Self { values, begins }
    }

    /// These values beside those that are known already.
    #[must_use]
    pub fn and(self, values: impl IntoIterator<Item = String>) -> Self {
        Self::of(self.values.into_iter().chain(values))
    }

    /// The text without them.
    pub fn hide(&self, text: &str) -> String {
        let text = contexture_model::mask(text);
        match mask::hide(self, &text) {
            Cow::Owned(hidden) => hidden,
            Cow::Borrowed(_) => text,
        }
    }

    /// A model's message without the values. What only looks like a key stays: a model may write an example. So does
    /// a thought that its provider signed, because the provider takes it back only as it was.
    pub fn hide_in_message(&self, message: &mut Message) {
        match &mut message.content {
            Content::Text(text) => mask::hide_text(self, text),
            Content::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Text { text, .. } => mask::hide_text(self, text),
                        Part::Thinking {
                            thinking,
                            signature: None,
                            ..
                        } => mask::hide_text(self, thinking),
                        _ => {}
                    }
                }
            }
            Content::Null => {}
        }
        for call in &mut message.tool_calls {
            mask::hide_text(self, &mut call.name);
            mask::hide_text(self, &mut call.arguments);
        }
    }

    /// What came of a call, without them.
    pub fn hide_in(&self, outcome: Outcome) -> Outcome {
        let content = match outcome.content {
            Content::Text(text) => Content::Text(self.hide(&text)),
            Content::Parts(parts) => {
                let hide = |part: Part| match part.text() {
                    Some(text) => Part::text_part(self.hide(text)),
                    None => part,
                };
                Content::Parts(parts.into_iter().map(hide).collect())
            }
            Content::Null => Content::Null,
        };
        Outcome {
            content,
            failed: outcome.failed,
            summary: self.hide(&outcome.summary),
        }
    }
}

impl Mask for Secrets {
    fn find(&self, text: &str, more: bool) -> Found {
        let mut found = Found::default();
        let bytes = text.as_bytes();
        // No spelling of a value is shorter than the value.
        if self.values.is_empty() || (bytes.len() < SHORTEST && !more) {
            return found;
        }
        let mut at = 0;
        while at < bytes.len() {
            if !self.begins.0[usize::from(bytes[at])] || !text.is_char_boundary(at) {
                at += 1;
                continue;
            }
            let mut next = at + 1;
            for value in &self.values {
                match spells(text, at, value) {
                    Spells::Until(end) => {
                        found.hits.push((at..end, MASKED));
                        next = end;
                        break;
                    }
                    Spells::Cut if more && found.open.is_none() => found.open = Some((at, at)),
                    Spells::Cut | Spells::Not => {}
                }
            }
            at = next;
        }
        found
    }
}

/// Whether a value stands at a place.
enum Spells {
    Until(usize),
    /// So far it does, and the text ends.
    Cut,
    Not,
}

/// Compares without regard to case: a key in capitals is soon a key again.
fn spells(text: &str, from: usize, value: &str) -> Spells {
    let mut at = from;
    for wanted in value.chars() {
        let Some(here) = text[at..].chars().next() else {
            return Spells::Cut;
        };
        if here.eq_ignore_ascii_case(&wanted) {
            at += here.len_utf8();
            continue;
        }
        match spelling::read(text, at) {
            Some(Spelled::Char(c, length)) if c.eq_ignore_ascii_case(&wanted) => at += length,
            Some(Spelled::Cut) => return Spells::Cut,
            _ => return Spells::Not,
        }
    }
    Spells::Until(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_environment_and_keys_by_their_look_are_hidden() {
        let secrets = Secrets::of(["hunter2hunter2".to_owned(), "hunter2h".to_owned()]);
        let outcome = Outcome::failed("pw=hunter2hunter2 and sk-abcdefghijklmnop, hunter2h");
        let hidden = secrets.hide_in(outcome);
        let Content::Text(text) = &hidden.content else {
            unreachable!("it was text");
        };
        assert_eq!(text, "pw=[masked] and sk-[masked], [masked]");
        assert_eq!(hidden.summary, *text);
        assert!(hidden.failed);
    }

    #[test]
    fn short_values_are_no_secrets() {
        let secrets = Secrets::of(["on".to_owned()]);
        assert_eq!(secrets.hide("one on one"), "one on one");
    }

    #[test]
    fn a_value_is_hidden_in_every_spelling() {
        let secrets = Secrets::of(["Pa55/w\"rd".to_owned()]);
        for text in [
            "Pa55/w\"rd",
            "PA55/W\"RD",
            "Pa55%2Fw%22rd",
            "Pa55\\/w\\\"rd",
            "Pa55/w&quot;rd",
            "\\u0050a55/w\\u0022rd",
        ] {
            assert_eq!(secrets.hide(&format!("<{text}>")), "<[masked]>", "{text}");
        }
    }

    #[test]
    fn a_value_is_hidden_wherever_its_text_was_cut() {
        let secrets = Secrets::of(["hunter2hunter2".to_owned()]);
        let text = "é the hunter2hunter2hunter2hunter2, hunter, %68unter2hunter2 h";
        let whole = mask::hide(&secrets, text);
        assert_eq!(whole, "é the [masked][masked], hunter, [masked] h");
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            for end in (at..text.len()).filter(|at| text.is_char_boundary(*at)) {
                let mut stream = MaskedStream::default();
                let mut out = String::new();
                for piece in [&text[..at], &text[at..end], &text[end..]] {
                    out.extend(
                        stream
                            .push(&secrets, (), piece)
                            .into_iter()
                            .map(|(_, text)| text),
                    );
                    assert!(!out.contains("hunter2h"), "{out}");
                }
                out.extend(stream.finish(&secrets).into_iter().map(|(_, text)| text));
                assert_eq!(out, whole, "{at} {end}");
            }
        }
    }

    #[test]
    fn pieces_keep_their_tags() {
        let secrets = Secrets::of(["hunter2hunter2".to_owned()]);
        let mut stream = MaskedStream::default();
        let mut out = Vec::new();
        for (tag, piece) in [
            ("a", "is hunt"),
            ("b", "er2hun"),
            ("c", "ter2?"),
            ("d", " hun"),
        ] {
            out.extend(stream.push(&secrets, tag, piece));
        }
        out.extend(stream.finish(&secrets));
        let out: Vec<(&str, &str)> = out
            .iter()
            .map(|(tag, text)| (*tag, text.as_str()))
            .collect();
        assert_eq!(
            out,
            [
                ("a", "is "),
                ("a", "[masked]"),
                ("c", "?"),
                ("d", " "),
                ("d", "hun")
            ]
        );
    }

    #[test]
    fn ordinary_text_is_not_held_back() {
        let secrets = Secrets::of(["hunter2hunter2".to_owned()]);
        let mut stream = MaskedStream::default();
        for word in ["This ", "is 100", " of them: ", "a; b", "eé"] {
            let out = stream.push(&secrets, (), word);
            assert_eq!(out, [((), word.to_owned())]);
        }
    }
}
