//! The driver: does what [`Run`] says is next, and tells on the way.

use std::sync::Arc;

use contexture::entry::{Live, RequestRecord};
use contexture::{Message, Payload, ToolCall, Turn};
use contexture_model::{Delta, MAX_CALLS, ModelError, Reply};
use contexture_store::StoreError;
use contexture_tools::secrets::mask::hide_text;
use contexture_tools::{Effect, MaskedStream, Outcome, RunContext, builtin};
use serde_json::{Map, Value, json};

use crate::chat::{Prepared, Spoken};
use crate::offer::Offers;
use crate::remember::Remembered;
use crate::said::Said;
use crate::tools::{Batch, NOT_RUN, TOO_MANY, result};
use crate::{
    Agent, AgentError, AgentResult, Cancel, Chat, Ended, Event, Next, Run, Spent, clock, ids,
};

/// Who is told.
pub(crate) type On<'a> = &'a (dyn Fn(Event) + Send + Sync);

/// A run under way.
pub(crate) struct Work<'a> {
    agent: &'a Agent,
    pub result: AgentResult,
    said: Said<'a>,
    cancel: &'a Cancel,
    on: On<'a>,
    offers: Offers,
    context: Option<Arc<RunContext>>,
    /// What was spent, also where the provider does not say.
    counted: Spent,
}

/// What came of a call.
enum Answer {
    Reply(Box<Reply>),
    Failed(ModelError),
    /// Stopped, with what had arrived.
    Stopped(String),
}

impl<'a> Work<'a> {
    pub(crate) fn new(agent: &'a Agent, chat: &Chat, cancel: &'a Cancel, on: On<'a>) -> Self {
        let run_id = ids::run_id();
        let remembered = Remembered::new(
            &agent.stores,
            agent.tools.secrets(),
            chat.key().clone(),
            &run_id,
        );
        Self {
            agent,
            result: AgentResult::new(run_id),
            said: Said::new(remembered, on),
            cancel,
            on,
            offers: Offers::new(chat.view()),
            context: None,
            counted: Spent::default(),
        }
    }

    /// The result of a run that is over, and whether all of it could be remembered.
    pub(crate) fn end(mut self, ended: Ended) -> (AgentResult, Result<(), StoreError>) {
        self.result.end(ended);
        let remembered = self.said.remembered.ended(&self.result.text);
        (self.result, remembered)
    }

    /// Goes on until it is over.
    pub(crate) async fn go(&mut self, chat: &mut Chat, user: Message) -> Result<Ended, AgentError> {
        let mut run = Run::new(self.agent.options.limits);
        let mut first = Some(user);
        loop {
            match run.next().clone() {
                Next::Call { overflow } => {
                    if self.cancel.is_cancelled() && first.is_none() {
                        run.end(Ended::Cancelled);
                        continue;
                    }
                    let asked = first.as_ref().map(|user| user.text().into_owned());
                    let mut prepared = self.prepare(chat, first.take(), overflow)?;
                    if let Some(asked) = asked {
                        self.said.remembered.asked(&asked);
                    }
                    let budget = self.agent.options.limits.budget;
                    if !budget.allows(&self.counted, prepared.record.input_tokens) {
                        run.end(Ended::Budget);
                        continue;
                    }
                    let called = self.call(chat, &mut prepared, &mut run).await;
                    // Behind the request's own record: nothing may stand between that and what the
                    // request was made from.
                    self.count_summaries(chat)?;
                    let (answer, usage) = called?;
                    if !answer {
                        continue;
                    }
                    self.result.steps = run.steps();
                    let tools = match run.next().clone() {
                        Next::Tools(groups) => self.run_tools(chat, &groups, &mut run).await?,
                        Next::Call { .. } | Next::Done(_) => Vec::new(),
                    };
                    (self.on)(Event::StepFinish {
                        step: run.steps(),
                        tools,
                        input_tokens: prepared.record.input_tokens,
                        digest: prepared.record.digest,
                        usage,
                    });
                }
                // They run as soon as the reply is there.
                Next::Tools(_) => run.ran(),
                Next::Done(ended) => return Ok(ended),
            }
        }
    }

