use std::collections::BTreeMap;
use std::path::Path;

use contexture::ContextManager;
use contexture::build::BuildInput;

use super::{at, print, print_json, read, to_value};
use crate::args::{Build, Format};
use crate::error::CliError;
use crate::settings::settings;
use crate::view::{plural, thousands};

/// `ctx update`.
pub fn update(options: &Build, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let input = read(&options.source)?;
    let settings = settings(&options.limits, &input, options.format, dir)?;
    let manager = ContextManager::new(settings)?;
    // What it says of itself is in the settings already, where flags beat it.
    let input = BuildInput {
        session_entries: input.session_entries,
        turn: input.turn,
        ..BuildInput::default()
    };
    let result = manager
        .compute_context_updates(input)
        .map_err(at(&options.source))?;
    match Format::chosen(options.format, json)? {
        Format::Json => return print_json(&to_value(result)?),
        Format::View => {}
        Format::Openai | Format::Anthropic | Format::Responses => {
            return Err(CliError::Usage {
                what: "an update has no body".to_owned(),
                hint: "use --json, or `ctx build` for the request".to_owned(),
            });
        }
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in &result.entries_to_append {
        *kinds.entry(entry.payload.type_name()).or_default() += 1;
    }
    let appended = match kinds.is_empty() {
        true => "nothing to append".to_owned(),
        false => {
            let list: Vec<_> = kinds
                .iter()
                .map(|(kind, n)| format!("{n} {kind}"))
                .collect();
            format!("append {}", list.join(", "))
        }
    };
    let compacted = if result.compacted {
        "compacted"
    } else {
        "not compacted"
    };
    let line = format!(
        "{compacted} · {appended} · {} tokens in {}\n",
        thousands(result.stats.input_tokens),
        plural(result.stats.message_count, "message"),
    );
    print(line.as_bytes())
}
