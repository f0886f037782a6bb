use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::ContextError;
use crate::prompt::fields::string;
use crate::text::hidden::reveal;

/// The name of a resource, a capability or a tool. Cheap to clone: a pool says each of them many times.
///
/// Names are read by models, in tables and lists. So none can hold what ends a cell, an entry or a line, nor what
/// a person would not see: it is refused, and not escaped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// The longest name, in characters.
const LONGEST: usize = 128;

impl Name {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self, ContextError> {
        match refusal(name) {
            Some(why) => Err(refused(name, why)),
            None => Ok(Self(name.into())),
        }
    }

    /// A name that stands in a program, where it was looked at.
    pub fn known(name: &'static str) -> Self {
        debug_assert!(refusal(name).is_none());
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a name.
    pub(crate) fn from_value(value: Value) -> Result<Self, ContextError> {
        Self::new(&string(value)?)
    }
}

fn refusal(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("is empty");
    }
    if name.chars().nth(LONGEST).is_some() {
        return Some("is longer than 128 characters");
    }
    if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("has blanks or control characters");
    }
    if name.contains(['|', ',', '`']) {
        return Some("has a `|`, a comma or a backtick");
    }
    // A mark of the byte order is needed at the beginning of a file, and nowhere here.
    if name.starts_with('\u{feff}') || reveal(name).is_some() {
        return Some("has characters that nobody sees");
    }
    None
}

fn refused(name: &str, why: &str) -> ContextError {
    let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
    ContextError::invalid(
        "",
        format!("`{shown}` cannot be a name: it {why}"),
        "a name is at most 128 letters, digits and signs such as `-`, `_`, `.`, `:`, `/`",
    )
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_kinds() {
        for name in [
            "web_search",
            "executor-1",
            "server:tool",
            "a/b.c",
            "搜索",
            "größe",
            "😀",
        ] {
            assert_eq!(Name::new(name).unwrap().as_str(), name);
        }
        assert!(Name::new(&"é".repeat(LONGEST)).is_ok());
    }

    /// Attack 22, and what would forge a row, a cell or a second resource.
    #[test]
    fn what_a_model_could_take_for_more_than_a_name_is_refused() {
        for name in [
            "",
            "a b",
            "a\nb",
            "a\u{2028}b",
            "a\0",
            "\u{1b}[31m",
            "a|b",
            "a,b",
            "`a`",
            "a\u{202e}b",
            "a\u{200b}",
            "\u{feff}a",
            "a\u{e0041}",
        ] {
            let error = Name::new(name).unwrap_err().to_string();
            assert!(
                !error.contains(['\n', '\u{202e}', '\u{1b}', '\u{200b}']),
                "{error:?}"
            );
        }
        let error = Name::new(&"x".repeat(10_000_000)).unwrap_err();
        assert!(error.to_string().len() < 200);
    }
}
