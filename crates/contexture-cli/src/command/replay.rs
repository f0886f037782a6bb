use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::build::{BuildInput, Built, Settings};
use contexture::entry::RequestRecord;
use contexture::replay::{self, Step};
use contexture::{ContextError, Entry, Payload};
use contexture_store::{Key, StoreError};

use super::{at, read, to_value};
use crate::args::{Format, Replay, Source};
use crate::config::{self, LocalConfig};
use crate::error::CliError;
use crate::output::{Out, note};
use crate::settings::{of_session, settings};
use crate::view::{Paint, Table, safe};
use crate::{models, store};

/// `ctx replay`.
pub fn replay(options: &Replay, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let what = Replayed::find(options, dir)?;
    let budget = match options.verify {
        true => what.recorded_budget(),
        false => what.settings.config.max_input_tokens,
    };
    let format = Format::chosen(options.format, json)?;
    let mut out = Out::new();
    let mut table = Table::new(Paint::stdout());
    let mut differs = None;
    let mut requests = 0;
    // The core knows no output: what writing said is kept aside, and ends the replay.
    let mut written: Result<(), CliError> = Ok(());
    let mut visit = |step: &Step, built: &Built<'_>| {
        requests += 1;
        if let (Some(recorded), None) = (&step.recorded_digest, &differs) {
            differs = Some((step.clone(), recorded.clone()));
        }
        written = match format {
            Format::Json => to_value(step).and_then(|v| Ok(out.data(format!("{v}\n").as_bytes())?)),
            Format::Openai | Format::Anthropic | Format::Responses => out
                .data(built.body())
                .and_then(|()| out.data(b"\n"))
                .map_err(CliError::from),
            Format::View => out.text(&table.row(step)).map_err(CliError::from),
        };
        match &written {
            Ok(()) => Ok(()),
            Err(_) => Err(ContextError::invalid("output", "is closed", "")),
        }
    };
    let done = if options.verify {
        let entries = what.input.session_entries.iter().cloned().map(Arc::new);
        replay::verify(|record| what.settings_of(record), entries, &mut visit)
    } else {
        replay::replay(what.settings.clone(), what.input.clone(), &mut visit).map(drop)
    };
    written?;
    done.map_err(&what.named)?;
    if options.verify && requests == 0 {
        return Err(CliError::NothingToVerify {
            place: safe(&options.what),
        });
    }
    if format == Format::View {
        out.text(&table.end(budget))?;
    }
    out.flush()?;
    drop(out);
    match differs {
        Some((step, recorded)) => Err(difference(&what.input.session_entries, &step, recorded)),
        None if options.verify => {
            note!("{requests} recorded requests, each made again byte for byte");
            Ok(())
        }
        None => Ok(()),
    }
}

/// The first request that could not be made again, with what its record says beside the digest.
fn difference(entries: &[Entry], step: &Step, recorded: String) -> CliError {
    let record = entries.iter().find(|entry| entry.id == step.entry_id);
    let tokens = match record.map(|entry| &entry.payload) {
        Some(Payload::Request(record)) if record.input_tokens != step.input_tokens => format!(
            "it had {} tokens and has {} now; ",
            record.input_tokens, step.input_tokens
        ),
        _ => String::new(),
    };
    CliError::Differs {
        request: step.request,
        entry: step.entry_id.to_string(),
        recorded,
        made: step.digest.clone(),
        hint: format!(
            "{tokens}the log, or what is built from it, changed since it was sent: `ctx doctor` checks the log, \
             `ctx inspect SESSION --at {}` shows the request",
            step.entry_id
        ),
    }
}

/// What is replayed, and how.
struct Replayed {
    input: BuildInput,
    settings: Settings,
    /// True if no option names a model or a tokenizer: then the model of each record counts.
    counts_by_record: bool,
    /// The bounds of models on this machine.
    local: LocalConfig,
    /// Says in an error where it came from.
    named: Box<dyn Fn(ContextError) -> CliError>,
}

impl Replayed {
    /// The settings for a request that was recorded: its own model counted it, unless another is named.
    fn settings_of(&self, record: &RequestRecord) -> Settings {
        let mut settings = self.settings.clone();
        if self.counts_by_record {
            let model = record.model.as_deref();
            settings.tokenizer = models::reader_of_record(model, self.local).tokenizer;
        }
        settings
    }

    /// The largest that a request was made for.
    fn recorded_budget(&self) -> usize {
        let recorded = self
            .input
            .session_entries
            .iter()
            .filter_map(|entry| match &entry.payload {
                Payload::Request(record) => record.max_input_tokens,
                _ => None,
            });
        recorded
            .max()
            .unwrap_or(self.settings.config.max_input_tokens)
    }

    /// A session of that name, or else a file.
    fn find(options: &Replay, dir: Option<&Path>) -> Result<Self, CliError> {
        if options.what != "-"
            && options.line.is_none()
            && let Ok(key) = Key::new(options.what.as_str())
        {
            match store::open(dir)?.load(&key) {
                Ok(loaded) => return Self::session(options, &key, &loaded.view, dir),
                Err(CliError::Store(StoreError::NoStream { .. }))
                    if Path::new(&options.what).exists() => {}
                Err(CliError::Store(StoreError::NoStream { stream, nearest })) => {
                    return Err(CliError::Usage {
                        what: format!("there is no {stream}, and no such file"),
                        hint: match nearest {
                            Some(name) => format!("did you mean `{name}`?"),
                            None => {
                                "`ctx sessions list` shows the sessions; `-` reads standard input"
                                    .to_owned()
                            }
                        },
                    });
                }
                Err(error) => return Err(error),
            }
        }
        let source = Source {
            file: PathBuf::from(&options.what),
            line: options.line,
        };
        let input = read(&source)?;
        Ok(Self {
            settings: settings(&options.limits, &input, options.format, dir)?,
            counts_by_record: counts_by_record(options),
            local: config::load(dir)?.agent.local,
            input,
            named: Box::new(at(&source)),
        })
    }

    fn session(
        options: &Replay,
        key: &Key,
        view: &contexture::View,
        dir: Option<&Path>,
    ) -> Result<Self, CliError> {
        let record = view
            .log()
            .iter()
            .rev()
            .find_map(|entry| match &entry.payload {
                Payload::Request(record) => Some(record),
                _ => None,
            });
        let config = config::load(dir)?;
        let mut settings = of_session(&options.limits, record, &config)?;
        let wire = options.format.and_then(Format::wire);
        settings.wire = wire.unwrap_or(settings.wire);
        let entries = view.log().iter().map(|entry| entry.as_ref().clone());
        let place = PathBuf::from(format!("session `{key}`"));
        Ok(Self {
            input: BuildInput {
                session_entries: entries.collect(),
                ..BuildInput::default()
            },
            settings,
            counts_by_record: counts_by_record(options),
            local: config.agent.local,
            named: Box::new(move |error| CliError::Context {
                place: Some(place.clone()),
                error,
            }),
        })
    }
}

fn counts_by_record(options: &Replay) -> bool {
    let model = &options.limits.model;
    model.name.is_none() && model.tokenizer.is_none()
}
