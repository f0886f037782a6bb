//! The daemon, as an agent's session sees it.

use std::ffi::OsStr;
use std::path::Path;

use contexture::inject::{TOKEN_FILE_VARIABLE, TOKEN_VARIABLE, ToolDefinition};
use contexture_server::{Client, ClientError, Daemon, Fault};
use contexture_store::{StoreError, read_private};
use serde_json::{Value, json};

use crate::args::At;
use crate::config;
use crate::error::CliError;
use crate::state;

/// Where the daemon is, for programs that an agent starts.
pub const URL_VARIABLE: &str = "CONTEXTURE_URL";

/// The session that we run in, by its token. The owner's secret is never used, though we could read it:
/// what an agent may do must not depend on whose files it can see.
pub fn client(at: &At, dir: Option<&Path>) -> Result<Client, CliError> {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let token = match (given(TOKEN_VARIABLE), given(TOKEN_FILE_VARIABLE)) {
        (Some(token), _) => token,
        (None, Some(file)) => kept(Path::new(&file))?,
        (None, None) => {
            let what =
                format!("no session: {TOKEN_VARIABLE} is not set, nor {TOKEN_FILE_VARIABLE}");
            return Err(not_allowed(what, ""));
        }
    };
    let url = match at.url.clone().or_else(|| given(URL_VARIABLE)) {
        Some(url) => url,
        None => found(dir)?,
    };
    Ok(Client::new(&url, &token)?)
}

/// The token in a session's file, which only its owner may read.
fn kept(file: &Path) -> Result<String, CliError> {
    let (folder, name) = (file.parent(), file.file_name().and_then(OsStr::to_str));
    let read = folder
        .zip(name)
        .map(|(folder, name)| read_private(folder, name));
    match read.transpose().map_err(StoreError::from)?.flatten() {
        Some(token) => Ok(token),
        None => Err(not_allowed(
            format!("session not found: no token in {}", file.display()),
            "its agent was stopped, or its daemon ended",
        )),
    }
}

fn not_allowed(what: String, hint: &str) -> CliError {
    CliError::NotAllowed {
        what,
        hint: hint.to_owned(),
    }
}

/// The address of the project's daemon.
fn found(dir: Option<&Path>) -> Result<String, CliError> {
    let config = config::load(dir)?;
    match Daemon::find(state::folder(&config)?)? {
        Some(daemon) => Ok(daemon.url),
        None => Err(CliError::Daemon(ClientError {
            why: Fault::Unreachable,
            message: "no daemon runs in this project".to_owned(),
            hint: Some(format!("start one with `ctx serve`, or set {URL_VARIABLE}")),
        })),
    }
}

/// The tools of the session.
pub async fn tools(client: &Client) -> Result<Vec<ToolDefinition>, ClientError> {
    let mut said = client.call("internal.tools", json!({})).await?;
    serde_json::from_value(said["tools"].take()).map_err(|error| ClientError {
        why: Fault::Broken,
        message: format!("the daemon's tools cannot be read: {error}"),
        hint: None,
    })
}

/// Calls a tool, and gives what it says.
pub async fn call(client: &Client, name: &str, arguments: Value) -> Result<Value, ClientError> {
    let params = json!({"name": name, "arguments": arguments});
    let mut said = client.call("internal.callTool", params).await?;
    Ok(said["content"].take())
}
