use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contexture::json;
use contexture::pool::{Name, NewResource};
use contexture::task::Spent;
use contexture_agent::Cancel;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::message::{Answer, Card, Claim, Offer, Order, Outcome, Question, Report, WHO_IS_HERE};
use super::seal::Seat;
use super::{Came, DISPATCHER, Executor, Job};
use crate::hub::{Delivery, Hub, HubError, Inbox, Sent};
use crate::tokens::{TokenError, hex, random};

/// An executor at the hub.
pub struct Worker {
    hub: Arc<dyn Hub>,
    seat: Seat,
    resource: NewResource,
    executor: Arc<dyn Executor>,
    options: WorkerOptions,
    instance: String,
    dispatcher: Name,
    /// Which process asked last who is here.
    heard: Mutex<String>,
    /// Called when the dispatcher says that the key no longer counts.
    revoked: Cancel,
}

/// How a worker works.
#[derive(Debug, Clone, Copy)]
pub struct WorkerOptions {
    /// How often it says that it is here.
    pub beat: Duration,
    /// How long it waits for an answer.
    pub patience: Duration,
    /// How long a task that was called off has to end by itself.
    pub grace: Duration,
    /// Whether the pool forgets it when it goes.
    pub fleeting: bool,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(3),
            patience: Duration::from_secs(5),
            grace: Duration::from_secs(5),
            fleeting: false,
        }
    }
}

/// How long to wait before something that did not work is tried again; longer each time.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How long it is waited for a word on whether our key counts.
const GREETING: Duration = Duration::from_secs(2);
/// The longest name of a dispatcher's process.
const MAX_PROCESS_CHARS: usize = 64;

/// A task under way.
struct Underway {
    task_id: String,
    attempt: u32,
    cancel: Cancel,
    done: JoinHandle<()>,
}

impl Worker {
    /// A worker that has not begun.
    pub fn new(
        hub: Arc<dyn Hub>,
        seat: Seat,
        resource: NewResource,
        executor: Arc<dyn Executor>,
        options: WorkerOptions,
    ) -> Result<Self, TokenError> {
        Ok(Self {
            hub,
            seat,
            resource,
            executor,
            options,
            instance: hex(&random()?[..8]),
            dispatcher: dispatcher(),
            heard: Mutex::default(),
            revoked: Cancel::default(),
        })
    }

