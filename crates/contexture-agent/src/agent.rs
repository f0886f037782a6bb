//! An agent, and the one thing that it does.

use std::sync::Arc;

use contexture::Message;
use contexture::build::RuntimeHintProvider;
use contexture::prompt::Section;
use contexture_model::Model;
use contexture_store::{Memories, Transcripts};
use contexture_tools::Toolset;
use serde_json::{Map, Value};

use crate::work::{On, Work};
use crate::{AgentError, AgentResult, Cancel, Chat, Ended, Event, Limits, ModelCompactor};

/// An agent: a model, tools, and how far it may go.
pub struct Agent {
    /// What answers.
    pub model: Arc<dyn Model>,
    /// What it can do.
    pub tools: Toolset,
    /// Where runs are remembered.
    pub stores: Stores,
    /// Where the conversation's settings name one: what writes summaries with the model, so that it
    /// stops with the run and its cost is counted.
    pub compactor: Option<Arc<ModelCompactor>>,
    /// The rest.
    pub options: Options,
}

/// Where what was said and done is kept, beside the log.
#[derive(Clone)]
pub struct Stores {
    /// What people saw.
    pub transcripts: Transcripts,
    /// What was done.
    pub memories: Memories,
}

/// How an agent works.
#[derive(Clone, Default)]
pub struct Options {
    /// How far a run may go.
    pub limits: Limits,
    /// When a conversation's history is compacted before a run, by its length alone.
    pub history: Option<History>,
    /// How many messages tools may inject in a run.
    pub max_injected: usize,
    /// The system side.
    pub sections: Vec<Section>,
    /// More of it, asked for before each request: what changes while a run goes on.
    pub refresh: Option<Refresh>,
    /// Facts that hold for the session.
    pub runtime_init: Map<String, Value>,
    /// Gives facts that change from turn to turn, asked for before each run.
    pub hints: Option<Arc<dyn RuntimeHintProvider>>,
}

impl Options {
    /// The hints as they are now, where there are any.
    pub fn hints_now(&self) -> Option<Map<String, Value>> {
        let hints = self.hints.as_ref().map(|provider| provider.hints());
        hints.filter(|hints| !hints.is_empty())
    }
}

/// Gives sections as they are now.
pub type Refresh = Arc<dyn Fn() -> Vec<Section> + Send + Sync>;

/// How long a history may be, in messages: spec 001's `context.chatHistory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// The most before a run.
    pub most: usize,
    /// How many are left when there were more.
    pub keep: usize,
}

impl Agent {
    /// Answers what the user says. What happens on the way goes to `on`; whatever ends the run, the log
    /// is whole and the run is remembered.
    pub async fn run(
        &self,
        chat: &mut Chat,
        user: Message,
        cancel: &Cancel,
        on: On<'_>,
    ) -> Result<AgentResult, AgentError> {
        let mut work = Work::new(self, chat, cancel, on);
        if let Some(compactor) = &self.compactor {
            compactor.attach(cancel);
        }
        let ended = work.go(chat, user).await;
        let (result, remembered) = work.end(match &ended {
            Ok(ended) => *ended,
            Err(_) => Ended::Failed,
        });
        on(Event::Done(result.clone()));
        ended?;
        remembered?;
        Ok(result)
    }
}
