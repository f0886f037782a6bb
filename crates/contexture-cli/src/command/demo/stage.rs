//! The session of the demo, and what is done with it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use contexture::build::{BuildInput, Built, Rule};
use contexture::diff::{Diff, Side};
use contexture::entry::{RequestRecord, SessionHeader, Target};
use contexture::prompt::{Section, ToolPolicy};
use contexture::{ContextConfig, EntryId, Payload, replay};
use contexture_agent::{Agent, Cancel, Chat, Options, Stores, clock};
use contexture_store::{Key, Memories, Record, Sessions, Transcripts};
use contexture_tools::approval::{Approvals, Standing};
use contexture_tools::{Secrets, Toolset};
use serde_json::json;

use super::ask::{ask, build};
use super::facts::{Asked, Broken, Build, Command, Compacted, Done, Piece, Undone, Verified};
use super::show::Show;
use crate::agent::{self, Interrupt};
use crate::args::{AgentOptions, CompactorName};
use crate::command::point::Point;
use crate::error::CliError;
use crate::view::{Screen, describe, safe};
use crate::{config, store};

/// The conversation that it begins with.
const SESSION: &str = include_str!("../../../../../examples/demo.jsonl");

/// Small, so that the picture shows more than free room; and a compaction leaves more than usual, so that
/// there is room for a summary.
const BUDGET: usize = 1_000;
const RESERVE: usize = 100;
const TARGET_PERCENT: usize = 60;
/// A small model writes slowly, and soon loses its way.
const LONGEST_ANSWER: usize = 24;

/// What the section with the time is called.
const CLOCK: &str = "clock";

pub struct Stage {
    agent: Agent,
    chat: Chat,
    sessions: Sessions,
    cancel: Cancel,
    /// Where the cache was broken.
    fork: Key,
}

/// The request's digests around a compaction, and the entries that did it.
pub struct Digests {
    before: String,
    compacted: String,
    by: Vec<EntryId>,
}

impl Stage {
    /// A new session in the project's store, with the demo's conversation in it. The model is fetched
    /// where it is not here yet.
    pub async fn open(
        spec: &str,
        dir: Option<&Path>,
        screen: &Arc<Screen>,
    ) -> Result<Self, CliError> {
        let config = config::load(dir)?;
        let options = AgentOptions {
            model: Some(spec.to_owned()),
            compactor: Some(CompactorName::Extract),
            ..AgentOptions::default()
        };
        let model = agent::model(&options, &config).await?;
        let (mut settings, compactor) = agent::settings_for(&options, &config, &model)?;
        settings.config = ContextConfig {
            max_input_tokens: BUDGET,
            reserved_output: RESERVE,
            target_percent: TARGET_PERCENT,
            ..ContextConfig::default()
        };
        settings.params.insert("temperature".to_owned(), json!(0));
        settings
            .params
            .insert("max_tokens".to_owned(), json!(LONGEST_ANSWER));
        let sessions = store::open(dir)?.sessions;
        let key = agent::fresh(&sessions, "demo")?;
        let header = SessionHeader {
            agent: Some("demo".to_owned()),
            cwd: Some(config.root.display().to_string()),
            ..SessionHeader::default()
        };
        let entries = BuildInput::read(SESSION.as_bytes())?.session_entries;
        let records = entries.iter().map(Record::try_from);
        sessions
            .create(&key, header.clone(), &clock::now())?
            .append(&records.collect::<Result<Vec<_>, _>>()?)?;
        let chat = Chat::open(&sessions, &key, header, settings)?;
        let log = Arc::clone(sessions.log());
        let agent = Agent {
            model,
            tools: Toolset::new(
                ToolPolicy::default(),
                Approvals::new(Standing::default()),
                Secrets::from_env(),
            ),
            stores: Stores {
                transcripts: Transcripts::new(Arc::clone(&log)),
                memories: Memories::new(log, config.agent.memory_window),
            },
            compactor,
            options: Options {
                sections: chat.view().sections().to_vec(),
                ..Options::default()
            },
        };
        Ok(Self {
            agent,
            fork: Key::new(format!("{key}-{CLOCK}"))?,
            chat,
            sessions,
            cancel: Interrupt::listen(screen).starts(),
        })
    }

    pub fn key(&self) -> &Key {
        self.chat.key()
    }

    pub fn model(&self) -> &str {
        self.agent.model.name()
    }

    /// The request that a question makes.
    pub fn build(&self, question: &str) -> Result<Build, CliError> {
        build(&self.agent, &self.chat, question, |built| Build {
            session: self.key().to_string(),
            model: self.model().to_owned(),
            bytes: built.body().len(),
            receipt: built.receipt(),
            messages: built.messages().cloned().collect(),
        })
    }

    /// Asks the model.
    pub async fn ask(&mut self, question: &str, show: &Show) -> Result<Asked, CliError> {
        ask(&self.agent, &mut self.chat, &self.cancel, question, show).await
    }

    /// Asks in a fork of the session, with the time in the system prompt.
    pub async fn ask_with_time_in_prompt(
        &mut self,
        time: &str,
        question: &str,
        show: &Show,
    ) -> Result<Broken, CliError> {
        let settings = self.chat.settings().clone();
        let now = clock::now();
        let tail = self.sessions.open(self.key())?.tail().clone();
        self.sessions.fork(self.key(), &tail, &self.fork, &now)?;
        let header = SessionHeader::default();
        let mut fork = Chat::open(&self.sessions, &self.fork, header, settings)?;
        let clock = Section::stable(CLOCK, "demo", time);
        self.agent.options.sections.push(clock);
        let asked = ask(&self.agent, &mut fork, &self.cancel, question, show).await;
        self.agent.options.sections.pop();
        let (asked, diff) = (asked?, last_two(&fork)?);
        Ok(Broken {
            fork: self.fork.to_string(),
            asked,
            rebilled_tokens: diff.rebilled_tokens,
            broken_by: diff.prefix.broken_by,
            cost_ms: 0,
        })
    }