    /// Works until `stop`, then says that it goes. What it was doing is called off: somebody else will do it.
    pub async fn run(self, stop: Cancel) -> Result<(), HubError> {
        let me = Arc::new(self);
        // Before it takes the inbox from whoever has the next key.
        if !me.seat.is_owner() {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                counts = me.greet() => if !counts {
                    return Err(me.key_revoked());
                },
            }
        }
        let mut inbox = me.again(&stop, || me.hub.open(&me.seat.name)).await?;
        let mut beat = interval(me.options.beat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waiting: VecDeque<(Offer, Sent)> = VecDeque::new();
        let mut under_way: Option<Underway> = None;
        loop {
            if under_way.as_ref().is_some_and(|job| job.done.is_finished()) {
                under_way = None;
            }
            if under_way.is_none()
                && let Some((offer, sent)) = waiting.pop_front()
            {
                under_way = Some(me.begin(offer, sent));
            }
            let ended = async {
                match &mut under_way {
                    Some(job) => {
                        let _ = (&mut job.done).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = me.revoked.cancelled() => break,
                _ = beat.tick() => me.beats(),
                () = ended => under_way = None,
                delivery = inbox.next() => match delivery {
                    Some(delivery) => me.take(delivery, &mut waiting, under_way.as_ref()).await,
                    // Somebody else has our place, or the hub has ended.
                    None => break,
                },
            }
        }
        drop(inbox);
        if let Some(job) = under_way {
            job.cancel.cancel();
            let abort = job.done.abort_handle();
            if timeout(me.options.grace, job.done).await.is_err() {
                abort.abort();
            }
        }
        if me.revoked.is_cancelled() {
            return Err(me.key_revoked());
        }
        match stop.is_cancelled() {
            true => {
                // What counts is its own word; the hub only tidies up.
                me.beat(true).await?;
                me.hub.leave(&me.seat.name).await
            }
            false => Err(HubError::Refused {
                why: format!("somebody else works as `{}` now", me.seat.name),
            }),
        }
    }

    /// Asks whether our key counts. Where nobody answers, it is found out later.
    async fn greet(&self) -> bool {
        let hello = Question::Hello {
            hello: self.instance.clone(),
        };
        let asked = self.seat.seal(json!(hello).to_string());
        let answer = self.hub.ask(&self.dispatcher, asked, GREETING).await;
        let answer = answer.ok().and_then(|sealed| self.seat.open(&sealed));
        let answer = answer.and_then(|text| json::from_text(&text).ok());
        !matches!(answer, Some(Answer::Revoked))
    }

    fn key_revoked(&self) -> HubError {
        HubError::Revoked {
            module: self.seat.name.to_string(),
        }
    }

    /// Says that we are here. It must not hold up what else there is to do.
    fn beats(self: &Arc<Self>) {
        let me = Arc::clone(self);
        // One that is not heard is followed by another.
        tokio::spawn(async move { me.beat(false).await });
    }

    async fn beat(&self, leaving: bool) -> Result<(), HubError> {
        let card = Card {
            resource: json!(self.resource),
            instance: self.instance.clone(),
            at: millis(),
            heard: self
                .heard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            leaving,
            fleeting: self.options.fleeting,
        };
        let card = self.seat.seal(json!(card).to_string());
        let beating = self.hub.beat(&self.seat.name, card);
        match timeout(self.options.patience, beating).await {
            Ok(done) => done,
            Err(_) => Err(HubError::NoAnswer {
                module: DISPATCHER.to_owned(),
            }),
        }
    }

    async fn take(
        self: &Arc<Self>,
        delivery: Delivery,
        waiting: &mut VecDeque<(Offer, Sent)>,
        under_way: Option<&Underway>,
    ) {
        let sent = match delivery {
            Delivery::Sent(sent) => sent,
            Delivery::Told(text) => {
                if let Some(process) = text.strip_prefix(WHO_IS_HERE) {
                    let process: String = process.trim().chars().take(MAX_PROCESS_CHARS).collect();
                    *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = process;
                    self.beats();
                }
                return;
            }
            Delivery::Asked(_) => return,
        };
        let order = self.seat.open(&sent.text);
        match order.and_then(|text| json::from_text(&text).ok()) {
            Some(Order::Do(offer)) => {
                let same = |task: &str, attempt| offer.task_id == task && offer.attempt == attempt;
                let known = under_way.is_some_and(|job| same(&job.task_id, job.attempt))
                    || waiting
                        .iter()
                        .any(|(other, _)| same(&other.task_id, other.attempt));
                match known {
                    true => self.acknowledge(sent).await,
                    false => waiting.push_back((offer, sent)),
                }
            }
            Some(Order::Stop { task_id, attempt }) => {
                if let Some(job) = under_way
                    && job.task_id == task_id
                    && job.attempt == attempt
                {
                    job.cancel.cancel();
                    let (abort, grace) = (job.done.abort_handle(), self.options.grace);
                    tokio::spawn(async move {
                        sleep(grace).await;
                        abort.abort();
                    });
                }
                self.acknowledge(sent).await;
            }
            Some(Order::Revoked) => {
                self.acknowledge(sent).await;
                self.revoked.cancel();
            }
            // Not the dispatcher's word, or a newer one's: it comes no more.
            None => {
                tracing::warn!(worker = %self.seat.name, "a message that the dispatcher did not seal");
                self.acknowledge(sent).await;
            }
        }
    }

    /// An acknowledgement that is lost only has the message come again.
    async fn acknowledge(&self, sent: Sent) {
        let _ = timeout(self.options.patience, sent.ack()).await;
    }

    fn begin(self: &Arc<Self>, offer: Offer, sent: Sent) -> Underway {
        let (me, cancel) = (Arc::clone(self), Cancel::default());
        let (task_id, attempt) = (offer.task_id.clone(), offer.attempt);
        let stop = cancel.clone();
        let done = tokio::spawn(async move { me.work(offer, sent, &stop).await });
        Underway {
            task_id,
            attempt,
            cancel,
            done,
        }
    }

    /// A task, from the question whether we may to the report.
    async fn work(&self, offer: Offer, sent: Sent, cancel: &Cancel) {
        let Some(context) = self.claim(&offer).await else {
            self.acknowledge(sent).await;
            return;
        };
        // It is ours in the log: from here on it is the dispatcher who sees to it that it is done.
        self.acknowledge(sent).await;
        let job = Job {
            task_id: offer.task_id.clone(),
            attempt: offer.attempt,
            executor: self.seat.name.as_str().to_owned(),
            description: offer.description,
            bd_task_id: offer.bd_task_id,
            context,
            tools: offer.tools,
            needs: offer.needs,
            max_tokens: offer.max_tokens,
            max_cost_micros: offer.max_cost_micros,
        };
        let limit = Duration::from_secs(offer.seconds);
        let came = match timeout(limit, self.executor.run(&job, cancel)).await {
            Ok(came) => came,
            Err(_) => Came::failed(
                format!("took longer than {} s", offer.seconds),
                Spent::default(),
            ),
        };
        self.report(&job, came).await;
    }

    /// Asks whether we may begin; gives what holds now.
    async fn claim(&self, offer: &Offer) -> Option<String> {
        let claim = Claim {
            task_id: offer.task_id.clone(),
            attempt: offer.attempt,
            instance: self.instance.clone(),
        };
        let mut wait = FIRST_WAIT;
        loop {
            let asked = self.seat.seal(json!(claim).to_string());
            let asked = self.hub.ask(&self.dispatcher, asked, self.options.patience);
            let answer = match asked.await {
                Ok(sealed) => self.seat.open(&sealed),
                Err(error) => {
                    tracing::debug!(%error, "no answer to a claim");
                    None
                }
            };
            match answer.and_then(|text| json::from_text(&text).ok()) {
                Some(Answer::Go {
                    task_id,
                    attempt,
                    context,
                }) if task_id == offer.task_id && attempt == offer.attempt => return Some(context),
                Some(Answer::No { why }) => {
                    tracing::info!(task = offer.task_id, offer.attempt, why, "not begun");
                    return None;
                }
                Some(Answer::Revoked) => {
                    self.revoked.cancel();
                    return None;
                }
                // Nobody heard us, or it was not the dispatcher who answered.
                _ => sleep(wait).await,
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Reports until the hub has it.
    async fn report(&self, job: &Job, came: Came) {
        let report = Report {
            task_id: job.task_id.clone(),
            attempt: job.attempt,
            instance: self.instance.clone(),
            tokens: came.spent.tokens,
            cost_micros: came.spent.cost_micros,
            came: match came.of {
                Ok(result) => Outcome::Done(result),
                Err((error, retry)) => Outcome::Failed { error, retry },
            },
        };
        let id = format!("{}.{}.{}", report.task_id, report.attempt, self.instance);
        let mut text = self.seat.seal(json!(report).to_string());
        let mut wait = FIRST_WAIT;
        loop {
            match self.hub.send(&self.dispatcher, &id, text.clone()).await {
                Ok(()) => return,
                Err(error) if error.may_pass() => sleep(wait).await,
                // It cannot be said so: then at least that.
                Err(error) => {
                    let came = Outcome::Failed {
                        error: format!("its result could not be sent: {error}"),
                        retry: false,
                    };
                    let short = Report {
                        came,
                        ..report.clone()
                    };
                    text = self.seat.seal(json!(short).to_string());
                    sleep(wait).await;
                }
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Does something until it works or we are to stop.
    async fn again<'a>(
        &self,
        stop: &Cancel,
        open: impl Fn() -> crate::hub::Doing<'a, Inbox>,
    ) -> Result<Inbox, HubError> {
        let mut wait = FIRST_WAIT;
        loop {
            let error = match open().await {
                Ok(inbox) => return Ok(inbox),
                Err(error) if !error.may_pass() || stop.is_cancelled() => return Err(error),
                Err(error) => error,
            };
            tracing::warn!(%error, "the hub is not there yet");
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}

/// The dispatcher's name.
pub(super) fn dispatcher() -> Name {
    Name::known(DISPATCHER)
}

/// Now, in milliseconds since 1970.
pub(super) fn millis() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
