//! Where things go on a NATS server: subjects of the namespace, with modules' names as tokens.

use std::fmt::Write;

use contexture::pool::Name;

/// The longest name that is written out. A server makes a folder of it, with a few more letters.
const LONGEST: usize = 120;

/// A module's name as one token of a subject, which is also a key of a bucket and a part of a consumer's name.
///
/// Letters, digits, `_` and `-` stay; each other byte becomes `=XX`. What gets too long is hashed; it begins with
/// `==`, which no other token does.
pub(super) fn token(module: &Name) -> String {
    let mut token = String::new();
    for byte in module.as_str().bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' {
            token.push(char::from(byte));
        } else {
            let _ = write!(token, "={byte:02X}");
        }
    }
    if token.len() <= LONGEST {
        return token;
    }
    format!("=={}", blake3::hash(module.as_str().as_bytes()).to_hex())
}

/// The subjects and names of a namespace.
#[derive(Debug, Clone)]
pub(super) struct Subjects(pub(super) String);

impl Subjects {
    /// The stream of what is sent, and the bucket of who is here.
    pub(super) fn stream(&self) -> String {
        format!("CTX_{}", self.0)
    }

    /// All that is sent.
    pub(super) fn sent(&self) -> String {
        format!("ctx.{}.to.*", self.0)
    }

    /// What is sent to one.
    pub(super) fn to(&self, token: &str) -> String {
        format!("ctx.{}.to.{token}", self.0)
    }

    /// What one is asked.
    pub(super) fn ask(&self, token: &str) -> String {
        format!("ctx.{}.ask.{token}", self.0)
    }

    /// What everybody is told.
    pub(super) fn everybody(&self) -> String {
        format!("ctx.{}.all", self.0)
    }

    /// The card of one.
    pub(super) fn card(&self, token: &str) -> String {
        format!("$KV.{}.{token}", self.stream())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(name: &str) -> String {
        token(&Name::new(name).unwrap())
    }

    #[test]
    fn plain_names_stay_and_others_are_written_out() {
        assert_eq!(of("executor-1_A"), "executor-1_A");
        assert_eq!(of("a.b"), "a=2Eb");
        assert_eq!(of(">"), "=3E");
        assert_eq!(of("a=2Eb"), "a=3D2Eb");
        assert_eq!(of("搜"), "=E6=90=9C");
        assert!(of(&"搜".repeat(100)).starts_with("=="));
    }

    fn names() -> impl Strategy<Value = Name> {
        prop_oneof![r"[a-c=.*>$/E2-]{1,6}", r"\PC{1,128}", r"[=.a]{110,128}"]
            .prop_filter_map("no name", |name| Name::new(&name).ok())
    }

    proptest! {
        #[test]
        fn a_token_is_legal_and_two_names_never_share_one(one in names(), other in names()) {
            let (a, b) = (token(&one), token(&other));
            prop_assert!(!a.is_empty() && a.len() <= LONGEST);
            prop_assert!(a.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-=".contains(&byte)), "{a}");
            prop_assert_eq!(one == other, a == b);
        }
    }
}
