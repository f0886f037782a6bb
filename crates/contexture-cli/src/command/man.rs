//! `ctx man`: manual pages, made from the definitions of the commands.

use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use serde_json::json;

use super::{print, print_data, print_json};
use crate::args;
use crate::error::CliError;
use crate::view::plural;

/// `ctx man`: the page of `ctx`, or a page of each command in a folder.
pub fn man(options: &args::Man, json: bool) -> Result<(), CliError> {
    let mut command = args::command();
    command.build();
    let Some(folder) = &options.folder else {
        if json {
            return Err(CliError::Usage {
                what: "--json: a manual page is a text".to_owned(),
                hint: "leave it out, or name a folder".to_owned(),
            });
        }
        return print_data(&page(command)?);
    };
    let failed = |error| CliError::Io {
        place: folder.display().to_string(),
        error,
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut count = 0;
    write(&command, "ctx", folder, &mut count).map_err(failed)?;
    if json {
        return print_json(&json!({ "pages": count, "folder": folder.display().to_string() }));
    }
    print(format!("{} in {}\n", plural(count, "page"), folder.display()).as_bytes())
}

fn write(command: &Command, name: &str, folder: &Path, count: &mut usize) -> std::io::Result<()> {
    let named = command.clone().display_name(name.to_owned());
    std::fs::write(folder.join(format!("{name}.1")), page(named)?)?;
    *count += 1;
    let shown = |inner: &&Command| !inner.is_hide_set() && inner.get_name() != "help";
    for inner in command.get_subcommands().filter(shown) {
        write(
            inner,
            &format!("{name}-{}", inner.get_name()),
            folder,
            count,
        )?;
    }
    Ok(())
}

fn page(command: Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command).source(concat!("ctx ", env!("CARGO_PKG_VERSION")));
    man.render(&mut page)?;
    // What stands behind the options are the examples.
    let text = String::from_utf8_lossy(&page);
    Ok(text
        .replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n")
        .into_bytes())
}
