//! Summaries by the model itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contexture::build::{BuildInput, Compactor, Span, constraints};
use contexture::prompt::render_str;
use contexture::{ContextConfig, Message, Session, Settings, Turn};
use contexture_model::{Model, Stop, Usage};
use serde_json::{Map, Value, json};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::Cancel;

/// Asks the model for the summary.
///
/// Its request is made by the same build as every other: first the conversation up to the end of the
/// span, which is the beginning of the last request, so that the provider has it in its cache; and where
/// that does not fit, the span alone, cut to what does. So the request is never over the budget. What
/// the user forbade or demanded is put behind the model's words verbatim, whatever the model made of it.
///
/// It is one of a list: where it fails, or its summary will not do, the next one is asked.
pub struct ModelCompactor {
    model: Arc<dyn Model>,
    settings: Settings,
    patience: Duration,
    /// Where calls run; absent means where the build does.
    runtime: Option<Handle>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cancel: Cancel,
    calls: Vec<Map<String, Value>>,
    spent: Vec<Usage>,
    /// Why the model gave no answer in this run. It is not asked again: one build may ask several
    /// times, and each would wait.
    silent: Option<String>,
}

const INSTRUCTION: &str = include_str!("../templates/summarise.md");
/// For a model that long instructions confuse.
const SHORT: &str = include_str!("../templates/summarise-small.md");
/// How long a summary may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Of the names that a summary must have, the model itself must say this share. An error text or an
/// apology says none.
const SHARE: usize = 3;

/// What stands over the user's own rules, as in a summary that is made without a model.
const RULES: &str = "Constraints:";

impl ModelCompactor {
    /// Summaries by this model, for a conversation with these settings.
    pub fn new(model: Arc<dyn Model>, settings: &Settings) -> Self {
        Self {
            model,
            settings: Settings {
                compactors: Vec::new(),
                config: ContextConfig {
                    // Nothing is compacted to make a compaction, unless it would not fit at all.
                    trigger_percent: 100,
                    target_percent: 99,
                    ..settings.config
                },
                ..settings.clone()
            },
            patience: PATIENCE,
            runtime: None,
            state: Mutex::default(),
        }
    }

    /// Waits no longer than this.
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Calls run here: for a build outside of any runtime.
    pub fn on(self, runtime: Handle) -> Self {
        Self {
            runtime: Some(runtime),
            ..self
        }
    }

    /// A run begins: from now on it stops when this is cancelled.
    pub(crate) fn attach(&self, cancel: &Cancel) {
        let mut state = self.state();
        state.cancel = cancel.clone();
        state.silent = None;
    }

    /// What was asked since this was last called, for the log, and what it cost.
    pub(crate) fn take_calls(&self) -> (Vec<Map<String, Value>>, Vec<Usage>) {
        let mut state = self.state();
        (
            std::mem::take(&mut state.calls),
            std::mem::take(&mut state.spent),
        )
    }

    /// The request's body: the conversation up to the end of the span, or the span alone.
    fn body(&self, span: &Span<'_>) -> Result<(Vec<u8>, String), String> {
        let instruction = instruction(span, self.model.is_small())?;
        let (messages, tools) = self.riding(span)?;
        match self.built(messages, tools, &instruction) {
            Ok((body, digest, false)) => Ok((body, digest)),
            _ => {
                let alone = span.items.iter().map(|item| item.message.clone()).collect();
                let (body, digest, _) = self.built(alone, Vec::new(), &instruction)?;
                Ok((body, digest))
            }
        }
    }

    /// The messages of the last request up to the end of the span, and its tools.
    fn riding(&self, span: &Span<'_>) -> Result<(Vec<Message>, Vec<Value>), String> {
        let last = span.items.last().ok_or("there is nothing to summarise")?;
        let mut session =
            Session::open(self.settings.clone(), span.log.iter().cloned()).map_err(said)?;
        let end = session.view().position(last.id);
        let built = session.current().map_err(said)?;
        let items = built.receipt().items;
        let index = items
            .iter()
            .find(|item| item.position == end)
            .map(|item| item.index);
        let index = index.ok_or("the span is not in the request")?;
        let messages = built.messages().take(index + 1).cloned().collect();
        Ok((messages, built.tools().to_vec()))
    }

    /// The request for these messages; whether something of them had to leave.
    fn built(
        &self,
        messages: Vec<Message>,
        tools: Vec<Value>,
        instruction: &str,
    ) -> Result<(Vec<u8>, String, bool), String> {
        let input = BuildInput::from_messages(messages.into_iter().map(|message| Message {
            id: None,
            pin: false,
            ..message
        }));
        let mut session =
            Session::open(self.settings.clone(), input.session_entries).map_err(said)?;
        let built = session
            .build(Turn {
                tools: Some(tools),
                messages: vec![Message::user(instruction)],
                ..Turn::default()
            })
            .map_err(said)?;
        Ok((
            built.body().to_vec(),
            built.digest().to_owned(),
            built.compacted(),
        ))
    }

