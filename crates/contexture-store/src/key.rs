use std::fmt;

use crate::StoreError;

/// The name of a stream, from outside: a chat's key, a session's name. It cannot hold a path.
///
/// What could be meant as a path is refused, not mended: whoever sends `../../x` does not want a
/// session of that name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

/// The longest file name that a key may become. File systems take 255 bytes, and we add endings.
const MAX_ENCODED: usize = 200;

/// Names that Windows takes for devices, with any ending. A data folder may be shared or copied.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

impl Key {
    /// Checks a key.
    pub fn new(key: impl Into<String>) -> Result<Self, StoreError> {
        let key = key.into();
        match refusal(&key) {
            Some(why) => Err(StoreError::BadKey {
                key: key.chars().take(60).collect(),
                why: why.to_owned(),
            }),
            None => Ok(Self(key)),
        }
    }

    /// The key as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its file name: lower-case letters, digits, `-`, `_` and `.` stand for themselves, every other
    /// byte is `%XX`. Two keys never share a name, also where a file system folds case or
    /// normalises Unicode.
    pub fn file_name(&self) -> String {
        encode(&self.0)
    }

    /// The key of a file name; none when no key has it.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let mut bytes = Vec::with_capacity(name.len());
        let mut rest = name.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            if first == b'%' {
                let hex = std::str::from_utf8(after.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(hex, 16).ok()?);
                rest = &after[2..];
            } else {
                bytes.push(first);
                rest = after;
            }
        }
        let key = Self::new(String::from_utf8(bytes).ok()?).ok()?;
        (key.file_name() == name).then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn encode(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

fn refusal(key: &str) -> Option<&'static str> {
    if key.is_empty() {
        return Some("is empty");
    }
    // Before anything walks over it.
    if key.len() > MAX_ENCODED || encode(key).len() > MAX_ENCODED {
        return Some(
            "is longer than 200 bytes, with %XX for what is no lower-case letter or digit",
        );
    }
    if key.chars().any(char::is_control) {
        return Some("has control characters");
    }
    let decoded = decode(key);
    for form in [key, &decoded] {
        if form.starts_with(['/', '\\', '~']) || form.as_bytes().get(1..3) == Some(b":\\") {
            return Some("looks like an absolute path");
        }
        if form.contains('\0') {
            return Some("has control characters");
        }
        if form
            .split(['/', '\\'])
            .any(|part| matches!(part, "." | ".."))
        {
            return Some("has `.` or `..` as a part of a path");
        }
    }
    if key.starts_with('.') || key.ends_with(['.', ' ']) || key.starts_with(' ') {
        return Some("begins with a dot or space, or ends with one");
    }
    let stem = key.split('.').next().unwrap_or(key).to_ascii_lowercase();
    let device = |name: &str| match stem.strip_prefix(name) {
        Some("") => !matches!(name, "com" | "lpt"),
        Some(rest) => {
            matches!(name, "com" | "lpt") && rest.len() == 1 && ("0"..="9").contains(&rest)
        }
        None => false,
    };
    if DEVICES.into_iter().any(device) {
        return Some("is the name of a device on some systems");
    }
    None
}

/// The key with `%XX` undone, as often as that changes anything: `%252e` is a dot in the end.
fn decode(key: &str) -> String {
    let mut text = key.to_owned();
    loop {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
            let escaped = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            match escaped {
                Some(byte) if first == b'%' => {
                    bytes.push(byte);
                    rest = &after[2..];
                }
                _ => {
                    bytes.push(first);
                    rest = after;
                }
            }
        }
        let next = String::from_utf8_lossy(&bytes).into_owned();
        if next == text {
            return text;
        }
        text = next;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Attack 9: refused before any path is made.
    #[test]
    fn what_could_be_a_path_is_refused() {
        let long = "k".repeat(4096);
        for key in [
            "../../x",
            "..",
            ".",
            "/etc/passwd",
            "a/../b",
            "%2e%2e",
            "%2E%2e/x",
            "%252e%252e",
            "..\\x",
            "a\\..\\b",
            "C:\\x",
            "\\\\host\\share",
            "a\0b",
            "%00x%2F..",
            "a\nb",
            "CON",
            "con.txt",
            "Com1",
            "LPT9.log",
            "nul",
            "",
            ".hidden",
            "x.",
            "x ",
            " x",
            "~root",
            &long,
        ] {
            let refused = Key::new(key);
            assert!(matches!(refused, Err(StoreError::BadKey { .. })), "{key:?}");
        }
    }

    #[test]
    fn what_people_call_their_chats_is_taken() {
        for (key, name) in [
            ("main", "main"),
            ("telegram:chat:-1001", "telegram%3Achat%3A-1001"),
            ("feat/login", "feat%2Flogin"),
            ("Main", "%4Dain"),
            ("会话", "%E4%BC%9A%E8%AF%9D"),
            ("100%", "100%25"),
            ("v1.2_final", "v1.2_final"),
            ("console", "console"),
            ("com", "com"),
        ] {
            let made = Key::new(key).unwrap();
            assert_eq!(made.file_name(), name);
            assert_eq!(Key::from_file_name(name), Some(made));
        }
    }

    /// Attack 10: equal after case folding or normalisation, and still two files.
    #[test]
    fn keys_that_only_look_equal_have_two_names() {
        for (a, b) in [
            ("chat", "Chat"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("ſ", "s"),
            ("K", "\u{212a}"),
        ] {
            let name = |key: &str| Key::new(key).unwrap().file_name().to_lowercase();
            assert_ne!(name(a), name(b));
        }
    }

    #[test]
    fn a_name_that_no_key_has_is_no_key() {
        for name in ["%4dain", "Main", "%", "%zz", "..", "%2E%2E", "a b"] {
            assert_eq!(Key::from_file_name(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_key_comes_back_from_its_name(key in "\\PC{1,30}") {
            if let Ok(key) = Key::new(key) {
                let name = key.file_name();
                prop_assert!(name.len() <= MAX_ENCODED);
                prop_assert!(!name.contains(['/', '\\', ':', ' ']));
                prop_assert_eq!(Key::from_file_name(&name), Some(key));
            }
        }
    }
}
