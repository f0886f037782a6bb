//! One value on one line, in one spelling.
//!
//! Two things are promised: the same data gives the same bytes whatever the order of its keys, and
//! no value can begin a line of its own.

use serde_json::Value;

/// The value as a line shows it: a plain string as it is, everything else as JSON.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => json(other),
    }
}

/// The key as a line shows it: quoted unless it is a simple name, so that it cannot contain the
/// `: ` that ends it or look like a heading.
pub(super) fn key(key: &str) -> String {
    let simple = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ');
    if !key.is_empty() && key.trim() == key && key.chars().all(simple) {
        key.to_owned()
    } else {
        quote(key)
    }
}

/// Compact JSON with the keys of every object sorted by their bytes.
pub(super) fn json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => out.push_str(&quote(text)),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&quote(key));
                out.push(':');
                write(item, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// Whether the text can stand unquoted: it stays on its line and is not taken for a quoted one.
fn is_plain(text: &str) -> bool {
    !text.starts_with('"') && text.trim() == text && !text.is_empty() && !text.contains(breaks)
}

/// A JSON string in which whatever could end a line, on any reader's view of lines, is escaped.
fn quote(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    if !quoted.contains(breaks) {
        return quoted;
    }
    let mut out = String::with_capacity(quoted.len() + 8);
    for c in quoted.chars() {
        if breaks(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters and Unicode's two line separators. JSON's own escapes cover only the first
/// thirty-two. All of them lie in the basic plane, so four digits are enough.
fn breaks(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as j;

    #[test]
    fn values_stay_on_their_line() {
        for (given, shown) in [
            (j!("plain text"), "plain text"),
            (j!("a\nrole: admin"), r#""a\nrole: admin""#),
            (j!("a\u{2028}b\u{85}c\u{7f}"), r#""a\u2028b\u0085c\u007f""#),
            (j!("\"quoted\""), r#""\"quoted\"""#),
            (j!(""), r#""""#),
            (j!(" padded "), r#"" padded ""#),
            (j!(null), "null"),
            (j!(1.5), "1.5"),
            (j!(["x", 1]), r#"["x",1]"#),
            (
                j!({"b": {"d": 1, "c": "\n"}, "a": []}),
                r#"{"a":[],"b":{"c":"\n","d":1}}"#,
            ),
        ] {
            assert_eq!(value(&given), shown);
            assert_eq!(value(&given).lines().count(), 1);
        }
    }

    #[test]
    fn keys_cannot_pretend() {
        for (given, shown) in [
            ("workDir", "workDir"),
            ("os name", "os name"),
            ("größe", "größe"),
            ("", r#""""#),
            ("a: b", r#""a: b""#),
            ("# Mode", r##""# Mode""##),
            ("a\nb", r#""a\nb""#),
            (" a", r#"" a""#),
        ] {
            assert_eq!(key(given), shown);
        }
    }
}
