//! `ctx pool map`: which tools a capability takes.

use contexture::pool::{Change, Name, Pool};
use serde_json::{Map, json};

use super::name;
use crate::command::{print, print_json};
use crate::error::CliError;

/// The change that maps a capability to tools; nothing where only its tools are asked for.
pub fn change(capability: Option<&str>, tools: &[String]) -> Result<Vec<Change>, CliError> {
    let Some(capability) = capability.filter(|_| !tools.is_empty()) else {
        return Ok(Vec::new());
    };
    let capability = name(capability, "CAPABILITY")?;
    let tools = tools.iter().map(|tool| name(tool, "TOOL"));
    let tools = tools.collect::<Result<_, CliError>>()?;
    Ok(vec![Change::Mapped { capability, tools }])
}

/// Prints the tools that each capability takes, or those of this one.
pub fn table(pool: &Pool, capability: Option<&str>, json: bool) -> Result<(), CliError> {
    let table = pool.capability_tools();
    let one = capability
        .map(|text| name(text, "CAPABILITY"))
        .transpose()?;
    let rows: Vec<(&Name, Vec<&str>)> = match &one {
        Some(one) => vec![(one, table.needed(one).map(Name::as_str).collect())],
        None => table
            .rows()
            .map(|(capability, tools)| (capability, tools.iter().map(Name::as_str).collect()))
            .collect(),
    };
    if json {
        let rows = rows
            .iter()
            .map(|(name, tools)| (name.to_string(), json!(tools)));
        return print_json(&rows.collect::<Map<_, _>>());
    }
    let line = |(name, tools): &(&Name, Vec<&str>)| format!("{name}: {}\n", tools.join(", "));
    print(rows.iter().map(line).collect::<String>().as_bytes())
}
