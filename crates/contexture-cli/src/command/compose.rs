use std::path::Path;

use contexture::json;
use contexture::prompt::{self, ComposeOptions, Templates};

use super::{at, print_content, print_json, to_value};
use crate::args::{Compose, Source};
use crate::config;
use crate::error::CliError;
use crate::input;
use crate::templates;

/// `ctx compose`.
pub fn compose(options: &Compose, as_json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let source = Source {
        file: options.file.clone(),
        line: None,
    };
    let bytes = input::read(&source)?;
    let value = json::parse(&bytes, 1).map_err(at(&source))?;
    let mut options = ComposeOptions::from_value(value).map_err(at(&source))?;
    options.templates = Templates::clone(&*templates::load(&config::load(dir)?)?);
    if as_json {
        let composed = contexture::build::compose(&options).map_err(at(&source))?;
        return print_json(&to_value(composed)?);
    }
    let mut text = prompt::system_prompt(&options).map_err(at(&source))?;
    text.push('\n');
    print_content(text.as_bytes())
}
