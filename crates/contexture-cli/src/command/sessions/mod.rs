//! `ctx sessions`, a file for each thing that it does.

mod append;
mod edit;
mod export;
mod feed;
mod import;
mod list;

use std::path::Path;

use contexture_store::Key;

use crate::args::Sessions;
use crate::error::CliError;
use crate::store;

pub use edit::free_name;
pub use import::import;
pub use list::listed;

/// `ctx sessions …`.
pub fn sessions(what: Sessions, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    // Importing reads the limits as well, and opens the log itself.
    let what = match what {
        Sessions::Import(options) => return import(&options, json, dir),
        other => other,
    };
    let home = store::open(dir)?;
    let key = |session: &str| Key::new(session);
    match what {
        Sessions::List => list::list(&home, json),
        Sessions::Show { session } => list::show(&home, &key(&session)?, json),
        Sessions::Append { session, file } => append::append(&home, &key(&session)?, &file, json),
        Sessions::Fork { session, name, at } => {
            let names = (name.as_deref(), at.as_deref());
            edit::fork(&home, &key(&session)?, names, json, dir)
        }
        Sessions::Undo { session, entry } => {
            edit::undo(&home, &key(&session)?, entry.as_deref(), json)
        }
        Sessions::Pin { session, entry } => edit::pin(&home, &key(&session)?, &entry, json),
        Sessions::Unpin { session, entry } => edit::unpin(&home, &key(&session)?, &entry, json),
        Sessions::Export {
            session,
            format,
            output,
        } => export::export(&home, &key(&session)?, format, output.as_deref(), json),
        Sessions::Rm { session } => edit::rm(&home, &key(&session)?, json),
        Sessions::Import(options) => import(&options, json, dir),
    }
}
