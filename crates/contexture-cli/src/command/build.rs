use std::path::Path;

use contexture::{Message, Session};

use super::{at, print, print_data, print_json, read};
use crate::args::{Build, Format};
use crate::error::CliError;
use crate::settings::settings;
use crate::view::{self, Paint, Shown};

/// `ctx build`.
pub fn build(options: &Build, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let input = read(&options.source)?;
    let format = Format::chosen(options.format, json)?;
    let settings = settings(&options.limits, &input, Some(format), dir)?;
    let mut session =
        Session::open(settings, input.session_entries).map_err(at(&options.source))?;
    let built = session.build(input.turn).map_err(at(&options.source))?;
    match format {
        Format::Json => print_json(&built.to_result()),
        // Exactly the bytes that the digest is of: no newline behind them.
        Format::Openai | Format::Anthropic | Format::Responses => print_data(built.body()),
        Format::View => {
            let messages: Vec<&Message> = built.messages().collect();
            let receipt = built.receipt();
            let title = match options.source.line {
                Some(line) => format!("{}:{line}", options.source.file.display()),
                None => options.source.file.display().to_string(),
            };
            let shown = Shown {
                title: &title,
                receipt: &receipt,
                messages: &messages,
                bytes: built.body().len(),
            };
            print(view::request(&shown, Paint::stdout()).as_bytes())
        }
    }
}
