//! Builds of many sessions in one process: `ctx build --all`, a session a line in and a result a line out.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use contexture::Session;
use contexture::build::{BuildInput, Built};
use serde_json::json;

use crate::args::{Build, Format};
use crate::error::{self, CliError};
use crate::input::{self, Line};
use crate::output::{self, Out, note};
use crate::settings::settings;
use crate::view::{Paint, plural, thousands};

/// Interval at which the progress is drawn anew.
const REDRAW: Duration = Duration::from_millis(200);

/// `ctx build --all`: a session a line in, a result a line out. A line that fails is named, and does not end it; one session
/// at a time is in memory.
pub fn build_all(options: &Build, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let format = options
        .format
        .unwrap_or(if json { Format::Json } else { Format::View });
    let mut out = Out::new();
    let mut progress = Progress::new();
    let mut ended = Ok(());
    input::lines(&options.source.file, |line| {
        let took = line.and_then(|line| {
            if line.bytes.trim_ascii().is_empty() {
                return Ok(());
            }
            let built = one(options, format, dir, &line, &mut out);
            match built {
                Err(error @ (CliError::Pipe | CliError::Io { .. })) => return Err(error),
                Err(error) => {
                    progress.failed(&error);
                    if format != Format::View {
                        let mut said = error::as_json(&error);
                        said["line"] = json!(line.number);
                        out.json(&said)?;
                    }
                }
                Ok(()) => progress.built(),
            }
            Ok(())
        });
        ended = took;
        ended.is_ok()
    });
    progress.end();
    ended?;
    out.flush()?;
    drop(out);
    note!("{}", progress.in_words());
    if progress.failed == 0 {
        return Ok(());
    }
    Err(CliError::Unfinished {
        what: format!("{} could not be built", plural(progress.failed, "session")),
        hint: "each is named above, with its line".to_owned(),
    })
}

/// Builds the session of a line, and writes what came of it.
fn one(
    options: &Build,
    format: Format,
    dir: Option<&Path>,
    line: &Line,
    out: &mut Out,
) -> Result<(), CliError> {
    let file = options.source.file.display();
    let place = PathBuf::from(format!("{file}:{}", line.number));
    let at = |error| CliError::Context {
        place: Some(place.clone()),
        error,
    };
    let input = BuildInput::read(&line.bytes).map_err(at)?;
    let settings = settings(&options.limits, &input, Some(format), dir)?;
    let mut session = Session::open(settings, input.session_entries).map_err(at)?;
    let built = session.build(input.turn).map_err(at)?;
    match format {
        Format::Json => out.json(&built.to_result())?,
        Format::Openai | Format::Anthropic | Format::Responses => {
            out.data(built.body())?;
            out.data(b"\n")?;
        }
        Format::View => out.text(&in_words(line.number, &built))?,
    }
    Ok(())
}

fn in_words(line: usize, built: &Built<'_>) -> String {
    let stats = built.stats();
    let compacted = if built.compacted() { "  compacted" } else { "" };
    format!(
        "{line:>8}  {:>11} tokens in {}{compacted}\n",
        thousands(stats.input_tokens),
        plural(stats.message_count, "message"),
    )
}

/// The progress of the build: drawn on a terminal that shows nothing else.
struct Progress {
    built: usize,
    failed: usize,
    drawn: Option<Instant>,
    draws: bool,
}

impl Progress {
    fn new() -> Self {
        Self {
            built: 0,
            failed: 0,
            drawn: None,
            draws: Paint::stderr().colour && !output::is_terminal(),
        }
    }

    fn built(&mut self) {
        self.built += 1;
        if self.draws && self.drawn.is_none_or(|then| then.elapsed() > REDRAW) {
            self.drawn = Some(Instant::now());
            output::draw("\r\x1b[K", &self.in_words());
        }
    }

    fn failed(&mut self, error: &CliError) {
        self.failed += 1;
        self.end();
        let (what, hint) = error::words(error);
        note!("ctx: {what}");
        if !hint.is_empty() {
            note!("     {hint}");
        }
    }

    fn end(&mut self) {
        if self.drawn.take().is_some() {
            output::draw("\r\x1b[K", "");
        }
    }

    fn in_words(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {} failed", thousands(failed)),
        };
        format!("{} built{failed}", plural(self.built, "session"))
    }
}
