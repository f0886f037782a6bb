//! Where an agent's news and questions arrive while it runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use contexture::Payload;
use contexture::inject::{RESERVED, canvas_tools};
use contexture::prompt::Section;
use contexture_agent::clock;
use contexture_store::{SessionLog, Sessions, StoreError};
use contexture_tools::secrets::mask::hide_in;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Permissions;
use crate::acp::record::{Transcript, TurnEnd};
use crate::acp::shorten::in_pieces;
use crate::acp::{Answer, Ask, COMMANDS, Choice, Host};
use crate::fleet::Fleet;
use crate::tokens::{hex, random};
use crate::{Event, RpcError, Updates, Why};

/// How often to go on behind others who write to the same log.
const TRIES: usize = 8;

/// Answers for us, and writes down what is said.
pub(crate) struct Desk {
    me: Weak<Self>,
    fleet: Weak<Fleet>,
    agent: String,
    permissions: Permissions,
    patience: Duration,
    /// Our name of the session: the agent has its own.
    session: Mutex<String>,
    listener: Mutex<Option<Updates>>,
    asked: Mutex<HashMap<String, Question>>,
    /// What has arrived and is not written down. The agent is not read further before it is.
    arrived: Mutex<Vec<Value>>,
    notes: tokio::sync::Mutex<Notes>,
}

/// A question that waits for a person. The answer is for this question alone.
struct Question {
    /// As it is shown.
    shown: Value,
    /// When it was asked.
    at: Instant,
    options: Vec<Choice>,
    answer: oneshot::Sender<Answer>,
}

/// The session's log, and what is not whole yet.
#[derive(Default)]
struct Notes {
    log: Option<SessionLog>,
    transcript: Transcript,
    /// The turn that is under way.
    turn: Option<Turn>,
}

/// The outcome of a turn so far.
#[derive(Default)]
struct Turn {
    /// What the agent said last.
    text: String,
    did_something: bool,
}

impl Turn {
    fn note(&mut self, payload: &Payload) {
        self.did_something = true;
        if let Payload::Message { message } = payload
            && message.role == contexture::Role::Assistant
            && !message.text().is_empty()
        {
            self.text = message.text().into_owned();
        }
    }
}