    /// Asks in the session itself, with the time at the end.
    pub async fn ask_with_time_at_end(
        &mut self,
        time: &str,
        question: &str,
        show: &Show,
    ) -> Result<Asked, CliError> {
        let clock = Section::volatile(CLOCK, "demo", time);
        self.agent.options.sections.push(clock);
        self.ask(question, show).await
    }

    /// Makes room, as `/compact` does.
    pub fn compact(&mut self) -> Result<(Compacted, Digests), CliError> {
        self.go_on()?;
        let before = self.digest()?;
        let logged = self.chat.view().log().len();
        let done = self.agent.compact(&mut self.chat, &self.cancel)?;
        let built = self.chat.session().current()?;
        let (receipt, digest) = (built.receipt(), built.digest().to_owned());
        let log = self.chat.view().log();
        let decided = log[logged..].iter().filter(|entry| {
            matches!(
                entry.payload,
                Payload::CompactionSummary(_) | Payload::Mask(_)
            )
        });
        let piece = |origin: &str, role, rule, tokens, position: usize| Piece {
            origin: origin.to_owned(),
            role,
            rule,
            tokens,
            text: text(&log[position].payload),
        };
        let shown = |wanted: Rule| {
            let items = receipt.items.iter().filter(|item| item.rule == wanted);
            let pieces =
                items.filter_map(|i| Some(piece(&i.origin, i.role, i.rule, i.tokens, i.position?)));
            pieces.collect()
        };
        let left = receipt.excluded.iter();
        let left_out = left.map(|i| piece(&i.origin, i.role, i.rule, i.tokens, i.position));
        let facts = Compacted {
            tokens_before: done.tokens_before,
            tokens_after: done.tokens_after,
            left_out: left_out.collect(),
            summary: shown(Rule::Summary),
            pinned: shown(Rule::Pinned),
        };
        let digests = Digests {
            before,
            compacted: digest,
            by: decided.map(|entry| entry.id.clone()).collect(),
        };
        Ok((facts, digests))
    }

    /// Takes a compaction back, as `/undo` does.
    pub fn undo(&mut self, digests: Digests) -> Result<Undone, CliError> {
        self.go_on()?;
        for entry_id in digests.by.into_iter().rev() {
            self.chat.say(Payload::Revert(Target { entry_id }))?;
        }
        Ok(Undone {
            before: digests.before,
            compacted: digests.compacted,
            after: self.digest()?,
        })
    }

    /// Makes every request of the demo again, from what the store has.
    pub fn verify(&self) -> Result<Verified, CliError> {
        self.go_on()?;
        // The fork begins with the session's own requests: those are counted once.
        let (mut made, mut differ) = (HashSet::new(), HashSet::new());
        for key in [self.key(), &self.fork] {
            let view = self.sessions.load(key)?.view;
            let log = view.log().iter().cloned();
            let settings = |_: &RequestRecord| self.chat.settings().clone();
            replay::verify(settings, log, |step, _| {
                made.insert(step.entry_id.clone());
                if step.recorded_digest.is_some() {
                    differ.insert(step.entry_id.clone());
                }
                Ok(())
            })?;
        }
        Ok(Verified {
            requests: made.len(),
            verified: made.len() - differ.len(),
        })
    }

    /// What to go on with.
    pub fn done(&self) -> Done {
        let key = self.key();
        let command = |command: String, what| Command { command, what };
        Done {
            session: key.to_string(),
            commands: vec![
                command(
                    format!("ctx inspect {key} --at 2"),
                    "its last request, item by item",
                ),
                command(
                    format!("ctx diff {} 1 2", self.fork),
                    "what broke the cache in step 4",
                ),
                command("ctx chat".to_owned(), "a conversation of your own"),
            ],
        }
    }

    fn digest(&mut self) -> Result<String, CliError> {
        Ok(self.chat.session().current()?.digest().to_owned())
    }

    /// An error once somebody pressed Ctrl-C.
    fn go_on(&self) -> Result<(), CliError> {
        match self.cancel.is_cancelled() {
            true => Err(self.stopped()),
            false => Ok(()),
        }
    }

    fn stopped(&self) -> CliError {
        CliError::Unfinished {
            what: "stopped".to_owned(),
            hint: format!("what there is so far: `ctx inspect {}`", self.key()),
        }
    }
}

/// What an entry says, in one line.
fn text(payload: &Payload) -> String {
    match payload {
        Payload::Message { message } => describe(message),
        Payload::CompactionSummary(made) => safe(&made.summary),
        _ => String::new(),
    }
}

/// The time of day, in words for a model.
pub fn time() -> String {
    let now: String = clock::now().chars().skip(11).take(5).collect();
    format!("The time is {now} UTC.")
}

/// What `ctx diff` says of the last two requests.
fn last_two(chat: &Chat) -> Result<Diff, CliError> {
    let (view, key) = (chat.view(), chat.key());
    let log = view.log().iter();
    let requests = log.filter(|entry| matches!(entry.payload, Payload::Request(_)));
    let last = requests.count().saturating_sub(1);
    let side = |number: usize| {
        let point = Point::find(view, key, &number.to_string())?;
        point.request(chat.settings().clone(), |built: &Built<'_>| Side::of(built))
    };
    Ok(Diff::between(
        view,
        &side(last.saturating_sub(1))?,
        &side(last)?,
    ))
}
