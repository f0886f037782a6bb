use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ContentBlock, PromptResponse, SessionUpdate, StopReason};
use contexture_agent::{AgentResult, Cancel, Ended, Event};
use serde_json::{Map, json};

use super::prompt;
use super::tell::Teller;
use super::{failed, refused};
use crate::agent::{self, Ready};

/// A session that a host has open.
pub struct Session {
    teller: Arc<Teller>,
    images: bool,
    /// Who answers. One prompt at a time has it.
    seat: tokio::sync::Mutex<Seat>,
    under_way: Mutex<Option<Cancel>>,
}

struct Seat {
    ready: Ready,
    /// What the host does not know yet.
    untold: Vec<String>,
    first: bool,
}

/// How long the first prompt waits for MCP servers that are still starting.
const SETTLING: Duration = Duration::from_secs(10);

impl Session {
    /// `untold` is what the host should know beside what the agent says of itself.
    pub fn new(mut ready: Ready, teller: Arc<Teller>, mut untold: Vec<String>) -> Self {
        untold.append(&mut ready.notices);
        teller.within(ready.chat.settings().config.max_input_tokens);
        Self {
            teller,
            images: !ready.agent.model.is_small(),
            seat: tokio::sync::Mutex::new(Seat {
                ready,
                untold,
                first: true,
            }),
            under_way: Mutex::new(None),
        }
    }

    /// Tells what was said before.
    pub fn replay(&self, updates: Vec<SessionUpdate>) {
        updates
            .into_iter()
            .for_each(|update| self.teller.send(update));
    }

    /// A prompt begins, unless one is under way.
    pub fn starts(&self) -> Result<Cancel, Error> {
        let mut under_way = self.under_way();
        if under_way.is_some() {
            return Err(refused(
                "a prompt is under way in this session: wait for its end, or cancel it",
            ));
        }
        let cancel = Cancel::default();
        *under_way = Some(cancel.clone());
        Ok(cancel)
    }

    /// Whether a prompt is under way.
    pub fn is_busy(&self) -> bool {
        self.under_way().is_some()
    }

    /// Stops the prompt that is under way.
    pub fn cancel(&self) {
        if let Some(cancel) = &*self.under_way() {
            cancel.cancel();
        }
    }

    /// Answers a prompt that [`starts`](Self::starts).
    pub async fn turn(
        &self,
        blocks: Vec<ContentBlock>,
        cancel: &Cancel,
    ) -> Result<PromptResponse, Error> {
        let answer = self.answer(blocks, cancel).await;
        self.teller.ends();
        *self.under_way() = None;
        match answer {
            // Whatever a stop broke on the way, it was a stop.
            Err(_) if cancel.is_cancelled() => Ok(PromptResponse::new(StopReason::Cancelled)),
            other => other,
        }
    }

    async fn answer(
        &self,
        blocks: Vec<ContentBlock>,
        cancel: &Cancel,
    ) -> Result<PromptResponse, Error> {
        let message = prompt::message(blocks, self.images)?;
        let mut seat = self.seat.lock().await;
        let Seat {
            ready,
            untold,
            first,
        } = &mut *seat;
        if std::mem::take(first) {
            tokio::select! {
                () = cancel.cancelled() => {}
                _ = ready.servers.settled(SETTLING) => {}
            }
            for down in agent::failing(&ready.servers) {
                if !untold.contains(&down) {
                    untold.push(down);
                }
            }
        }
        for what in untold.drain(..) {
            self.teller.notice(&what);
        }
        let on = |event: Event| self.teller.tell(event);
        let result = ready
            .agent
            .run(&mut ready.chat, message, cancel, &on)
            .await
            .map_err(|error| failed(&error.into()))?;
        Ok(response(&result, cancel))
    }

    fn under_way(&self) -> MutexGuard<'_, Option<Cancel>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a run ended, in the protocol's words.
fn response(result: &AgentResult, cancel: &Cancel) -> PromptResponse {
    let reason = match result.ended {
        _ if cancel.is_cancelled() => StopReason::Cancelled,
        Ended::Answered => StopReason::EndTurn,
        Ended::MaxSteps => StopReason::MaxTurnRequests,
        Ended::Cancelled => StopReason::Cancelled,
        Ended::Length | Ended::Budget => StopReason::MaxTokens,
        Ended::Refused | Ended::Failed => StopReason::Refusal,
    };
    let ours = json!({
        "runId": result.run_id, "steps": result.steps, "usage": result.usage,
    });
    PromptResponse::new(reason).meta(Map::from_iter([("contexture".to_owned(), ours)]))
}

#[cfg(test)]
mod tests {
    use contexture_agent::Spent;

    use super::*;

    fn ends(ended: Ended, cancel: &Cancel) -> StopReason {
        let result = AgentResult {
            run_id: "r".to_owned(),
            ended,
            success: false,
            text: String::new(),
            steps: 1,
            tool_calls: Vec::new(),
            had_tool_failure: false,
            failures: Vec::new(),
            usage: Spent::default(),
        };
        response(&result, cancel).stop_reason
    }

    #[test]
    fn each_end_has_its_reason() {
        let goes_on = Cancel::default();
        for (ended, reason) in [
            (Ended::Answered, StopReason::EndTurn),
            (Ended::MaxSteps, StopReason::MaxTurnRequests),
            (Ended::Length, StopReason::MaxTokens),
            (Ended::Refused, StopReason::Refusal),
            (Ended::Cancelled, StopReason::Cancelled),
        ] {
            assert_eq!(ends(ended, &goes_on), reason, "{ended:?}");
        }
        let stopped = Cancel::default();
        stopped.cancel();
        assert_eq!(ends(Ended::Answered, &stopped), StopReason::Cancelled);
    }
}
