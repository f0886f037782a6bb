//! Keys never reach the disk: what tools bring back is cleaned first.

use contexture::{Content, Part};
use contexture_model::mask;

use crate::Outcome;

/// What must not be seen: values of the environment that are keys by their name, and whatever looks
/// like one.
#[derive(Default)]
pub struct Secrets {
    values: Vec<String>,
}

/// How the name of a key ends.
const NAMES: [&str; 6] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIALS",
];
/// A shorter value would be found in ordinary words.
const SHORTEST: usize = 8;

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
        let is_secret = |name: &str| {
            let name = name.to_ascii_uppercase();
            NAMES.iter().any(|end| name.ends_with(end))
        };
        let all = all.into_iter().filter(|(name, _)| is_secret(name));
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
        Self { values }
    }

    /// The text without them.
    pub fn hide(&self, text: &str) -> String {
        let mut out = mask(text);
        for value in &self.values {
            if out.contains(value.as_str()) {
                out = out.replace(value.as_str(), "[masked]");
            }
        }
        out
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
}
