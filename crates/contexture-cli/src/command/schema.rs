//! `ctx schema`: the JSON Schemas of documents that `ctx` reads and writes.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{print, print_data, print_json};
use crate::args::{Schema, SchemaName};
use crate::error::CliError;
use crate::schema;

/// `ctx schema`.
pub fn schema(options: &Schema, json: bool) -> Result<(), CliError> {
    if let Some(name) = options.name {
        return document(name);
    }
    let all = SchemaName::value_variants().iter();
    if json {
        let rows = all.map(|name| json!({ "name": name.title(), "about": name.about() }));
        return print_json(&rows.collect::<Value>());
    }
    let lines = all.map(|name| format!("{:<8}  {}\n", name.title(), name.about()));
    print(lines.collect::<String>().as_bytes())
}

/// Prints a schema; `ctx config schema` is the one of the configuration.
pub fn document(name: SchemaName) -> Result<(), CliError> {
    print_data(format!("{:#}\n", schema::document(name)?).as_bytes())
}
