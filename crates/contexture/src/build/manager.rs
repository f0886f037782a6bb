use serde::Serialize;
use serde_json::{Map, Value};

use super::{BuildInput, BuildResult, Session, Settings, Stats, UpdateRequest};
use crate::message::openai;
use crate::tokens::count;
use crate::{ContextError, Entry, Message};

/// Spec 002's context manager: stateless, so the same input gives the same output.
pub struct ContextManager {
    settings: Settings,
    hints: Option<Box<dyn RuntimeHintProvider>>,
}

/// Gives hints that change from turn to turn, such as the time. The core has no clock of its own.
pub trait RuntimeHintProvider: Send + Sync {
    /// The hints as they are now.
    fn hints(&self) -> Map<String, Value>;
}

/// Spec 002's `ContextUpdateResult`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateResult {
    /// The messages as they are now; absent when nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_messages: Option<Vec<Value>>,
    /// Whether anything was compacted.
    pub compacted: bool,
    /// What the caller must log.
    pub entries_to_append: Vec<Entry>,
    /// The numbers.
    pub stats: Stats,
}

impl ContextManager {
    /// A manager; the settings are checked here.
    pub fn new(settings: Settings) -> Result<Self, ContextError> {
        settings.config.validate()?;
        Ok(Self {
            settings,
            hints: None,
        })
    }

    /// With hints for inputs that bring none.
    #[must_use]
    pub fn with_hints(mut self, hints: Box<dyn RuntimeHintProvider>) -> Self {
        self.hints = Some(hints);
        self
    }

    /// The request for a turn.
    pub fn build_context(&self, input: BuildInput) -> Result<BuildResult, ContextError> {
        let settings = self.settings_of(&input)?;
        let mut turn = input.turn;
        if turn.hints.is_none() {
            turn.hints = self.hints.as_ref().map(|provider| provider.hints());
        }
        let mut session = Session::open(settings, input.session_entries)?;
        Ok(session.build(turn)?.to_result())
    }

    /// What to append when a turn goes on, or when a provider refused a request as too long: new
    /// messages and compactions, nothing reordered. A system prompt that the call began with still holds.
    pub fn compute_context_updates(
        &self,
        input: UpdateRequest,
    ) -> Result<UpdateResult, ContextError> {
        let settings = self.settings_of(&input)?;
        let mut turn = input.turn;
        let mut session = Session::open(settings, input.session_entries)?;
        if turn.system_prompt.is_none() && turn.sections.is_none() {
            turn.system_prompt = session.prompt_of_one_call().map(str::to_owned);
        }
        let built = session.build(turn)?;
        let entries_to_append: Vec<Entry> = built.entries_to_append().cloned().collect();
        Ok(UpdateResult {
            updated_messages: (!entries_to_append.is_empty())
                .then(|| built.messages().map(openai::shown).collect()),
            compacted: built.compacted(),
            entries_to_append,
            stats: built.stats(),
        })
    }

    /// The settings that the input is built with: what it says itself over what the manager was made with.
    fn settings_of(&self, input: &BuildInput) -> Result<Settings, ContextError> {
        let mut settings = self.settings.clone();
        settings.config = input.config_over(settings.config)?;
        if let Some(model) = &input.model {
            settings.model = Some(model.clone());
        }
        for (name, value) in &input.params {
            settings.params.insert(name.clone(), value.clone());
        }
        Ok(settings)
    }

    /// The tokens of a request of these messages.
    pub fn estimate_tokens(&self, messages: &[Message]) -> usize {
        count::request(self.settings.tokenizer.as_ref(), messages, &[])
    }
}
