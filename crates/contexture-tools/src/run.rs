//! What a tool may add to the conversation while it runs: spec 001's `ToolExecutionContext`.

use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};

use contexture::entry::Injection;
use contexture::{Entry, EntryId, Message, Role};

tokio::task_local! {
    static CURRENT: Arc<RunContext>;
}

/// The run that a tool is called in. Tools find it with [`RunContext::current`].
///
/// Injections stand before the user's message that the run answers, and never change it: first those
/// that speak as the system, then those that speak as the assistant.
pub struct RunContext {
    chat_key: String,
    run_id: String,
    max_injected: usize,
    current_user: EntryId,
    state: Mutex<State>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

#[derive(Default)]
struct State {
    messages: Vec<Message>,
    system_message_insert_index: usize,
    current_user_message_index: usize,
    fingerprints: HashSet<String>,
    injected: usize,
    /// Not logged yet.
    fresh: Vec<Injection>,
    log: Arc<[Arc<Entry>]>,
}

/// Why nothing was injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Without an identity it could be there twice.
    #[error("missing_fingerprint")]
    MissingFingerprint,
    /// There is nothing to say.
    #[error("empty_content")]
    EmptyContent,
    /// It is there already.
    #[error("duplicate")]
    Duplicate,
    /// The run injected as much as it may.
    #[error("limit_reached")]
    LimitReached,
}

impl RunContext {
    /// A run that answers the last of `messages`, which the log has as the entry `current_user`.
    /// `known` are fingerprints that the conversation shows already. What tools have to say to the user
    /// at once goes to `tell`.
    pub fn new(
        chat_key: impl Into<String>,
        run_id: impl Into<String>,
        messages: Vec<Message>,
        current_user: EntryId,
        known: impl IntoIterator<Item = String>,
        max_injected: usize,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let user = messages.len().saturating_sub(1);
        Self {
            chat_key: chat_key.into(),
            run_id: run_id.into(),
            max_injected,
            current_user,
            state: Mutex::new(State {
                messages,
                system_message_insert_index: user,
                current_user_message_index: user,
                fingerprints: known.into_iter().collect(),
                ..State::default()
            }),
            tell: Box::new(tell),
        }
    }

    /// The run that this task works for.
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Does `work` inside this run.
    pub fn scope<F: Future>(self: Arc<Self>, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    /// The conversation's key.
    pub fn chat_key(&self) -> &str {
        &self.chat_key
    }

    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Says something to the user, now.
    pub fn tell(&self, text: &str) {
        (self.tell)(text);
    }

    /// Injects a rule, a constraint, a record of what was done: as the system, behind the injections
    /// of its kind.
    pub fn inject_system_message_once(
        &self,
        fingerprint: &str,
        content: &str,
        origin: &str,
    ) -> Result<(), Refusal> {
        self.inject(Role::System, fingerprint, content, origin)
    }

    /// Injects earlier conversation: as the assistant, right before the user's message.
    pub fn inject_assistant_message_once(
        &self,
        fingerprint: &str,
        content: &str,
        origin: &str,
    ) -> Result<(), Refusal> {
        self.inject(Role::Assistant, fingerprint, content, origin)
    }

    fn inject(
        &self,
        role: Role,
        fingerprint: &str,
        content: &str,
        origin: &str,
    ) -> Result<(), Refusal> {
        let mut state = self.state();
        if fingerprint.trim().is_empty() {
            return Err(Refusal::MissingFingerprint);
        }
        if content.trim().is_empty() {
            return Err(Refusal::EmptyContent);
        }
        if state.fingerprints.contains(fingerprint) {
            return Err(Refusal::Duplicate);
        }
        if state.injected >= self.max_injected {
            return Err(Refusal::LimitReached);
        }
        state.injected += 1;
        state.fingerprints.insert(fingerprint.to_owned());
        let at = if role == Role::System {
            state.system_message_insert_index += 1;
            state.system_message_insert_index - 1
        } else {
            state.current_user_message_index
        };
        state.current_user_message_index += 1;
        state
            .messages
            .insert(at, Message::new(role, content.to_owned()));
        state.fresh.push(Injection {
            role,
            content: content.to_owned(),
            fingerprint: Some(fingerprint.to_owned()),
            origin: Some(origin.to_owned()),
            before_entry_id: Some(self.current_user.clone()),
        });
        Ok(())
    }

    /// What was injected since this was last asked: the caller logs it.
    pub fn take_injections(&self) -> Vec<Injection> {
        std::mem::take(&mut self.state().fresh)
    }

    /// The messages that the run began with, and what was injected into them.
    pub fn messages(&self) -> Vec<Message> {
        self.state().messages.clone()
    }

    /// Where the next system message would be injected.
    pub fn system_message_insert_index(&self) -> usize {
        self.state().system_message_insert_index
    }

    /// Where the user's message stands by now.
    pub fn current_user_message_index(&self) -> usize {
        self.state().current_user_message_index
    }

    /// The session's log as it was when this step began, for tools that look back.
    pub fn log(&self) -> Arc<[Arc<Entry>]> {
        Arc::clone(&self.state().log)
    }

    /// Sets what [`RunContext::log`] gives.
    pub fn set_log(&self, log: Arc<[Arc<Entry>]>) {
        self.state().log = log;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A tool that panicked while it injected left whole messages only.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn run(max: usize) -> RunContext {
        let messages = vec![Message::user("earlier"), Message::user("now")];
        RunContext::new("chat", "run", messages, "e2".into(), [], max, |_| {})
    }

    fn texts(run: &RunContext) -> Vec<String> {
        let messages = run.messages();
        messages.iter().map(|m| m.text().into_owned()).collect()
    }

    #[test]
    fn injections_stand_before_the_users_message_and_move_the_indexes() {
        let run = run(10);
        run.inject_assistant_message_once("a", "A", "t").unwrap();
        assert_eq!(run.system_message_insert_index(), 1);
        assert_eq!(run.current_user_message_index(), 2);
        run.inject_system_message_once("s", "S", "t").unwrap();
        assert_eq!(run.system_message_insert_index(), 2);
        assert_eq!(run.current_user_message_index(), 3);
        run.inject_system_message_once("s2", "S2", "t").unwrap();
        assert_eq!(texts(&run), ["earlier", "S", "S2", "A", "now"]);
        assert_eq!(run.take_injections().len(), 3);
        assert!(run.take_injections().is_empty());
    }

    #[test]
    fn four_refusals() {
        let run = run(1);
        let inject = |f: &str, c: &str| run.inject_system_message_once(f, c, "t");
        assert_eq!(inject(" ", "x"), Err(Refusal::MissingFingerprint));
        assert_eq!(inject("f", " \n"), Err(Refusal::EmptyContent));
        assert_eq!(inject("f", "x"), Ok(()));
        assert_eq!(inject("f", "x"), Err(Refusal::Duplicate));
        assert_eq!(inject("g", "x"), Err(Refusal::LimitReached));
    }

    #[tokio::test]
    async fn a_run_is_known_inside_and_not_outside() {
        assert!(RunContext::current().is_none());
        let inside = Arc::new(run(1)).scope(async { RunContext::current().is_some() });
        assert!(inside.await);
    }
}
