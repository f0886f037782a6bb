use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::{Message, Payload, Role};
use contexture_agent::{Agent, AgentResult, Cancel, Chat, Event};
use contexture_store::{Key, Sessions};
use contexture_tools::mcp::Servers;
use contexture_tools::skills::Skills;

use super::editor::Names;
use crate::agent::{self, Interrupt, Ready};
use crate::args::AgentOptions;
use crate::command::run;
use crate::config::Config;
use crate::error::CliError;
use crate::output::{Out, note};
use crate::view::{Keys, Paint, Screen, Steps, plural, safe, safe_lines, thousands};

/// Where the conversation takes place: who takes part, and all that a command may touch.
pub struct Room {
    pub agent: Agent,
    pub chat: Chat,
    pub sessions: Sessions,
    pub skills: Arc<Skills>,
    pub servers: Arc<Servers>,
    pub config: Config,
    pub options: AgentOptions,
    pub dir: Option<PathBuf>,
    /// The model's spec, and its address where that is not its provider's own.
    pub spec: (String, Option<String>),
    pub notices: Vec<String>,
    json: bool,
    screen: Arc<Screen>,
    interrupt: Interrupt,
}

impl Room {
    pub fn new(
        ready: Ready,
        options: &AgentOptions,
        dir: Option<&Path>,
        screen: &Arc<Screen>,
        json: bool,
    ) -> Self {
        Self {
            spec: agent::chosen(options, &ready.config),
            agent: ready.agent,
            chat: ready.chat,
            sessions: ready.sessions,
            skills: ready.skills,
            servers: ready.servers,
            config: ready.config,
            options: options.clone(),
            dir: dir.map(Path::to_owned),
            notices: ready.notices,
            json,
            screen: Arc::clone(screen),
            interrupt: Interrupt::listen(screen),
        }
    }

    /// A turn: the model answers, with as many steps as it takes.
    pub async fn turn(&mut self, text: &str) -> Result<AgentResult, CliError> {
        let cancel = self.interrupt.starts();
        let budget = self.chat.settings().config.max_input_tokens;
        let steps = (!self.json).then(|| Steps::begin(&self.screen, budget));
        let output = run::Output::default();
        let on = |event: Event| {
            output.wrote(match &steps {
                Some(steps) => steps.show(&event),
                None if event.is_live() => Ok(()),
                None => run::line(&event),
            });
        };
        let message = Message::user(text);
        let result = self.agent.run(&mut self.chat, message, &cancel, &on).await;
        self.interrupt.ends();
        drop(steps);
        output.end()?;
        Ok(result?)
    }

    /// Does what may take a while, and can be stopped.
    pub fn during<T>(&mut self, work: impl FnOnce(&mut Self, &Cancel) -> T) -> T {
        let cancel = self.interrupt.starts();
        let budget = self.chat.settings().config.max_input_tokens;
        let steps = (!self.json).then(|| Steps::begin(&self.screen, budget));
        let done = work(self, &cancel);
        self.interrupt.ends();
        drop(steps);
        done
    }

    pub fn paint(&self) -> Paint {
        self.screen.paint()
    }

    /// Text that was typed while a question was about to be asked.
    pub fn typed_ahead(&self) -> String {
        self.screen.keys().map(Keys::ahead).unwrap_or_default()
    }

    /// Shows what was said without a prompt, as a prompt would.
    pub fn echo(&self, line: &str) {
        let paint = self.paint();
        let mark = paint.bold(&paint.fg(71, "› "));
        note!("{mark}{}", safe_lines(line).replace('\n', "\n  "));
    }

    /// Shows the last exchange of a session that goes on.
    pub fn recall(&self) {
        let said = |live: contexture::entry::Live<'_>| match &live.entry.payload {
            Payload::Message { message } => Some((message.role, message.text().into_owned())),
            _ => None,
        };
        let mut said = self.chat.view().live(0).rev().filter_map(said);
        let Some((Role::Assistant, answer)) = said.next() else {
            return;
        };
        if let Some((_, question)) = said.find(|(role, _)| *role == Role::User) {
            note!();
            self.echo(&question);
        }
        let paint = self.paint();
        let shown = if paint.colour {
            crate::view::markdown(&answer, paint).join("\n")
        } else {
            safe_lines(answer.trim())
        };
        if !shown.is_empty() {
            note!("\n{shown}");
        }
    }

    /// A line about the conversation, beside it.
    pub fn note(&self, text: &str) {
        note!("  {text}");
    }

    /// What a command was asked for.
    pub fn print(&self, text: &str) -> Result<(), CliError> {
        let mut out = Out::new();
        out.text(text)?;
        Ok(out.flush()?)
    }

    /// Model, budget, tools and skills in a line.
    pub fn about(&self) -> String {
        let budget = self.chat.settings().config.max_input_tokens;
        format!(
            "{} · {} tokens · {} · {}",
            safe(self.agent.model.name()),
            thousands(budget),
            plural(self.agent.tools.offer().tools().len(), "tool"),
            plural(self.skills.used().len(), "skill"),
        )
    }

    /// The session's name, once there is something in it.
    pub fn written(&self) -> Option<&Key> {
        let key = self.chat.key();
        self.sessions.exists(key).unwrap_or(false).then_some(key)
    }

    /// What a person may want to name.
    pub fn names(&self) -> Names {
        let sessions = self.sessions.list().unwrap_or_default();
        Names {
            sessions: sessions
                .iter()
                .map(|info| info.stream.key.to_string())
                .collect(),
            skills: self
                .skills
                .used()
                .iter()
                .map(|skill| skill.name.clone())
                .collect(),
        }
    }
}