    /// Builds the request and makes durable what it is made from.
    fn prepare(
        &mut self,
        chat: &mut Chat,
        user: Option<Message>,
        overflow: bool,
    ) -> Result<Prepared, AgentError> {
        let options = &self.agent.options;
        let begins = user.is_some();
        let config = chat.settings().config;
        let tokenizer = Arc::clone(&chat.settings().tokenizer);
        let changed = self.offers.refresh(
            &self.agent.tools,
            tokenizer.as_ref(),
            config.max_input_tokens,
        );
        for text in self.agent.tools.news() {
            (self.on)(Event::Notice { text });
        }
        let mut turn = Turn {
            tools: (begins || changed).then(|| self.offers.now.specs()),
            deferred: (begins || changed).then(|| self.offers.deferred.clone()),
            tool_reason: (!begins).then(|| "during the run".to_owned()),
            overflow,
            now: Some(clock::now()),
            messages: user.into_iter().collect(),
            ..Turn::default()
        };
        if begins {
            self.note_model(chat)?;
            turn.sections = Some(options.sections.clone());
            turn.runtime_init = some(&options.runtime_init);
            turn.hints = options.hints_now();
            turn.keep_messages = options.history.and_then(|history| {
                let of_history =
                    |live: &Live<'_>| matches!(live.entry.payload, Payload::Message { .. });
                let messages = chat.view().live(0).filter(of_history).count() + turn.messages.len();
                (messages > history.most).then_some(history.keep)
            });
        }
        if let Some(refresh) = &options.refresh {
            let mut sections = options.sections.clone();
            sections.extend(blocking(|| refresh()));
            turn.sections = Some(sections);
        }
        let prepared = match blocking(|| chat.prepare(&turn)) {
            Ok(prepared) => prepared,
            Err(error) => {
                self.count_summaries(chat)?;
                return Err(error);
            }
        };
        for event in &prepared.events {
            (self.on)(event.clone());
        }
        if begins && !self.offers.now.tools().is_empty() {
            self.context = self.context(chat);
        }
        Ok(prepared)
    }

    /// Logs that another model answers from here on, where one did before.
    fn note_model(&self, chat: &mut Chat) -> Result<(), AgentError> {
        let view = chat.view();
        let before = view
            .last_request()
            .and_then(|at| match &view.log()[at].payload {
                Payload::Request(record) => record.model.clone(),
                _ => None,
            });
        let now = chat.settings().model.clone();
        if before.is_none() || before == now || view.model() == now.as_deref() {
            return Ok(());
        }
        let change = Map::from_iter([
            ("model".to_owned(), json!(now)),
            ("from".to_owned(), json!(before)),
        ]);
        blocking(|| chat.log_all(&self.result.run_id, &[Payload::ModelChange(change)]))
    }

    /// Logs and counts what summaries cost.
    fn count_summaries(&mut self, chat: &mut Chat) -> Result<(), AgentError> {
        let Some(compactor) = &self.agent.compactor else {
            return Ok(());
        };
        let (calls, spent) = compactor.take_calls();
        let records: Vec<Payload> = calls.into_iter().map(Payload::Custom).collect();
        spent.iter().for_each(|usage| self.result.usage.add(usage));
        blocking(|| chat.log_all(&self.result.run_id, &records))
    }

    /// What tools of this run may add to the conversation.
    fn context(&self, chat: &mut Chat) -> Option<Arc<RunContext>> {
        // Somebody may take the user's message back in the middle of a run: its tools still run.
        let user = chat.last_user().or_else(|| chat.view().tail().cloned())?;
        let tell = self.said.teller();
        let known: Vec<String> = chat
            .view()
            .live(0)
            .filter_map(|live| match &live.entry.payload {
                Payload::Injection(injection) => injection.fingerprint.clone(),
                _ => None,
            })
            .collect();
        let messages = chat.shown_until(&user);
        Some(Arc::new(RunContext::new(
            chat.key().as_str(),
            &self.result.run_id,
            messages,
            user,
            known,
            self.agent.options.max_injected,
            tell,
        )))
    }

