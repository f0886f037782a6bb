//! What happens in a run, as updates of its session.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, MessageId, Notice, NoticeSeverity, SessionId, SessionNotification,
    SessionUpdate, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, UsageUpdate,
};
use contexture_agent::Event;
use serde_json::{Map, json};

use super::call;
use super::result::{content, raw};

/// Tells the host of one session what happens in it.
pub struct Teller {
    pub cx: ConnectionTo<Client>,
    pub session_id: SessionId,
    /// Where the agent works.
    pub cwd: PathBuf,
    /// Whether the host takes notices as such.
    notices: bool,
    /// The most tokens of a request.
    budget: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Told apart from those of other processes that had this session.
    process: String,
    message: usize,
    /// Whether text of this message was sent already.
    streamed: bool,
    /// Calls that began and have not ended, with whether they show a change.
    open: HashMap<String, bool>,
    /// The one that began last.
    last: Option<String>,
}

impl Teller {
    pub fn new(
        cx: ConnectionTo<Client>,
        session_id: SessionId,
        cwd: PathBuf,
        notices: bool,
        process: String,
    ) -> Self {
        Self {
            cx,
            session_id,
            cwd,
            notices,
            budget: AtomicU64::new(0),
            state: Mutex::new(State {
                process,
                ..State::default()
            }),
        }
    }

    /// Requests have at most so many tokens.
    pub fn within(&self, budget: usize) {
        let budget = u64::try_from(budget).unwrap_or(u64::MAX);
        self.budget.store(budget, Ordering::Relaxed);
    }

    /// Sends an update. A host that is gone is noticed elsewhere.
    pub fn send(&self, update: SessionUpdate) {
        let told = SessionNotification::new(self.session_id.clone(), update);
        let _ = self.cx.send_notification(told);
    }

    /// What a person should know, and the model did not say.
    pub fn notice(&self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if self.notices {
            let notice = Notice::new(NoticeSeverity::Warning, text);
            return self.send(SessionUpdate::Notice(notice));
        }
        let id = self.state().next("n");
        let marked = Map::from_iter([("contexture".to_owned(), json!({"notice": true}))]);
        let chunk = ContentChunk::new(ContentBlock::from(format!("{text}\n\n")))
            .message_id(MessageId::new(id))
            .meta(marked);
        self.send(SessionUpdate::AgentMessageChunk(chunk));
    }

    /// Says what happened.
    pub fn tell(&self, event: Event) {
        match event {
            Event::Text(text) => {
                let id = {
                    let mut state = self.state();
                    if text.is_empty() || (text.trim().is_empty() && !state.streamed) {
                        return;
                    }
                    state.streamed = true;
                    state.id("m")
                };
                self.say(&text, id);
            }
            Event::Thinking(text) => {
                let id = self.state().id("t");
                let chunk =
                    ContentChunk::new(ContentBlock::from(text)).message_id(MessageId::new(id));
                self.send(SessionUpdate::AgentThoughtChunk(chunk));
            }
            Event::Assistant { text } => {
                let (streamed, id) = {
                    let mut state = self.state();
                    let said = (state.streamed, state.id("m"));
                    state.ends();
                    said
                };
                if !streamed {
                    self.say(&text, id);
                }
            }
            Event::Again { why } => {
                let streamed = self.state().ends();
                let what = match streamed {
                    true => format!("{why}: the answer begins again"),
                    false => format!("{why}: trying again"),
                };
                self.notice(&what);
            }
            Event::Call { call, tool, effect } => {
                let shown =
                    call::shown(&call, &tool, effect, &self.cwd).status(ToolCallStatus::InProgress);
                {
                    let mut state = self.state();
                    state.ends();
                    state
                        .open
                        .insert(call.id.clone(), !shown.content.is_empty());
                    state.last = Some(call.id);
                }
                self.send(SessionUpdate::ToolCall(shown));
            }
            Event::Result(message) => {
                let id = message.tool_call_id.clone().unwrap_or_default();
                // One that never began has nothing to end.
                let Some(change) = self.state().open.remove(&id) else {
                    return;
                };
                let failed = message.failed();
                let fields = ToolCallUpdateFields::new()
                    .status(match failed {
                        true => ToolCallStatus::Failed,
                        false => ToolCallStatus::Completed,
                    })
                    .raw_output(raw(&message));
                // The change that worked says more than that it did.
                let fields = match change && !failed {
                    true => fields,
                    false => fields.content(content(&message)),
                };
                self.update(id, fields);
            }
            Event::StepFinish { input_tokens, .. } => {
                self.state().ends();
                let used = u64::try_from(input_tokens).unwrap_or(u64::MAX);
                let budget = self.budget.load(Ordering::Relaxed);
                self.send(SessionUpdate::UsageUpdate(UsageUpdate::new(used, budget)));
            }
            Event::Compaction {
                strategy,
                tokens_before,
                tokens_after,
                ..
            } => self.notice(&format!(
                "The history was compacted ({strategy}): {tokens_before} → {tokens_after} tokens"
            )),
            Event::Notice { text } => self.notice(&text),
            // Told as a call and its result, and in the answer to the prompt.
            Event::Tool { .. } | Event::Done(_) => {}
        }
    }

    /// The call that began last. What needs to be asked for runs alone, so a question is about it.
    pub fn asked_about(&self) -> Option<String> {
        self.state().last.clone()
    }

    /// Says more of a call.
    pub fn update(&self, id: String, fields: ToolCallUpdateFields) {
        self.send(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
            id, fields,
        )));
    }

    /// The turn is over: whatever still seems to run does not.
    pub fn ends(&self) {
        let open: Vec<String> = {
            let mut state = self.state();
            state.ends();
            state.last = None;
            state.open.drain().map(|(id, _)| id).collect()
        };
        for id in open {
            self.update(
                id,
                ToolCallUpdateFields::new().status(ToolCallStatus::Failed),
            );
        }
    }

    fn say(&self, text: &str, id: String) {
        let chunk =
            ContentChunk::new(ContentBlock::from(text.to_owned())).message_id(MessageId::new(id));
        self.send(SessionUpdate::AgentMessageChunk(chunk));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn id(&self, kind: &str) -> String {
        format!("{kind}-{}-{}", self.process, self.message)
    }

    fn next(&mut self, kind: &str) -> String {
        self.message += 1;
        let id = self.id(kind);
        self.message += 1;
        id
    }

    /// A message is over. Whether any of it was sent.
    fn ends(&mut self) -> bool {
        self.message += 1;
        std::mem::take(&mut self.streamed)
    }
}
