use std::path::Path;

use contexture::json;
use contexture::pool::{ContextOptions, Locale, Pool, dynamic_system_prompt};
use contexture_agent::clock::now;
use serde_json::Value;

use super::pool::load;
use super::{at, print_content, print_json, to_value};
use crate::args::{AgentContext, LocaleName, Source};
use crate::error::CliError;
use crate::{input, store};

/// `ctx agent-context`.
pub fn agent_context(
    options: &AgentContext,
    as_json: bool,
    dir: Option<&Path>,
) -> Result<(), CliError> {
    let pool = match &options.pool {
        Some(file) => {
            let (value, source) = document(file)?;
            Pool::from_value(value).map_err(at(&source))?
        }
        None => load(&store::open(dir)?)?.1.board.pool().clone(),
    };
    let (task, place) = match &options.task {
        Some(file) => {
            let (value, source) = document(file)?;
            let task = ContextOptions::from_value(value).map_err(at(&source))?;
            (task, input::place(file))
        }
        None => (ContextOptions::default(), None),
    };
    let context = pool
        .agent_context(task, now())
        .map_err(|error| CliError::Context { place, error })?;
    if as_json {
        return print_json(&to_value(&context)?);
    }
    let locale = match options.locale {
        LocaleName::En => Locale::En,
        LocaleName::Zh => Locale::Zh,
    };
    let mut text = match &options.base {
        Some(file) => {
            let base = base(file)?;
            dynamic_system_prompt(base.trim_end(), Some(&context), locale)?
        }
        None => context.render(locale)?,
    };
    text.push('\n');
    print_content(text.as_bytes())
}

/// A file that is one JSON document.
pub fn document(file: &Path) -> Result<(Value, Source), CliError> {
    let source = Source {
        file: file.to_owned(),
        line: None,
    };
    let bytes = input::read(&source)?;
    let value = json::parse(&bytes, 1).map_err(at(&source))?;
    Ok((value, source))
}

fn base(file: &Path) -> Result<String, CliError> {
    let source = Source {
        file: file.to_owned(),
        line: None,
    };
    String::from_utf8(input::read(&source)?).map_err(|_| {
        let hint = "a prompt is text";
        at(&source)(contexture::ContextError::invalid(
            "line 1",
            "is not UTF-8",
            hint,
        ))
    })
}
