//! What goes out to executors: offers, and that an attempt no longer counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::pool::Name;
use contexture::task::{Board, Recall, Spent, State, Task};
use serde_json::json;
use tokio::time::sleep;

use super::dispatcher::{Dispatcher, FIRST_WAIT, LONGEST_WAIT};
use super::message::{Offer, Order};
use super::seal::Voice;

/// How long an offer that nobody claims stands before it is made again.
const STANDS: Duration = Duration::from_secs(20);

/// What was offered, when, and how often.
#[derive(Default)]
pub(super) struct Offers {
    made: BTreeMap<(String, u32), (Instant, u32)>,
}

/// Something to send.
pub(super) struct Out {
    to: Name,
    /// The key of theirs that it is sealed with, where it is not the one that they spoke with last.
    voice: Option<Voice>,
    id: String,
    order: Order,
}

impl Offers {
    /// What is to be offered now: what was just handed out, what was before we began, and once more what nobody has
    /// claimed for long.
    pub(super) fn due(&mut self, board: &Board) -> Vec<Out> {
        let tasks = board.tasks();
        let waits = |task: &&Task| task.state() == State::Dispatched;
        self.made.retain(|(id, attempt), _| {
            let task = tasks.get(id).filter(waits);
            task.is_some_and(|task| task.attempt() == *attempt)
        });
        let mut due = Vec::new();
        for task in tasks.out().filter(waits) {
            let key = (task.id().to_owned(), task.attempt());
            let (since, times) = self.made.entry(key).or_insert_with(|| (Instant::now(), 0));
            if *times > 0 && since.elapsed() < STANDS {
                continue;
            }
            (*since, *times) = (Instant::now(), *times + 1);
            due.extend(Out::offer(board, task, *times));
        }
        due
    }
}

impl Out {
    fn offer(board: &Board, task: &Task, times: u32) -> Option<Self> {
        let to = task.executor()?;
        let left = board.tasks().left(task.id());
        let resource = board.pool().get(to.as_str())?;
        let tools = resource.tools().map(|tool| tool.as_str().to_owned());
        let required = task.is().requires.iter().map(|one| &one.capability);
        let own = required.filter(|capability| resource.can().contains_key(*capability));
        let needs = own.flat_map(|capability| board.pool().capability_tools().needed(capability));
        Some(Self {
            to: to.clone(),
            voice: None,
            id: format!("{}.{}.{times}", task.id(), task.attempt()),
            order: Order::Do(Offer {
                task_id: task.id().to_owned(),
                attempt: task.attempt(),
                description: task.is().description.clone(),
                bd_task_id: task.is().bd_task_id.clone(),
                context: task.context().unwrap_or_default().to_owned(),
                tools: Some(tools.collect()),
                needs: needs.map(|tool| tool.as_str().to_owned()).collect(),
                max_tokens: left.max_tokens,
                max_cost_micros: left.max_cost_micros,
                seconds: left.seconds,
            }),
        })
    }
}

impl Out {
    /// Tells whoever speaks with a key that it no longer counts.
    pub(super) fn revoked(to: Name, voice: Voice) -> Self {
        let generation = match voice {
            Voice::Owner => 0,
            Voice::Guest(generation) => generation,
        };
        Self {
            id: format!("{to}.revoked.{generation}"),
            to,
            voice: Some(voice),
            order: Order::Revoked,
        }
    }
}

impl From<Recall> for Out {
    fn from(recall: Recall) -> Self {
        let Recall {
            task_id,
            attempt,
            executor,
        } = recall;
        Self {
            to: executor,
            voice: None,
            id: format!("{task_id}.{attempt}.stop"),
            order: Order::Stop { task_id, attempt },
        }
    }
}

impl Dispatcher {
    /// Sends until the hub has it. A task that cannot be said to its executor fails, and lets go what it took.
    pub(super) async fn hand_over(self: &Arc<Self>, out: Out) {
        let Out {
            to,
            voice,
            id,
            order,
        } = out;
        let voice = voice.unwrap_or_else(|| self.voice(&to));
        let sealed = self.key().seal(&to, voice, json!(order).to_string());
        let mut wait = FIRST_WAIT;
        let error = loop {
            match self.hub().send(&to, &id, sealed.clone()).await {
                Ok(()) => return,
                Err(error) if error.may_pass() => sleep(wait).await,
                Err(error) => break error,
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        };
        // Whoever cannot be told to stop has no more to say about it anyway.
        let Order::Do(offer) = order else { return };
        let ended = self.change(move |board, now| {
            let known = board.tasks().get(&offer.task_id);
            let waits = known.is_some_and(|task| {
                task.attempt() == offer.attempt && task.state() == State::Dispatched
            });
            let why = format!("it could not be handed out: {error}");
            Ok(match waits {
                true => (
                    (),
                    board.end(&offer.task_id, Err(why), Spent::default(), now)?,
                ),
                false => ((), Vec::new()),
            })
        });
        if let Err(error) = ended.await {
            tracing::warn!(%error, "the board cannot be written");
        }
    }
}
