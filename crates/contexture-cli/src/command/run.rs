use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use contexture::Message;
use contexture_agent::{AgentResult, Ended, Event};

use crate::agent::{self, Interrupt, Ready};
use crate::args::Run;
use crate::error::CliError;
use crate::input;
use crate::output::{Out, note};
use crate::view::{Screen, Steps, safe};

/// `ctx run`.
pub fn run(options: &Run, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let task = task(&options.task)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let screen = Arc::new(Screen::new());
        let Ready {
            agent,
            mut chat,
            notices,
            ..
        } = agent::ready(&options.agent, dir, &screen, |sessions| {
            agent::named(&options.agent, sessions, "run")
        })
        .await?;
        for notice in notices {
            note!("ctx: {}", safe(&notice));
        }
        let cancel = Interrupt::listen(&screen).starts();
        let budget = chat.settings().config.max_input_tokens;
        let steps = (!json).then(|| Steps::begin(&screen, budget));
        let output = Output::default();
        let on = |event: Event| {
            output.wrote(match &steps {
                Some(steps) => steps.show(&event),
                None if event.is_live() => Ok(()),
                None => line(&event),
            });
        };
        let result = agent
            .run(&mut chat, Message::user(task), &cancel, &on)
            .await;
        drop(steps);
        let result = result?;
        if !json {
            let key = chat.key();
            note!("session {key}: `ctx inspect {key}` shows what the model was told");
        }
        output.end()?;
        ended(&result)
    })
}

/// The state of writing while something is under way. Whoever reads us may go away in the middle; the run goes on, the log
/// is worth it.
#[derive(Default)]
pub struct Output(Mutex<Option<std::io::Error>>);

impl Output {
    /// Notes what came of a write.
    pub fn wrote(&self, written: std::io::Result<()>) {
        if let Err(error) = written {
            let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
        }
    }

    /// The first write that failed, if one did.
    pub fn end(self) -> Result<(), CliError> {
        let first = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// A runtime with two threads: one may wait for a disk while the other listens to a server.
pub fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CliError::Io {
            place: "starting".to_owned(),
            error,
        })
}

/// What to do: the argument, or standard input.
pub(super) fn task(given: &str) -> Result<String, CliError> {
    let task = match given {
        "-" => input::standard_text()?,
        text => text.to_owned(),
    };
    match task.trim().is_empty() {
        true => Err(CliError::Usage {
            what: "there is no task".to_owned(),
            hint: "say what to do: ctx run \"…\", or `-` to read it from standard input".to_owned(),
        }),
        false => Ok(task),
    }
}

/// An event as a line of JSON.
pub fn line(event: &Event) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut out = Out::new();
    out.data(&line)?;
    out.flush()
}

/// The exit code follows from how it ended.
fn ended(result: &AgentResult) -> Result<(), CliError> {
    let (what, hint) = match result.ended {
        Ended::Answered => return Ok(()),
        Ended::MaxSteps => (
            format!("stopped after {} steps", result.steps),
            "raise agent.maxSteps or --max-steps, or go on with --session",
        ),
        Ended::Cancelled => ("stopped".to_owned(), "go on with --session"),
        Ended::Length => (
            "the answer was cut at its longest length".to_owned(),
            "raise context.reservedOutput",
        ),
        Ended::Budget => (
            "what it may spend is spent".to_owned(),
            "go on with --session",
        ),
        Ended::Refused | Ended::Failed => ("the provider withheld the answer".to_owned(), ""),
    };
    Err(CliError::Unfinished {
        what,
        hint: hint.to_owned(),
    })
}
