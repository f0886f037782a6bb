//! What an agent asks, for people.

use serde_json::Value;

use crate::args::Permission;
use crate::view::{Paint, safe};

/// The most characters of an argument that are shown. What is longer says so: nobody should allow what they have not
/// seen.
const MAX_ARGUMENT_CHARS: usize = 4_000;

/// The arguments as the tool would be called with, one below the other.
pub fn arguments(arguments: &Value, paint: Paint) -> String {
    let mut out = String::new();
    let all = match arguments {
        Value::Null => return out,
        Value::Object(all) => all
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .collect(),
        other => vec![("input", other)],
    };
    for (name, value) in all {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let shown: String = value.chars().take(MAX_ARGUMENT_CHARS).collect();
        let left = value.chars().count().saturating_sub(MAX_ARGUMENT_CHARS);
        let mut lines = shown.split('\n').map(safe);
        let first = lines.next().unwrap_or_default();
        let name = paint.dim(&format!("{}:", safe(name)));
        out.push_str(&format!("    {name} {first}\n"));
        lines.for_each(|line| out.push_str(&format!("      {line}\n")));
        if left > 0 {
            out.push_str(&format!("      … and {left} characters more\n"));
        }
    }
    out
}

/// The option that gives this answer: never one for all time.
pub fn option_for(options: &Value, answer: Permission) -> Option<&str> {
    let kinds: &[&str] = match answer {
        Permission::Allow => &["allow_once"],
        Permission::Reject => &["reject_once", "reject_always"],
    };
    let options = options.as_array()?;
    let of = |kind: &&str| options.iter().find(|option| option["kind"] == **kind);
    kinds.iter().find_map(of)?["optionId"].as_str()
}
