//! Looks for secrets wherever they must not be: in files, events and pages, in any spelling.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

/// A secret, and what it is.
pub struct Secret {
    pub name: &'static str,
    pub text: String,
}

/// Where a text has a secret, in small or capital letters, or in parts that stand behind each other.
pub fn in_text(place: &str, text: &str, secrets: &[Secret], found: &mut Vec<String>) {
    let lower = text.to_ascii_lowercase();
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        if let Ok(value) = serde_json::from_str::<Value>(line) {
            said(&value, &mut joined);
        }
    }
    for Secret { name, text } in secrets {
        let secret = text.to_ascii_lowercase();
        if let Some(at) = lower.find(&secret) {
            let from = (0..=at.saturating_sub(60))
                .rev()
                .find(|&at| lower.is_char_boundary(at))
                .unwrap_or(0);
            found.push(format!(
                "{place}: the {name}, behind {:?}",
                &lower[from..at]
            ));
        } else if joined.contains(&secret) {
            found.push(format!("{place}: the {name}, in parts"));
        }
    }
}

/// What a person would read of a stream: the texts of its messages, one behind the other.
fn said(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value.as_str() {
                    Some(text)
                        if matches!(name.as_str(), "text" | "content" | "thinking" | "delta") =>
                    {
                        out.push_str(&text.to_ascii_lowercase());
                    }
                    _ => said(value, out),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| said(value, out)),
        _ => {}
    }
}

/// The files below a folder that have a secret; one that holds it for its owner alone may.
pub fn in_files(folder: &Path, keeper: Option<&Path>, secrets: &[Secret], found: &mut Vec<String>) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, Ok(about)) = (entry.path(), entry.metadata()) else {
                continue;
            };
            if about.is_dir() {
                folders.push(path);
                continue;
            }
            let private = about.permissions().mode() & 0o077 == 0;
            if private && keeper.is_some_and(|keeper| path.starts_with(keeper)) {
                continue;
            }
            let text = std::fs::read(&path).unwrap_or_default();
            in_text(
                &path.display().to_string(),
                &String::from_utf8_lossy(&text),
                secrets,
                found,
            );
        }
    }
}

#[test]
fn a_secret_is_found_in_each_spelling() {
    let secrets = [Secret {
        name: "key",
        text: "0123456789abcdef".to_owned(),
    }];
    let leaks = |text: &str| {
        let mut found = Vec::new();
        in_text("here", text, &secrets, &mut found);
        found.len()
    };
    assert_eq!(leaks("x 0123456789ABCDEF"), 1);
    assert_eq!(leaks("{\"0123456789abcdef\":1}"), 1);
    assert_eq!(
        leaks("data: {\"a\":{\"text\":\"01234567\"}}\n\ndata: {\"text\":\"89abcdef\"}\n"),
        1
    );
    assert_eq!(leaks("0123456789…"), 0);
}
