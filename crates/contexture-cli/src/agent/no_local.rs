//! What stands in the place of models on this machine in a build without the engine.

use std::path::Path;
use std::sync::Arc;

use contexture_model::Model;

use crate::config::LocalConfig;
use crate::error::CliError;
use crate::models::Reader;

/// Nothing to fetch: nothing here could read it.
pub async fn fetched(_: &str) -> Result<(), CliError> {
    std::future::ready(Ok(())).await
}

/// Says what is missing, and how to get it.
pub fn open(spec: &str, _: &str, _: LocalConfig) -> Result<Arc<dyn Model>, CliError> {
    Err(no_engine(spec))
}

/// Only the engine counts as it does.
pub fn reader(spec: &str, _: &str, _: LocalConfig) -> Result<Reader, CliError> {
    Err(no_engine(spec))
}

fn no_engine(spec: &str) -> CliError {
    CliError::Usage {
        what: format!("`{spec}`: this ctx was built without the engine for local models"),
        hint: "build it with the feature `local`, which is on by default and needs cmake and libclang, \
               or name another: --model ollama:NAME, openai:NAME, anthropic:NAME"
            .to_owned(),
    }
}

/// A file is read as far as that goes without the engine.
pub fn tried(path: &Path) -> Result<(), CliError> {
    let read = contexture_model::gguf::Header::of_file(path);
    read.map(drop).map_err(|error| CliError::BadModel {
        what: error.to_string(),
        hint: error.hint().to_owned(),
    })
}

/// The other side of a trial, for which there is no engine.
pub fn try_here(_: &Path) -> Result<(), String> {
    Err("this ctx was built without the engine".to_owned())
}
