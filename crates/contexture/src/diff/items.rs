//! What came, went or changed, by origin.

use std::collections::HashMap;

use serde::Serialize;

use super::side::Line;
use crate::build::Rule;

/// Something that only one of the two requests has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffItem {
    /// Where it comes from: `entry:ID`, `section:NAME`.
    pub origin: String,
    /// The message's role.
    pub role: &'static str,
    /// How it stands there.
    #[serde(flatten)]
    pub form: Form,
}

/// Something that both have, with other bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffChange {
    /// Where it comes from.
    pub origin: String,
    /// The message's role.
    pub role: &'static str,
    /// How it stands in A.
    pub before: Form,
    /// How it stands in B.
    pub after: Form,
}

/// How something stands in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Form {
    /// Which message it is, or is in.
    pub index: usize,
    /// Why it is there as it is.
    pub rule: Rule,
    /// Its tokens.
    pub tokens: usize,
    /// Its bytes.
    pub bytes: usize,
}

/// Tools that differ, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ToolChanges {
    /// Those that only B has.
    pub added: Vec<String>,
    /// Those that only A has.
    pub removed: Vec<String>,
    /// Those that say something else in B.
    pub changed: Vec<String>,
}

impl ToolChanges {
    pub(super) fn between(a: &[Line], b: &[Line]) -> Self {
        let (removed, added, changed) = differing(a, b);
        let name = |origin: String| origin.trim_start_matches("tool:").to_owned();
        let names = |items: Vec<DiffItem>| items.into_iter().map(|i| name(i.origin)).collect();
        Self {
            added: names(added),
            removed: names(removed),
            changed: changed.into_iter().map(|c| name(c.origin)).collect(),
        }
    }
}

/// What only A has, what only B has, and what both have with other bytes.
///
/// An origin can have several lines: a call, and the answers that were made up for it. Equal ones
/// are one; of the rest, the first of A became the first of B.
pub(super) fn differing(a: &[Line], b: &[Line]) -> (Vec<DiffItem>, Vec<DiffItem>, Vec<DiffChange>) {
    let mut lost = unmatched(a, b);
    let mut came = unmatched(b, a);
    let mut changed = Vec::new();
    lost.retain(|old| {
        let Some(at) = came.iter().position(|new| new.origin == old.origin) else {
            return true;
        };
        let new = came.remove(at);
        changed.push(DiffChange {
            origin: old.origin.clone(),
            role: new.role,
            before: form(old),
            after: form(new),
        });
        false
    });
    let items = |lines: Vec<&Line>| lines.into_iter().map(item).collect();
    (items(lost), items(came), changed)
}

/// The lines that `other` does not have, each counted once.
fn unmatched<'a>(lines: &'a [Line], other: &[Line]) -> Vec<&'a Line> {
    let mut there: HashMap<(&str, blake3::Hash), usize> = HashMap::new();
    for line in other {
        *there.entry((&line.origin, line.hash)).or_default() += 1;
    }
    let mut out = Vec::new();
    for line in lines {
        match there.get_mut(&(line.origin.as_str(), line.hash)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => out.push(line),
        }
    }
    out
}

fn item(line: &Line) -> DiffItem {
    DiffItem {
        origin: line.origin.clone(),
        role: line.role,
        form: form(line),
    }
}

fn form(line: &Line) -> Form {
    Form {
        index: line.index,
        rule: line.rule,
        tokens: line.tokens,
        bytes: line.bytes,
    }
}