    /// Sends the request and logs what came of it. Whether there is a reply, and what it cost.
    async fn call(
        &mut self,
        chat: &mut Chat,
        prepared: &mut Prepared,
        run: &mut Run,
    ) -> Result<(bool, Option<Spent>), AgentError> {
        let answer = self.answer(std::mem::take(&mut prepared.body)).await;
        let record = &prepared.record;
        let at = prepared.at.as_ref();
        match answer {
            Answer::Reply(reply) => {
                let mut reply = *reply;
                // One more than is run stays, to say so to the model.
                reply.message.tool_calls.truncate(MAX_CALLS + 1);
                ids::tell_apart(&mut reply.message, &self.result.run_id, run.steps());
                let record = RequestRecord {
                    usage: reply.usage.as_ref().map(|usage| usage.0.clone()),
                    ..record.clone()
                };
                // Its tools get what the model meant; what is kept and told has no secret in it.
                let mut calls = reply.message.tool_calls.clone();
                self.agent
                    .tools
                    .secrets()
                    .hide_in_message(&mut reply.message);
                // A name is told to people and written down; no tool has one with a secret in it.
                for (call, masked) in calls.iter_mut().zip(&reply.message.tool_calls) {
                    call.name.clone_from(&masked.name);
                }
                let text = reply.message.text().trim().to_owned();
                let empty = reply.message.is_empty();
                let spoken = (!empty).then_some(Spoken {
                    message: reply.message,
                    meta: None,
                });
                blocking(|| chat.replied(&self.result.run_id, record, at, spoken.as_ref()))?;
                let beyond = calls.split_off(calls.len().min(MAX_CALLS));
                if let Some(first) = beyond.first() {
                    (self.on)(Event::Notice {
                        text: format!(
                            "a reply made more than {MAX_CALLS} calls: the rest is not run"
                        ),
                    });
                    let not_run = vec![result(&first.id, &Outcome::failed(TOO_MANY))];
                    blocking(|| chat.answered(&self.result.run_id, Vec::new(), not_run))?;
                }
                run.replied(&reply.stop, &calls, |call| {
                    let tool = self.offers.now.find(&call.name);
                    tool.is_none_or(|tool| tool.spec().effect != Effect::Reads)
                });
                if !calls.is_empty() && !matches!(run.next(), Next::Tools(_)) {
                    let not_run = Outcome::failed(NOT_RUN);
                    let results = calls
                        .iter()
                        .map(|call| result(&call.id, &not_run))
                        .collect();
                    blocking(|| chat.answered(&self.result.run_id, Vec::new(), results))?;
                }
                if !text.is_empty() {
                    self.result.text.clone_from(&text);
                    self.said.say(text);
                }
                let usage = reply.usage.map(|usage| {
                    let mut spent = Spent::default();
                    spent.add(&usage);
                    self.result.usage.add(&usage);
                    spent
                });
                // Where the provider does not say, what we counted was sent at least.
                let counted = usage.unwrap_or(Spent {
                    input_tokens: prepared.record.input_tokens as u64,
                    ..Spent::default()
                });
                self.counted = self.counted.and(&counted);
                Ok((true, usage))
            }
            Answer::Stopped(text) => {
                let text = text.trim().to_owned();
                // What the user has read is a part of the conversation.
                let meta = Map::from_iter([("interrupted".to_owned(), json!(true))]);
                let spoken = (!text.is_empty()).then(|| Spoken {
                    message: Message::assistant(text.clone()),
                    meta: Some(meta),
                });
                let record = failed(record, "cancelled", None);
                blocking(|| chat.replied(&self.result.run_id, record, at, spoken.as_ref()))?;
                if !text.is_empty() {
                    self.said.remembered.said(&text);
                }
                self.result.text = text;
                run.end(Ended::Cancelled);
                Ok((false, None))
            }
            Answer::Failed(error) => {
                let record = failed(record, "failed", Some(&error));
                blocking(|| chat.replied(&self.result.run_id, record, at, None))?;
                if matches!(error, ModelError::Overflow { .. }) && run.overflowed() {
                    (self.on)(Event::Notice {
                        text: format!("{error}; making it shorter"),
                    });
                    return Ok((false, None));
                }
                Err(error.into())
            }
        }
    }

