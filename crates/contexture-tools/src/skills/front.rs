//! The front matter of a `SKILL.md`.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Fault, Scope, Skill};
use crate::plain::one_line;

/// The longest front matter.
const MOST_BYTES: usize = 16 << 10;

const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 1_024;
const LONGEST_COMPATIBILITY: usize = 500;

/// The YAML between the first two lines of `---`, and what follows them.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_fence = |line: &str| line.trim_end() == "---";
    let first = text.split_inclusive('\n').next()?;
    if !is_fence(first) {
        return None;
    }
    let mut at = first.len();
    for line in text[first.len()..].split_inclusive('\n') {
        if is_fence(line) {
            return Some((&text[first.len()..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// The skill that a front matter and a body make. Keys that the format does not have are other
/// programs' own, and passed over.
pub(super) fn read(front: &str, body: &str, folder: &Path, scope: Scope) -> Result<Skill, Fault> {
    let mut fields = parse(front)?;
    let mut text = |field, most| text(&mut fields, field, most);
    let name = text("name", usize::MAX)?.ok_or(Fault::BadName)?;
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(legal) {
        return Err(Fault::BadName);
    }
    if folder.file_name().and_then(|name| name.to_str()) != Some(name.as_str()) {
        return Err(Fault::NotItsFolder(name));
    }
    let description = text("description", LONGEST_DESCRIPTION)?.map(|text| one_line(&text));
    let description = description.filter(|text| !text.is_empty());
    let missing = Fault::BadField {
        field: "description",
        what: "is missing",
    };
    let skill = Skill {
        name,
        description: description.ok_or(missing)?,
        license: text("license", LONGEST_DESCRIPTION)?,
        compatibility: text("compatibility", LONGEST_COMPATIBILITY)?,
        metadata: Map::new(),
        allowed_tools: Vec::new(),
        body: body.trim().to_owned(),
        folder: folder.to_owned(),
        scope,
        files: Vec::new(),
    };
    Ok(Skill {
        metadata: metadata(&mut fields)?,
        allowed_tools: allowed_tools(&mut fields)?,
        ..skill
    })
}

fn parse(front: &str) -> Result<Map<String, Value>, Fault> {
    if front.len() > MOST_BYTES {
        let what = format!("longer than {} KiB", MOST_BYTES >> 10);
        return Err(Fault::BadFrontMatter(what));
    }
    let read = yaml(front).or_else(|error| yaml(&quoted(front)).map_err(|_| error));
    match read.map_err(|error| refused(&error))? {
        Value::Object(fields) => Ok(fields),
        _ => Err(Fault::BadFrontMatter("it is no map".to_owned())),
    }
}

fn yaml(text: &str) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 0,
            max_aliases: 0,
            max_documents: 1,
            max_depth: 8,
            max_nodes: 1_000,
        },
        merge_keys: serde_saphyr::MergeKeyPolicy::Error,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// The same with quotes around plain texts that hold a `: `, which YAML does not allow. Many skills
/// have such a description, and other programs take it.
fn quoted(front: &str) -> String {
    let line = |line: &str| {
        let (field, value) = line.split_once(": ")?;
        let value = value.trim();
        let known = ["description", "license", "compatibility"].contains(&field);
        let plain = value.starts_with(|c: char| c.is_alphanumeric() || c == '(' || c == '`');
        let broken = value.contains(": ") || value.ends_with(':');
        (known && plain && broken).then(|| format!("{field}: {}\n", Value::from(value)))
    };
    let lines = front.lines();
    lines
        .map(|text| line(text).unwrap_or_else(|| format!("{text}\n")))
        .collect()
}

fn refused(error: &serde_saphyr::Error) -> Fault {
    use serde_saphyr::Error;
    use serde_saphyr::budget::BudgetBreach::{Aliases, Anchors};
    let what = match error.without_snippet() {
        Error::Budget {
            breach: Anchors { .. } | Aliases { .. },
            ..
        } => "anchors and aliases are not allowed".to_owned(),
        Error::Budget { .. } => "there is too much in it".to_owned(),
        other => {
            let text = other.to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            one_line(first).chars().take(200).collect()
        }
    };
    Fault::BadFrontMatter(what)
}

fn text(
    fields: &mut Map<String, Value>,
    field: &'static str,
    most: usize,
) -> Result<Option<String>, Fault> {
    let bad = |what| Err(Fault::BadField { field, what });
    match fields.shift_remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.chars().nth(most).is_some() => bad("is too long"),
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
        Some(_) => bad("must be a text"),
    }
}

fn metadata(fields: &mut Map<String, Value>) -> Result<Map<String, Value>, Fault> {
    match fields.shift_remove("metadata") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map),
        Some(_) => Err(Fault::BadField {
            field: "metadata",
            what: "must be a map",
        }),
    }
}

/// The format has one text, with spaces between the names; others write a list, or commas.
fn allowed_tools(fields: &mut Map<String, Value>) -> Result<Vec<String>, Fault> {
    let bad = || Fault::BadField {
        field: "allowed-tools",
        what: "must be names, with spaces between them",
    };
    match fields.shift_remove("allowed-tools") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text
            .split([' ', ',', '\n', '\t'])
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()),
        Some(Value::Array(names)) => names
            .iter()
            .map(|name| name.as_str().map(str::to_owned).ok_or_else(bad))
            .collect(),
        Some(_) => Err(bad()),
    }
}
