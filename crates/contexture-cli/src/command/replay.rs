use std::io::{BufWriter, Write};
use std::path::Path;

use contexture::build::Built;
use contexture::replay::{self, Step};

use super::{at, read, to_value};
use crate::args::{Format, Replay};
use crate::error::CliError;
use crate::settings::settings;
use crate::view::{Paint, Table};

/// `ctx replay`.
pub fn replay(options: &Replay, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let input = read(&options.source)?;
    let settings = settings(&options.limits, &input, options.format, dir)?;
    let budget = settings.config.max_input_tokens;
    let format = options
        .format
        .unwrap_or(if json { Format::Json } else { Format::View });
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut table = Table::new(Paint::stdout());
    let mut differs = None;
    let mut requests = 0;
    // The core knows no output: what writing said is kept aside, and ends the replay.
    let mut written: Result<(), CliError> = Ok(());
    let mut visit = |step: &Step, built: &Built<'_>| {
        requests += 1;
        if let (Some(recorded), None) = (&step.recorded_digest, &differs) {
            differs = Some((step.request, recorded.clone(), step.digest.clone()));
        }
        written = match format {
            Format::Json => to_value(step).and_then(|v| Ok(writeln!(out, "{v}")?)),
            Format::Openai | Format::Anthropic => out
                .write_all(built.body())
                .and_then(|()| out.write_all(b"\n"))
                .map_err(CliError::from),
            Format::View => out
                .write_all(table.row(step).as_bytes())
                .map_err(CliError::from),
        };
        match &written {
            Ok(()) => Ok(()),
            Err(_) => Err(contexture::ContextError::invalid("output", "is closed", "")),
        }
    };
    let done = if options.verify {
        replay::verify(&settings, input.session_entries, &mut visit)
    } else {
        replay::replay(settings, input, &mut visit)
    };
    written?;
    done.map_err(at(&options.source))?;
    if format == Format::View {
        out.write_all(table.end(budget).as_bytes())?;
    }
    out.flush()?;
    drop(out);
    match differs {
        Some((request, recorded, made)) => Err(CliError::Differs {
            request,
            recorded,
            made,
            hint: "the log, or what is built from it, changed since the request was sent"
                .to_owned(),
        }),
        None if options.verify => {
            eprintln!("{requests} recorded requests, each made again byte for byte");
            Ok(())
        }
        None => Ok(()),
    }
}
