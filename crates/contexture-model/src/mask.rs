use std::fmt;

/// A key. It is never shown, and goes nowhere but into a request's header.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A key from the environment; none where it is not set, or empty.
    pub fn from_env(name: &str) -> Option<Self> {
        let value = std::env::var(name).ok()?;
        let value = value.trim();
        (!value.is_empty()).then(|| Self(value.to_owned()))
    }

    /// For a header.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without the key.
    pub(crate) fn hidden_in(&self, text: &str) -> String {
        match self.0.len() >= 8 {
            true => text.replace(&self.0, HIDDEN),
            false => text.to_owned(),
        }
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Whether a variable holds a key, by its name.
pub fn names_key(name: &str) -> bool {
    const ENDINGS: [&str; 6] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIALS",
    ];
    let name = name.to_ascii_uppercase();
    ENDINGS.iter().any(|end| name.ends_with(end))
}

const HIDDEN: &str = "[masked]";

/// A text with what looks like a key taken out: `sk-…`, `Bearer …` and their kind. Providers like to
/// repeat a wrong key in their errors.
pub fn mask(text: &str) -> String {
    const BEGINNINGS: [&str; 10] = [
        "sk-", "pk-", "rk-", "ghp_", "gho_", "xox", "AKIA", "AIza", "Bearer ", "ctxw1-",
    ];
    const SHORTEST: usize = 12;
    let of_key = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*' | '~' | '+' | '/' | '=')
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(first) = rest.chars().next() {
        let inside_word = before.is_some_and(|c| c.is_ascii_alphanumeric());
        let found = BEGINNINGS
            .iter()
            .find(|begin| !inside_word && rest.starts_with(**begin));
        if let Some(begin) = found {
            let tail = &rest[begin.len()..];
            let len = tail.find(|c| !of_key(c)).unwrap_or(tail.len());
            if len >= SHORTEST {
                out.push_str(begin);
                out.push_str(HIDDEN);
                rest = &tail[len..];
                before = Some(']');
                continue;
            }
        }
        out.push(first);
        before = Some(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out_and_words_are_not() {
        for (text, masked) in [
            (
                "Incorrect API key provided: sk-proj-abcdefgh1234****.",
                "Incorrect API key provided: sk-[masked]",
            ),
            (
                "Authorization: Bearer eyJhbGciOi.J9.abc-123",
                "Authorization: Bearer [masked]",
            ),
            (
                "the task-list and risk-assessment-of-things",
                "the task-list and risk-assessment-of-things",
            ),
            ("sk-short", "sk-short"),
            ("ключ AKIAIOSFODNN7EXAMPLE!", "ключ AKIA[masked]!"),
            (
                "a worker's ctxw1-guest2-0123456789ab-0f0f-far",
                "a worker's ctxw1-[masked]",
            ),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        let key = Secret::from("sk-very-secret-key");
        assert!(!format!("{key:?}").contains("secret"));
        assert_eq!(
            key.hidden_in("you sent sk-very-secret-key"),
            "you sent [masked]"
        );
    }
}
