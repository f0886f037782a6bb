//! Runs the calls of a reply: what may run together does, and each result is durable as soon as it is
//! there.

use std::sync::Arc;

use contexture::{Message, ToolCall};
use contexture_tools::{Offer, Outcome, RunContext, Toolset};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::json;

use crate::event::ToolStatus;
use crate::said::Said;
use crate::{AgentError, Cancel, Chat, Event, ToolRun};

/// What stands for the result of a call that was never run, or not to its end.
pub(crate) const CANCELLED: &str =
    "The user stopped this call. It may have had part of its effect.";
pub(crate) const NOT_RUN: &str =
    "This call was not run: the reply was cut off before it was whole.";
pub(crate) const TOO_MANY: &str = "This call was not run, nor was any behind it: of one reply, at most 128 calls are \
                                   run. What was behind it is not kept. Call again what is still needed.";
const _: () = assert!(contexture_model::MAX_CALLS == 128);

/// The longest line of arguments that is shown.
const ARGUMENTS: usize = 200;

/// All that running calls takes.
pub(crate) struct Batch<'a> {
    pub toolset: &'a Toolset,
    pub offer: &'a Offer,
    pub context: &'a Arc<RunContext>,
    pub cancel: &'a Cancel,
    pub on: &'a (dyn Fn(Event) + Send + Sync),
}

impl Batch<'_> {
    /// Runs the groups, one after another. Gives what ran; whether it was stopped, the caller sees.
    pub(crate) async fn run(
        &self,
        chat: &mut Chat,
        groups: &[Vec<ToolCall>],
        said: &mut Said<'_>,
    ) -> Result<Vec<ToolRun>, AgentError> {
        let mut ran = Vec::new();
        let calls = groups.iter().flatten();
        said.remembered
            .starts(calls.map(|call| (call, self.name(call))));
        for group in groups {
            // Before a tool runs, which may be where the process is killed. A call of a tool that there is none of
            // runs nothing.
            if group
                .iter()
                .any(|call| self.offer.find(&call.name).is_some())
            {
                said.remembered.keep();
            }
            let mut waiting: Vec<&ToolCall> = group.iter().collect();
            let mut running: FuturesUnordered<_> = group
                .iter()
                .filter(|_| !self.cancel.is_cancelled())
                .map(|call| async move {
                    self.starts(call);
                    (call, self.toolset.call(self.offer, call).await)
                })
                .collect();
            loop {
                // Results that are there together are remembered together.
                let ready = if self.cancel.is_cancelled() {
                    None
                } else {
                    running.next().now_or_never()
                };
                let done = if let Some(done) = ready {
                    done
                } else {
                    said.remembered.keep();
                    tokio::select! {
                        biased;
                        () = self.cancel.cancelled() => None,
                        text = said.heard() => {
                            said.say(text);
                            continue;
                        }
                        done = running.next() => done,
                    }
                };
                said.catch_up();
                let Some((call, outcome)) = done else {
                    break;
                };
                waiting.retain(|other| other.id != call.id);
                let result = result(&call.id, &outcome);
                chat.answered(
                    self.context.run_id(),
                    self.context.take_injections(),
                    vec![result],
                )?;
                ran.push(self.ended(call, &outcome, said));
            }
            // Dropped, so that what was started ends, before its end is logged.
            drop(running);
            let stopped = Outcome::failed(CANCELLED).saying("stopped");
            let results: Vec<Message> = waiting
                .iter()
                .map(|call| result(&call.id, &stopped))
                .collect();
            chat.answered(
                self.context.run_id(),
                self.context.take_injections(),
                results,
            )?;
            ran.extend(
                waiting
                    .into_iter()
                    .map(|call| self.ended(call, &stopped, said)),
            );
        }
        said.remembered.keep();
        Ok(ran)
    }

    fn starts(&self, call: &ToolCall) {
        let line = call
            .arguments
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let secrets = self.toolset.secrets();
        let tool = self.offer.find(&call.name);
        (self.on)(Event::Call {
            call: ToolCall {
                arguments: secrets.hide(&call.arguments),
                ..call.clone()
            },
            tool: self.name(call),
            effect: tool.map(|tool| tool.spec().effect),
        });
        (self.on)(Event::Tool {
            id: call.id.clone(),
            tool: self.name(call),
            status: ToolStatus::Started,
            arguments: Some(secrets.hide(&line.chars().take(ARGUMENTS).collect::<String>())),
            success: None,
            summary: None,
        });
    }

    fn ended(&self, call: &ToolCall, outcome: &Outcome, said: &mut Said<'_>) -> ToolRun {
        let run = ToolRun {
            id: call.id.clone(),
            tool: self.name(call),
            success: !outcome.failed,
            summary: outcome.summary.clone(),
        };
        said.remembered.ran(&run);
        (self.on)(Event::Result(result(&call.id, outcome)));
        (self.on)(Event::Tool {
            id: run.id.clone(),
            tool: run.tool.clone(),
            status: ToolStatus::Finished,
            arguments: None,
            success: Some(run.success),
            summary: Some(run.summary.clone()),
        });
        run
    }

    /// The tool's name toward people.
    fn name(&self, call: &ToolCall) -> String {
        match self.offer.find(&call.name) {
            Some(tool) => tool.spec().name.clone(),
            None => call.name.clone(),
        }
    }
}

/// The message that answers a call.
pub(crate) fn result(id: &str, outcome: &Outcome) -> Message {
    let mut message = Message {
        content: outcome.content.clone(),
        ..Message::tool_result(id, "")
    };
    if outcome.failed {
        message.extra.insert("isError".to_owned(), json!(true));
    }
    message
}
