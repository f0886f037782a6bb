//! The commands, one file each.

mod acp;
mod agent_context;
mod agents;
mod build;
mod build_all;
mod canvas;
mod chat;
mod compose;
mod config;
mod demo;
mod diff;
mod doctor;
mod events;
mod inject;
mod inspect;
mod man;
mod mcp;
mod mcp_serve;
mod model;
mod orchestrate;
mod point;
mod pool;
mod replay;
mod run;
mod schema;
mod serve;
mod serve_link;
mod sessions;
mod skills;
mod task;
mod templates;
mod tokens;
mod tool;
mod trust;
mod update;
mod worker;

use contexture::ContextError;
use contexture::build::BuildInput;
use serde_json::Value;

pub use self::agent_context::document;
use crate::args::{self, Source};
use crate::error::CliError;
use crate::input;
use crate::output::Out;

pub use acp::acp;
pub use agent_context::agent_context;
pub use agents::agents;
pub use build::build;
pub use build_all::build_all;
pub use canvas::canvas;
pub use chat::chat;
pub use compose::compose;
pub use config::config;
pub use demo::demo;
pub use diff::diff;
pub use doctor::doctor;
pub use events::events;
pub use inject::inject;
pub use inspect::inspect;
pub use man::man;
pub use mcp::{options as mcp_options, servers as mcp};
pub use model::model;
pub use orchestrate::orchestrate;
pub use pool::pool;
pub use replay::replay;
pub use run::{run, runtime};
pub use schema::schema;
pub use serve::serve;
pub use serve_link::serve_link;
pub use sessions::{import, sessions};
pub use skills::skills;
pub use task::task;
pub use templates::templates;
pub use tokens::tokens;
pub use tool::tool;
pub use trust::{asked_again, trust};
pub use update::update;
pub use worker::worker;

/// `ctx completions SHELL`.
pub fn completions(shell: clap_complete::Shell, json: bool) -> Result<(), CliError> {
    if json {
        return Err(CliError::Usage {
            what: "--json: completions are a script for a shell".to_owned(),
            hint: "leave it out".to_owned(),
        });
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "ctx", &mut script);
    print(&script)
}

/// The input of a command, whatever its shape.
fn read(source: &Source) -> Result<BuildInput, CliError> {
    let bytes = input::read(source)?;
    BuildInput::read(&bytes).map_err(at(source))
}

/// Names the file in an error.
pub fn at(source: &Source) -> impl Fn(ContextError) -> CliError + use<> {
    let place = input::place(&source.file);
    move |error| CliError::Context {
        place: place.clone(),
        error,
    }
}

/// Writes text for people to standard output.
fn print(text: &[u8]) -> Result<(), CliError> {
    let mut out = Out::new();
    out.text(&String::from_utf8_lossy(text))?;
    Ok(out.flush()?)
}

/// Writes what somebody else wrote and is asked for as it is.
fn print_content(content: &[u8]) -> Result<(), CliError> {
    let mut out = Out::new();
    out.content(content)?;
    Ok(out.flush()?)
}

/// Writes JSON to the byte.
fn print_data(json: &[u8]) -> Result<(), CliError> {
    let mut out = Out::new();
    out.data(json)?;
    Ok(out.flush()?)
}

/// One JSON document.
fn print_json(value: &(impl serde::Serialize + ?Sized)) -> Result<(), CliError> {
    let mut out = Out::new();
    out.json(value)?;
    Ok(out.flush()?)
}

/// What serialises without fail, as a value.
fn to_value(value: impl serde::Serialize) -> Result<Value, CliError> {
    serde_json::to_value(value).map_err(|error| CliError::Io {
        place: "JSON".to_owned(),
        error: error.into(),
    })
}
