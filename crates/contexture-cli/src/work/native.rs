//! Tasks by our own loop.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use contexture::Message;
use contexture::pool::SECTION;
use contexture::prompt::{Section, Stability};
use contexture::task::Spent;
use contexture_agent::{Budget, Cancel, Ended, Event, Price};
use contexture_fleet::work::{Came, Executor, Job, Working};
use contexture_model::Model;
use contexture_store::Key;
use tokio::sync::OnceCell;

use crate::agent::{self, Begin, Ready};
use crate::args::AgentOptions;
use crate::config;
use crate::error::CliError;
use crate::store;

/// Does tasks with the agent's loop, each in a session of its own.
pub struct Native {
    dir: Option<PathBuf>,
    options: AgentOptions,
    model: OnceCell<Arc<dyn Model>>,
}

impl Native {
    /// With the model and the permissions of these options.
    pub fn new(options: &AgentOptions, dir: Option<PathBuf>) -> Self {
        Self {
            dir,
            options: options.clone(),
            model: OnceCell::new(),
        }
    }

    async fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        spent: &Mutex<Spent>,
    ) -> Result<Came, CliError> {
        let config = config::load(self.dir.as_deref())?;
        let (spec, _) = agent::chosen(&self.options, &config);
        let Some(price) = price(&config, &spec, job) else {
            let what =
                format!("nobody knows what {spec} costs, and the task may cost only so much");
            let hint = "say so in `prices` of contexture.json";
            return Ok(Came::hopeless(format!("{what}: {hint}"), Spent::default()));
        };
        let model = self
            .model
            .get_or_try_init(|| agent::model(&self.options, &config));
        let model = Arc::clone(model.await?);
        let home = store::of(&config)?;
        let begin = Begin {
            workspace: config.root.clone(),
            cwd: config.root.clone(),
            key: session(&home, job)?,
            config,
            home,
            model,
            asks: None,
            servers: Vec::new(),
            host: Some(told(&job.context)),
            holds: job.tools.clone().map(names),
            more: Vec::new(),
        };
        let Ready {
            mut agent,
            mut chat,
            ..
        } = agent::make(&self.options, begin).await?;
        let offer = agent.tools.offer();
        let here = offer.tools().iter().map(|tool| tool.spec().name.clone());
        let here: BTreeSet<String> = here.collect();
        let missing = missing(job.needs.iter().map(String::as_str), &here);
        if !missing.is_empty() {
            let what = format!(
                "`{}` has no tool {} here, which the task takes",
                job.executor,
                missing.join(", ")
            );
            return Ok(Came::hopeless(
                format!("{what}: {PROVIDE}"),
                Spent::default(),
            ));
        }
        agent.options.limits.budget = Budget {
            max_tokens: job.max_tokens,
            max_cost_micros: job.max_cost_micros,
            price,
        };
        let counting = |event: Event| {
            if let Event::StepFinish {
                usage,
                input_tokens,
                ..
            } = event
            {
                let usage = usage.unwrap_or(contexture_agent::Spent {
                    input_tokens: input_tokens as u64,
                    ..Default::default()
                });
                let more = Spent {
                    tokens: usage.input_tokens.saturating_add(usage.output_tokens),
                    cost_micros: price.of(&usage),
                };
                let mut spent = spent.lock().unwrap_or_else(PoisonError::into_inner);
                *spent = spent.and(more);
            }
        };
        let said = Message::user(job.description.as_str());
        let result = agent.run(&mut chat, said, cancel, &counting).await?;
        let spent = *spent.lock().unwrap_or_else(PoisonError::into_inner);
        let why = match result.ended {
            Ended::Answered => return Ok(Came::done(result.text, spent)),
            Ended::MaxSteps => format!("no answer after {} steps", result.steps),
            Ended::Cancelled => "it was called off".to_owned(),
            Ended::Length => "the answer was cut at its longest length".to_owned(),
            Ended::Budget => "what it may spend is spent".to_owned(),
            Ended::Refused | Ended::Failed => "the provider withheld the answer".to_owned(),
        };
        let why = format!("{why}; `ctx inspect {}` shows what it was told", chat.key());
        Ok(Came::hopeless(why, spent))
    }
}

impl Executor for Native {
    fn run<'a>(&'a self, job: &'a Job, cancel: &'a Cancel) -> Working<'a> {
        Box::pin(async move {
            // What was spent before something went wrong was spent.
            let spent = Mutex::new(Spent::default());
            let came = self.run(job, cancel, &spent).await;
            let spent = *spent.lock().unwrap_or_else(PoisonError::into_inner);
            came.unwrap_or_else(|error| match error {
                CliError::Usage { .. } | CliError::NotAllowed { .. } | CliError::Context { .. } => {
                    Came::hopeless(error.to_string(), spent)
                }
                error => Came::failed(error.to_string(), spent),
            })
        })
    }
}

/// What tokens cost; any price will do where nobody set a limit.
fn price(config: &config::Config, spec: &str, job: &Job) -> Option<Price> {
    let known = config.work.price(spec);
    known.or_else(|| job.max_cost_micros.is_none().then(Price::default))
}

/// The name of the session in which an attempt is made.
fn session(home: &store::Home, job: &Job) -> Result<Key, CliError> {
    let plain = format!("{}.{}", job.task_id, job.attempt);
    let key = Key::new(plain.as_str())?;
    // The same number for another board of the project's, or a second process that was handed the same.
    Ok(match home.sessions.exists(&key)? {
        true => agent::fresh(&home.sessions, &plain)?,
        false => key,
    })
}

/// What an executor is told of the pool and its task: behind the prefix, which stays what it was.
pub fn told(context: &str) -> Section {
    Section {
        name: SECTION.to_owned(),
        origin: "pool".to_owned(),
        stability: Stability::Volatile,
        priority: 0,
        text: context.to_owned(),
    }
}

/// Remedy for a tool that is missing.
pub const PROVIDE: &str = "have an MCP server provide it (mcpServers in contexture.json), or say which tool does it: \
                           `ctx pool map CAPABILITY TOOL…`";

/// Those of the tools that nothing here is, by the names that they have here.
pub fn missing<'a>(needed: impl Iterator<Item = &'a str>, here: &BTreeSet<String>) -> Vec<&'a str> {
    let bare = |name: &String| {
        name.split_once(':')
            .map_or(name.clone(), |(_, bare)| bare.to_owned())
    };
    let bare: BTreeSet<String> = here.iter().map(bare).collect();
    let is_here = |tool: &str| {
        here.contains(tool) || bare.contains(tool) || tool == SHELL && here.contains("exec_shell")
    };
    needed.filter(|tool| !is_here(tool)).collect()
}

/// The shell as spec 003 calls it, otherwise than spec 001.
const SHELL: &str = "shell_exec";

/// The tools that were granted, by the names that they have here.
fn names(granted: BTreeSet<String>) -> BTreeSet<String> {
    let mut all = granted;
    if all.contains(SHELL) {
        all.insert("exec_shell".to_owned());
    }
    all
}