impl Desk {
    pub fn new(fleet: &Arc<Fleet>, agent: &str, permissions: Permissions) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            fleet: Arc::downgrade(fleet),
            agent: agent.to_owned(),
            permissions,
            patience: fleet.patience,
            session: Mutex::default(),
            listener: Mutex::default(),
            asked: Mutex::default(),
            arrived: Mutex::default(),
            notes: tokio::sync::Mutex::default(),
        })
    }

    /// From now on what is said goes to this log.
    pub async fn open(&self, session_id: &str, log: SessionLog) {
        *self.notes.lock().await = Notes {
            log: Some(log),
            ..Notes::default()
        };
        *lock(&self.session) = session_id.to_owned();
    }

    /// A person says something. The agent is told these sections with it.
    pub async fn hear(
        &self,
        text: &str,
        sections: Vec<Section>,
        listener: Option<Updates>,
    ) -> Result<(), RpcError> {
        *lock(&self.listener) = listener;
        let mut notes = self.notes.lock().await;
        // A prompt may quote what an agent said elsewhere. The agent itself gets it as it is.
        let mut block = json!({"type": "text", "text": text});
        if let Some(fleet) = self.fleet.upgrade() {
            hide_in(&fleet.mask, &mut block);
        }
        let mut payloads = notes.transcript.finish("another prompt");
        if !sections.is_empty() {
            payloads.push(Payload::Sections { sections });
        }
        payloads.extend(notes.transcript.prompt(&[block]));
        self.write(&mut notes, payloads).await?;
        notes.turn = Some(Turn::default());
        self.tell(Event::Prompted {
            agent: self.agent.clone(),
            session_id: lock(&self.session).clone(),
        });
        Ok(())
    }

    /// Everyone learns how a prompt ended.
    pub fn tell_ended(&self, stop_reason: &str, took: Duration, usage: Option<Value>) {
        self.tell(Event::Answered {
            agent: self.agent.clone(),
            session_id: lock(&self.session).clone(),
            stop_reason: stop_reason.to_owned(),
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            usage,
        });
    }

    /// The turn is over: the agent's word for it, or an error. Writes the rest down, and gives how it ended and what
    /// the agent said last.
    pub async fn finish(&self, ended: Result<&str, &str>) -> Result<(TurnEnd, String), RpcError> {
        *lock(&self.listener) = None;
        self.dismiss();
        let mut notes = self.notes.lock().await;
        let rest = notes.transcript.finish(ended.unwrap_or_else(|error| error));
        self.write(&mut notes, rest).await?;
        let turn = notes.turn.take();
        let is_open = turn.is_some();
        let Turn {
            text,
            did_something,
        } = turn.unwrap_or_default();
        let end = TurnEnd::new(ended, &text, did_something);
        if is_open {
            self.write(&mut notes, vec![end.payload()]).await?;
        }
        Ok((end, text))
    }

    /// Nobody will answer what was asked.
    pub fn dismiss(&self) {
        for (request_id, question) in lock(&self.asked).drain() {
            let _ = question.answer.send(Answer::Cancelled);
            self.tell_answer(request_id, None, "cancelled");
        }
    }

    /// A person's answer. Whether it is a yes.
    pub fn answer(&self, request_id: &str, option_id: &str) -> Result<bool, RpcError> {
        let question = lock(&self.asked).remove(request_id).ok_or_else(|| {
            let what = format!("`{}` asked no such question", self.agent);
            RpcError::new(Why::NotFound, what).hint("it may have been answered, or left too long")
        })?;
        // What we do not know is a no.
        let chosen = question
            .options
            .iter()
            .find(|option| option.id == option_id);
        let (answer, allowed) = match chosen {
            Some(option) => (
                Answer::Selected(option.id.clone()),
                option.kind.starts_with("allow_"),
            ),
            None => (refusal(&question.options), false),
        };
        let said = match &answer {
            Answer::Selected(id) => Some(id.clone()),
            Answer::Cancelled => None,
        };
        let _ = question.answer.send(answer);
        self.tell_answer(request_id.to_owned(), said, "person");
        Ok(allowed)
    }

    /// The questions that wait for an answer, the oldest first.
    pub fn waiting(&self) -> Vec<Value> {
        let asked = lock(&self.asked);
        let mut all: Vec<&Question> = asked.values().collect();
        all.sort_by_key(|question| question.at);
        all.into_iter()
            .map(|question| question.shown.clone())
            .collect()
    }

    async fn write(&self, notes: &mut Notes, payloads: Vec<Payload>) -> Result<(), RpcError> {
        if let Some(turn) = &mut notes.turn {
            payloads.iter().for_each(|payload| turn.note(payload));
        }
        let Some(mut log) = notes.log.take() else {
            return Ok(());
        };
        if payloads.is_empty() {
            notes.log = Some(log);
            return Ok(());
        }
        let sessions = self.fleet.upgrade().map(|fleet| fleet.sessions.clone());
        let done = tokio::task::spawn_blocking(move || {
            let now = clock::now();
            let done = payloads
                .into_iter()
                .try_for_each(|payload| say(&mut log, sessions.as_ref(), &now, payload));
            (log, done)
        });
        let Ok((log, done)) = done.await else {
            return Err(RpcError::new(Why::Failed, "the log ended in the middle"));
        };
        notes.log = Some(log);
        Ok(done?)
    }

    fn tell(&self, event: Event) {
        if let Some(fleet) = self.fleet.upgrade() {
            fleet.tell(event);
        }
    }

    fn tell_answer(&self, request_id: String, option_id: Option<String>, by: &str) {
        self.tell(Event::PermissionAnswered {
            agent: self.agent.clone(),
            request_id,
            option_id,
            by: by.to_owned(),
        });
    }

    async fn pass_on(&self, update: Value) {
        let listener = lock(&self.listener).clone();
        if let Some(listener) = listener {
            // Whoever asked may have left.
            let _ = listener.send(update).await;
        }
    }

    async fn hear_update(&self, update: Value) {
        let Some(fleet) = self.fleet.upgrade() else {
            return;
        };
        let session_id = lock(&self.session).clone();
        // A session that is loaded again tells its past, which is in the log.
        if session_id.is_empty() {
            return;
        }
        let mut notes = self.notes.lock().await;
        let whole = notes.transcript.push(&update);
        if let Err(error) = self.write(&mut notes, whole).await {
            tracing::error!(agent = self.agent, %error, "what an agent said could not be logged");
        }
        drop(notes);
        for update in in_pieces(update) {
            fleet.tell(Event::AgentUpdate {
                agent: self.agent.clone(),
                session_id: session_id.clone(),
                update: update.clone(),
            });
            self.pass_on(update).await;
        }
    }

    async fn ask(&self, ask: Ask) -> Answer {
        if is_for_canvas(&ask) {
            return yes(&ask.options);
        }
        match self.permissions {
            Permissions::Allow => return yes(&ask.options),
            Permissions::Deny => return refusal(&ask.options),
            Permissions::Ask => {}
        }
        let Ok(id) = random() else {
            return refusal(&ask.options);
        };
        let request_id = hex(&id[..6]);
        let (answer, answered) = oneshot::channel();
        let options: Vec<Value> = ask
            .options
            .iter()
            .map(|option| json!({"optionId": option.id, "name": option.name, "kind": option.kind}))
            .collect();
        let options = json!(options);
        let shown = json!({
            "requestId": request_id,
            "title": ask.title,
            "tool": ask.tool,
            "kind": ask.kind,
            "arguments": ask.arguments,
            "options": options,
        });
        let mut update = shown.clone();
        update["sessionUpdate"] = json!("permission_request");
        update["toolCall"] = ask.tool_call;
        let question = Question {
            shown,
            at: Instant::now(),
            options: ask.options.clone(),
            answer,
        };
        lock(&self.asked).insert(request_id.clone(), question);
        self.tell(Event::PermissionAsked {
            agent: self.agent.clone(),
            session_id: lock(&self.session).clone(),
            request_id: request_id.clone(),
            title: ask.title,
            tool: ask.tool,
            kind: ask.kind,
            arguments: ask.arguments,
            options,
        });
        self.pass_on(update).await;
        match tokio::time::timeout(self.patience, answered).await {
            Ok(Ok(answer)) => answer,
            _ => {
                if lock(&self.asked).remove(&request_id).is_some() {
                    self.tell_answer(request_id, None, "timeout");
                }
                refusal(&ask.options)
            }
        }
    }
}