    /// Sends it and waits, as the build does that asks.
    fn ask(&self, body: Vec<u8>) -> Result<(String, Option<Usage>), String> {
        let handle = self.handle()?;
        let cancel = self.state().cancel.clone();
        let mut quiet = |_| {};
        let called = self.model.call(body, &mut quiet);
        let reply = handle.block_on(async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err("it was stopped".to_owned()),
                reply = tokio::time::timeout(self.patience, called) => match reply {
                    Ok(reply) => reply.map_err(|error| error.to_string()),
                    Err(_) => Err("the model took too long".to_owned()),
                },
            }
        })?;
        if !reply.message.tool_calls.is_empty() {
            return Err("the model called tools instead".to_owned());
        }
        match reply.stop {
            Stop::Length => Err("the model wrote more than it may".to_owned()),
            Stop::Refused => Err("the provider withheld it".to_owned()),
            _ => Ok((reply.message.text().trim().to_owned(), reply.usage)),
        }
    }

    fn handle(&self) -> Result<Handle, String> {
        match (Handle::try_current(), &self.runtime) {
            (Ok(here), _) if here.runtime_flavor() == RuntimeFlavor::MultiThread => Ok(here),
            (Ok(_), _) => Err("the runtime has one thread, and that one waits".to_owned()),
            (Err(_), Some(given)) => Ok(given.clone()),
            (Err(_), None) => Err("there is no runtime to call the model in".to_owned()),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Compactor for ModelCompactor {
    fn name(&self) -> &str {
        "model"
    }

    fn summarise(&self, span: &Span<'_>) -> Result<String, String> {
        if let Some(why) = &self.state().silent {
            return Err(why.clone());
        }
        let (body, digest) = self.body(span)?;
        let asked = self.ask(body);
        let mut call = Map::from_iter([
            ("kind".to_owned(), json!("summary_request")),
            ("digest".to_owned(), json!(digest)),
            ("model".to_owned(), json!(self.model.name())),
        ]);
        match &asked {
            Ok((_, Some(usage))) => {
                call.insert("usage".to_owned(), Value::Object(usage.0.clone()));
                self.state().spent.push(usage.clone());
            }
            Ok((_, None)) => {}
            Err(why) => {
                call.insert("error".to_owned(), json!(why));
                self.state().silent = Some(why.clone());
            }
        }
        self.state().calls.push(call);
        let text = asked?.0;
        if repeats(&text, &instruction(span, self.model.is_small())?) {
            return Err("it repeats what it was asked".to_owned());
        }
        completed(&text, span)
    }
}

/// Whether half of a text or more stands in the instruction, line by line: small models say again what
/// they were told last.
fn repeats(text: &str, instruction: &str) -> bool {
    let flat = |text: &str| {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        words.join(" ")
    };
    let instruction = flat(instruction);
    let lines = text.split_inclusive(['.', ':', '\n']).map(flat);
    let (mut all, mut repeated) = (0, 0);
    for line in lines {
        all += line.len();
        if line.len() >= 12 && instruction.contains(&line) {
            repeated += line.len();
        }
    }
    repeated > 0 && repeated * 2 >= all
}

/// The model's words, with the user's rules verbatim and the names that it left out.
fn completed(text: &str, span: &Span<'_>) -> Result<String, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let missing: Vec<&str> = span
        .probes
        .iter()
        .map(String::as_str)
        .filter(|probe| !text.contains(probe))
        .collect();
    let named = span.probes.len() - missing.len();
    if named * SHARE < span.probes.len() {
        return Err(format!(
            "it names {named} of the {} things that the conversation was about",
            span.probes.len()
        ));
    }
    let mut tail = String::new();
    let rules = constraints(&span.items);
    if !rules.is_empty() {
        tail.push_str(&format!("\n{RULES}\n"));
        for rule in rules {
            tail.push_str(&format!("- {rule}\n"));
        }
    }
    if !missing.is_empty() {
        tail.push_str(&format!("\nNames: {}\n", missing.join(", ")));
    }
    let tail = tail.trim_end();
    let room = span
        .max_tokens
        .saturating_sub(span.tokenizer.count(tail) + 2);
    let mut kept = String::new();
    // Only the user's own words may stand under that heading.
    let text = text.replace(RULES, "Rules that were mentioned:");
    for line in text.lines() {
        let longer = format!("{kept}{line}\n");
        if span.tokenizer.count(&longer) > room {
            break;
        }
        kept = longer;
    }
    match kept.trim().is_empty() {
        true => Err("there is no room for it".to_owned()),
        false => Ok(format!("{}\n{tail}", kept.trim_end()).trim_end().to_owned()),
    }
}

/// The most tokens that a model is asked for.
const MAX_SUMMARY_TOKENS: usize = 4_096;

fn instruction(span: &Span<'_>, small: bool) -> Result<String, String> {
    let names = match span.probes.as_slice() {
        [] => "(none)".to_owned(),
        probes => probes.join(", "),
    };
    // Rather less than there is room for: models count badly. And never a book, however much room there is.
    let words = span.max_tokens.min(MAX_SUMMARY_TOKENS) / 2;
    render_str(
        "summarise",
        if small { SHORT } else { INSTRUCTION },
        json!({"words": words, "names": names}),
    )
    .map_err(said)
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_that_says_the_instruction_again_is_none() {
        let parrot = "The conversation above will leave your window, and what you write now takes its\n\
                      place. Write a record of it for yourself, in at most 32 words:";
        assert!(repeats(parrot, &INSTRUCTION.replace("{{ words }}", "32")));
        let short = SHORT.replace("{{ words }}", "40");
        assert!(repeats(
            "summarise our conversation above in at most 40 words: what I asked for",
            &short
        ));
        for honest in [
            "The user asked for a release of the parser. The tests pass. The changelog is left to do.",
            "Asked: what was found in the harbour. Found: boats.",
            "",
        ] {
            assert!(!repeats(honest, INSTRUCTION), "{honest}");
            assert!(!repeats(honest, &short), "{honest}");
        }
    }
}