    async fn answer(&self, body: Vec<u8>) -> Answer {
        let secrets = self.agent.tools.secrets();
        let mut arrived = String::new();
        // A secret may come in two pieces, and each of both streams has its own.
        let (mut text, mut thinking) = (MaskedStream::default(), MaskedStream::default());
        let tell = |of: fn(String) -> Event, pieces: Vec<((), String)>| {
            pieces
                .into_iter()
                .for_each(|((), piece)| (self.on)(of(piece)));
        };
        let mut on_delta = |delta: Delta| match delta {
            Delta::Text(piece) => {
                arrived.push_str(&piece);
                tell(Event::Text, text.push(secrets, (), &piece));
            }
            Delta::Thinking(piece) => {
                tell(Event::Thinking, thinking.push(secrets, (), &piece));
            }
            Delta::Call { .. } => {}
            Delta::Again { why } => {
                arrived.clear();
                (text, thinking) = Default::default();
                (self.on)(Event::Again { why });
            }
        };
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            answer = self.agent.model.call(body, &mut on_delta) => Some(answer),
        };
        tell(Event::Thinking, thinking.finish(secrets));
        tell(Event::Text, text.finish(secrets));
        hide_text(secrets, &mut arrived);
        match answer {
            Some(Ok(reply)) => Answer::Reply(Box::new(reply)),
            Some(Err(error)) => Answer::Failed(error),
            None => Answer::Stopped(arrived),
        }
    }

    /// Runs the calls of a reply. Gives what each did, for people.
    async fn run_tools(
        &mut self,
        chat: &mut Chat,
        groups: &[Vec<ToolCall>],
        run: &mut Run,
    ) -> Result<Vec<String>, AgentError> {
        let Some(context) = self.context.clone().or_else(|| self.context(chat)) else {
            run.ran();
            return Ok(Vec::new());
        };
        let looks_back = |call: &ToolCall| call.name == builtin::LOOKS_BACK;
        if groups.iter().flatten().any(looks_back) {
            context.set_log(chat.view().log().into());
        }
        let batch = Batch {
            toolset: &self.agent.tools,
            offer: &self.offers.now,
            context: &context,
            cancel: self.cancel,
            on: self.on,
        };
        let running = batch.run(chat, groups, &mut self.said);
        let ran = Arc::clone(&context).scope(running).await?;
        let lines = ran
            .iter()
            .map(|run| format!("{}: {}", run.tool, run.summary))
            .collect();
        for tool in ran {
            self.result.ran(tool);
        }
        match self.cancel.is_cancelled() {
            true => run.end(Ended::Cancelled),
            false => run.ran(),
        }
        Ok(lines)
    }
}

fn some(map: &Map<String, Value>) -> Option<Map<String, Value>> {
    (!map.is_empty()).then(|| map.clone())
}

/// The record of a request that got no answer.
fn failed(record: &RequestRecord, outcome: &str, error: Option<&ModelError>) -> RequestRecord {
    let mut record = record.clone();
    record.extra.insert("outcome".to_owned(), json!(outcome));
    if let Some(error) = error {
        record
            .extra
            .insert("error".to_owned(), json!(error.to_string()));
    }
    record
}

/// Does what blocks, such as writing to a disk, without holding up others where that is possible.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
