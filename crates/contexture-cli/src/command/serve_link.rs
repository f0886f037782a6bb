//! `ctx serve link`: a new sign-in link of the daemon that runs.

use std::path::Path;

use serde_json::json;

use super::{print, print_json, runtime};
use crate::args::ServeCommand;
use crate::error::CliError;
use crate::fleet::daemon_only;
use crate::output::note;
use crate::view::safe;

/// `ctx serve link`.
pub fn serve_link(what: &ServeCommand, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let ServeCommand::Link { revoke } = what;
    let made = runtime()?.block_on(async {
        let daemon = daemon_only(dir)?;
        if *revoke {
            daemon.call("serve.signOut", json!({})).await?;
        }
        Ok::<_, CliError>(daemon.call("serve.link", json!({})).await?)
    })?;
    if json {
        return print_json(&made);
    }
    let link = safe(made["signIn"].as_str().unwrap_or_default());
    print(format!("{link}\n").as_bytes())?;
    let minutes = made["expiresSeconds"].as_u64().unwrap_or_default() / 60;
    note!(" opens the dashboard once, within {minutes} minutes");
    Ok(())
}