impl Host for Desk {
    fn update(&self, _: &str, update: Value) {
        lock(&self.arrived).push(update);
    }

    fn caught_up(&self) -> BoxFuture<'static, ()> {
        let me = self.me.upgrade();
        Box::pin(async move {
            let Some(me) = me else { return };
            let arrived = std::mem::take(&mut *lock(&me.arrived));
            for update in arrived {
                me.hear_update(update).await;
            }
        })
    }

    fn permission(&self, ask: Ask) -> BoxFuture<'static, Answer> {
        let me = self.me.upgrade();
        Box::pin(async move {
            match me {
                Some(me) => me.ask(ask).await,
                None => Answer::Cancelled,
            }
        })
    }
}

/// Appends to the log. Others may append to it too: then it goes on behind them.
fn say(
    log: &mut SessionLog,
    sessions: Option<&Sessions>,
    now: &str,
    payload: Payload,
) -> Result<(), StoreError> {
    for _ in 0..TRIES {
        match (log.say(now, payload.clone()), sessions) {
            (Err(StoreError::WrongTail { .. }), Some(sessions)) => {
                *log = sessions.open(log.key())?;
            }
            (done, _) => return done.map(drop),
        }
    }
    log.say(now, payload).map(drop)
}

/// Returns true if the question is about showing a page on the agent's own canvas, which needs nobody's permission. A
/// title counts only where it cannot be the text of a command, and none of this where there is a command to run: models
/// write titles, and a canvas runs nothing.
fn is_for_canvas(ask: &Ask) -> bool {
    if COMMANDS
        .iter()
        .any(|name| ask.arguments.get(name).is_some())
    {
        return false;
    }
    let is_plain = matches!(ask.kind.as_deref(), None | Some("other"));
    let title = ask.tool_call["title"].as_str().filter(|_| is_plain);
    let named = |name: &str| {
        let spelled = [
            format!("{RESERVED}:{name}"),
            format!("{RESERVED}__{name}"),
            format!("mcp__{RESERVED}__{name}"),
            format!("{RESERVED}_{name}"),
            format!("{RESERVED}: {name}"),
            format!("{name} ({RESERVED} MCP Server)"),
        ];
        let is = |told: Option<&str>| told.is_some_and(|told| spelled.iter().any(|s| s == told));
        is(ask.tool.as_deref()) || is(title)
    };
    canvas_tools().iter().any(|tool| named(&tool.name))
}

/// A yes for this once, where there is one: nothing is allowed for ever by itself.
fn yes(options: &[Choice]) -> Answer {
    let of = |kind: &str| options.iter().find(|option| option.kind == kind);
    match of("allow_once") {
        Some(option) => Answer::Selected(option.id.clone()),
        None => refusal(options),
    }
}

/// A no in the agent's own words, where it has some.
fn refusal(options: &[Choice]) -> Answer {
    let of = |kind: &str| options.iter().find(|option| option.kind == kind);
    match of("reject_once").or_else(|| of("reject_always")) {
        Some(option) => Answer::Selected(option.id.clone()),
        None => Answer::Cancelled,
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
