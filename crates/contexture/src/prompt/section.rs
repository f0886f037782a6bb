use serde::{Deserialize, Serialize};

/// A named piece of the system side.
///
/// Sections rather than one string, because the two halves of a prompt age differently: what is
/// [`Stability::Stable`] forms the prefix that a provider caches, and a volatile piece inside it
/// would spoil the cache of everything behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Section {
    /// What it is, and its identity: a later section of the same name replaces it.
    pub name: String,
    /// Where it came from, so that the receipt can say whom to ask about it.
    #[serde(default = "input")]
    pub origin: String,
    /// Whether it may stand in the cached prefix.
    #[serde(default)]
    pub stability: Stability,
    /// Its rank: stable sections of a higher priority stand before those of a lower one. Where an injector has too
    /// little room for all texts, those of a lower priority are left out first.
    #[serde(default)]
    pub priority: i32,
    /// What the model reads.
    pub text: String,
}

/// How often a section's text changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stability {
    /// The same for the whole session: part of the prefix.
    #[default]
    Stable,
    /// Changes between turns: appended behind the prefix whenever its text changed.
    Volatile,
}

/// The origin of a system prompt that was given for one call.
pub(crate) const ONE_CALL: &str = "systemPrompt";

impl Section {
    /// Returns true if it is the system prompt of one call.
    pub(crate) fn is_of_one_call(&self) -> bool {
        self.origin == ONE_CALL && !self.is_blank()
    }

    /// A stable section of ordinary priority.
    pub fn stable(
        name: impl Into<String>,
        origin: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            origin: origin.into(),
            stability: Stability::Stable,
            priority: 0,
            text: text.into(),
        }
    }

    /// A volatile section of ordinary priority.
    pub fn volatile(
        name: impl Into<String>,
        origin: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            stability: Stability::Volatile,
            ..Self::stable(name, origin, text)
        }
    }
}

impl Section {
    /// Whether it has nothing to say: a section without text is one that was taken away.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// The origin of a section that came in with the request and does not say more.
fn input() -> String {
    "input".into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_section_needs_only_its_name_and_text() {
        let section: Section = serde_json::from_str(r#"{"name":"a","text":"b"}"#).unwrap();
        assert_eq!(section, Section::stable("a", "input", "b"));
    }

    #[test]
    fn a_section_survives_the_round_trip() {
        let section = Section {
            priority: -3,
            ..Section::volatile("run", "engine", "x")
        };
        let json = serde_json::to_string(&section).unwrap();
        assert_eq!(
            json,
            r#"{"name":"run","origin":"engine","stability":"volatile","priority":-3,"text":"x"}"#
        );
        assert_eq!(serde_json::from_str::<Section>(&json).unwrap(), section);
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        assert!(
            serde_json::from_str::<Section>(r#"{"name":"a","text":"b","stabilty":"volatile"}"#)
                .is_err()
        );
    }
}
