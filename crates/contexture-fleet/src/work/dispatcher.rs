use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contexture::pool::{Change, Locale, Name, PoolEvent};
use contexture::task::{Board, BoardEvent, Now, Recall, Spent, TaskError};
use contexture_agent::{Cancel, clock};
use contexture_store::{BoardLog, LoadedBoard, StoreError};
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::DISPATCHER;
use super::hear::{Guests, Outcomes, REVOKED, Refused, Roll, Round, act, counts};
use super::message::WHO_IS_HERE;
use super::offers::{Offers, Out};
use super::presence::Seen;
use super::seal::{HubKey, Voice};
use super::worker::{dispatcher, millis};
use crate::hub::{Doing, Hub, Inbox, LocalHub, Presence, Watch};
use crate::methods::blocking;
use crate::tokens::{TokenError, hex, random};
use crate::{Bus, Event, RpcError, Why};

/// How work is handed out.
#[derive(Clone)]
pub struct WorkOptions {
    /// Where the board is kept.
    pub log: BoardLog,
    /// What carries messages.
    pub hub: Arc<dyn Hub>,
    /// What they are sealed with.
    pub key: HubKey,
    /// Whether the hub is shared with other machines: then every executor is a worker that joins.
    pub shared: bool,
    /// How long a worker may be silent.
    pub patience: Duration,
    /// The language of what executors are told.
    pub locale: Locale,
}

impl WorkOptions {
    /// In this process alone.
    pub fn here(log: BoardLog, key: HubKey) -> Self {
        Self {
            log,
            hub: Arc::new(LocalHub::default()),
            key,
            shared: false,
            patience: PATIENCE,
            locale: Locale::default(),
        }
    }
}

/// How long a worker may be silent, unless somebody says so.
const PATIENCE: Duration = Duration::from_secs(15);

/// Hands out tasks, and writes down what comes of them.
pub struct Dispatcher {
    pub(super) options: WorkOptions,
    board: Mutex<LoadedBoard>,
    /// Which process this is, among all that had this board.
    process: String,
    bus: Arc<Bus>,
    wake: Notify,
    /// Counts changes, for whoever waits for one.
    changed: watch::Sender<u64>,
    seen: Mutex<Seen>,
    /// Which dispatcher asked last who is here: cards that answer an earlier one are old.
    asks: Mutex<String>,
    /// How often keys were revoked, as the board had it last.
    revoked: Mutex<BTreeMap<Name, u64>>,
    offers: Mutex<Offers>,
}

/// How often it is looked whether somebody is silent.
const TICK: Duration = Duration::from_millis(500);
/// How much is heard before it is acted upon.
const ROUND: usize = 256;
/// How often it is asked at most who is here.
const ASK: Duration = Duration::from_millis(200);
/// How long to wait when the log or the hub is away; longer each time.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(200);
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl Dispatcher {
    /// The dispatcher of a board, which has not begun to hand out.
    pub fn new(options: WorkOptions, bus: Arc<Bus>) -> Result<Arc<Self>, TokenError> {
        let process = hex(&random()?[..8]);
        Ok(Arc::new(Self {
            options,
            board: Mutex::default(),
            asks: Mutex::new(process.clone()),
            revoked: Mutex::default(),
            process,
            bus,
            wake: Notify::new(),
            changed: watch::Sender::new(0),
            seen: Mutex::default(),
            offers: Mutex::default(),
        }))
    }

    /// Looks at the board as the log has it.
    pub async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Board) -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        let me = Arc::clone(self);
        blocking(move || {
            let mut loaded = lock(&me.board);
            me.options.log.follow(&mut loaded)?;
            me.note_keys(&loaded.board);
            Ok(look(&loaded.board))
        })
        .await
    }

    /// Changes the board, and acts upon it.
    pub async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        decide: impl FnMut(&mut Board, &Now) -> Result<(T, Vec<Recall>), TaskError> + Send + 'static,
    ) -> Result<T, RpcError> {
        let (out, recalls) = self.write(decide, |_, out| out).await?;
        self.recall(recalls);
        self.wake.notify_one();
        Ok(out)
    }

    /// Something that changes whenever the board does.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The key that all others follow from.
    pub fn key(&self) -> &HubKey {
        &self.options.key
    }

    /// Which process this is, among all that had this board.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// What carries messages.
    pub fn hub(&self) -> &Arc<dyn Hub> {
        &self.options.hub
    }

    /// Whether every executor is a worker that joins.
    pub fn is_shared(&self) -> bool {
        self.options.shared
    }

    /// An executor is about to say that it is here: until then it is not missed.
    pub fn expect(&self, executor: &Name) {
        lock(&self.seen).expect(executor);
    }

    /// Hands out, until `stop`.
    pub async fn run(self: Arc<Self>, stop: Cancel) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.work() => {}
        }
    }

    /// Of several dispatchers the one that came last hands out. The others stand by until it is silent.
    async fn work(self: &Arc<Self>) {
        let mut watch = self.watch().await;
        loop {
            let mut inbox = self.open().await;
            lock(&self.asks).clone_from(&self.process);
            self.ask_who_is_here();
            self.abandon().await;
            self.lead(&mut inbox, &mut watch).await;
            tracing::info!("another dispatcher hands out");
            self.stand_by(&mut watch).await;
        }
    }

    /// Hands out, until another does.
    async fn lead(self: &Arc<Self>, inbox: &mut Inbox, watch: &mut Watch) {
        let mut beat = interval(self.options.patience / 4);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut wait, mut due) = (FIRST_WAIT, Duration::ZERO);
        let (mut unheard, mut asked) = (false, Instant::now());
        loop {
            let mut round = Round::default();
            tokio::select! {
                delivery = inbox.next() => match delivery {
                    Some(delivery) => round.take(delivery, &self.options.key),
                    None => return,
                },
                word = watch.next() => match word {
                    Some(word) => self.presence(&mut round, word),
                    None => *watch = self.watch().await,
                },
                _ = beat.tick() => self.beat(),
                () = self.wake.notified() => {}
                () = sleep(due) => {}
            }
            while round.heard.len() < ROUND
                && let Some(delivery) = inbox.try_next()
            {
                round.take(delivery, &self.options.key);
            }
            while round.heard.len() < ROUND
                && let Some(word) = watch.try_next()
            {
                self.presence(&mut round, word);
            }
            unheard |= round.unheard;
            if unheard && asked.elapsed() >= ASK {
                self.ask_who_is_here();
                (unheard, asked) = (false, Instant::now());
            }
            match self.round(round).await {
                Ok(next) if unheard => (wait, due) = (FIRST_WAIT, next.min(ASK)),
                Ok(next) => (wait, due) = (FIRST_WAIT, next),
                // What was not acknowledged comes again.
                Err(error) => {
                    tracing::warn!(%error, "the board cannot be written");
                    sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }

    /// Waits until the one that hands out is silent while we could have heard it.
    async fn stand_by(&self, watch: &mut Watch) {
        let patience = self.options.patience;
        let mut heard = Instant::now();
        let mut last = 0;
        loop {
            let word = timeout(TICK, watch.next()).await;
            match word {
                Ok(Some(word)) if self.other_dispatcher(&word).is_some() => {
                    // One that is shown again was said before.
                    if let Some((process, at)) = self.other_dispatcher(&word)
                        && at > last
                    {
                        (heard, last) = (Instant::now(), at);
                        *lock(&self.asks) = process;
                    }
                }
                // Who works is known when it is our turn.
                Ok(Some(word)) => self.presence(&mut Round::default(), word),
                Ok(None) => *watch = self.watch().await,
                Err(_) => {}
            }
            let there = self.options.hub.there_for();
            if there.is_some_and(|there| there > patience) && heard.elapsed() > patience {
                return;
            }
        }
    }

    /// Says that we hand out. It must not hold up what else there is to do.
    fn beat(self: &Arc<Self>) {
        let me = Arc::clone(self);
        tokio::spawn(async move {
            let seat = me.options.key.seat(&dispatcher(), true);
            let card = seat.seal(format!("{} {}", me.process, millis()));
            // One that is not heard is followed by another.
            let _ = me.options.hub.beat(&dispatcher(), card).await;
        });
    }

    /// Asks who is here, which those answer who live now. It must not hold up what else there is to do.
    fn ask_who_is_here(self: &Arc<Self>) {
        let me = Arc::clone(self);
        tokio::spawn(async move {
            let question = format!("{WHO_IS_HERE} {}", me.process);
            // Who did not hear it beats all the same, and is asked again then.
            let _ = me.options.hub.broadcast(question).await;
        });
    }

    /// Which other dispatcher says that it hands out, and when it said so.
    fn other_dispatcher(&self, word: &Presence) -> Option<(String, u64)> {
        let Presence::Here { module, card } = word else {
            return None;
        };
        let said = self.options.key.open(card, DISPATCHER)?;
        let (process, at) = said.text.split_once(' ')?;
        let other = *module == dispatcher()
            && said.from == *module
            && said.voice == Voice::Owner
            && process != self.process;
        other.then_some((process.to_owned(), at.parse().ok()?))
    }

    /// Ends goals whose makers went with an earlier process. On a shared hub they may be another dispatcher's.
    async fn abandon(self: &Arc<Self>) {
        if self.options.shared {
            return;
        }
        let own = self.process.clone();
        let ended = self.change(move |board, now| {
            let tasks = board.tasks().out();
            let goals =
                tasks.filter(|task| task.executor().is_none() && task.instance() != Some(&own));
            let goals: Vec<String> = goals.map(|goal| goal.id().to_owned()).collect();
            let mut recalls = Vec::new();
            for goal in goals {
                let why = "whoever wanted it has gone".to_owned();
                recalls.extend(board.end(&goal, Err(why), Spent::default(), now)?);
            }
            Ok(((), recalls))
        });
        if let Err(error) = ended.await {
            tracing::warn!(%error, "the board cannot be written");
        }
    }

    /// Opens our inbox, however long that takes.
    async fn open(&self) -> Inbox {
        let us = dispatcher();
        until(|| self.options.hub.open(&us)).await
    }

    /// Looks who is here, however long that takes.
    async fn watch(&self) -> Watch {
        until(|| self.options.hub.watch()).await
    }

    fn presence(&self, round: &mut Round, word: Presence) {
        let (Presence::Here { module, .. } | Presence::Left { module }) = &word;
        if *module == dispatcher() {
            return;
        }
        let (asks, revoked) = (lock(&self.asks), lock(&self.revoked));
        let roll = Roll {
            key: &self.options.key,
            asks: &asks,
            revoked: &revoked,
        };
        round.presence(word, &roll, &mut lock(&self.seen));
    }

    /// With which key a module is spoken with.
    pub(super) fn voice(&self, to: &Name) -> Voice {
        let spoke = lock(&self.seen).voice(to);
        let revoked = || lock(&self.revoked).get(to).copied();
        spoke.unwrap_or_else(|| Voice::Guest(revoked().unwrap_or_default()))
    }

    fn note_keys(&self, board: &Board) {
        let mut known = lock(&self.revoked);
        if *known != *board.pool().revoked_keys() {
            known.clone_from(board.pool().revoked_keys());
        }
    }

    /// Acts upon what was heard: first in the log, then outside. Gives how long until something is due by itself.
    async fn round(self: &Arc<Self>, round: Round) -> Result<Duration, RpcError> {
        let Round {
            heard,
            sent,
            mut asked,
            refused,
            unheard: _,
        } = round;
        self.refuse(refused);
        let locale = self.options.locale;
        let guests = match self.options.shared {
            true => Guests::All,
            false => Guests::Workers,
        };
        let (me, again) = (Arc::clone(self), Arc::clone(self));
        let decide = move |board: &mut Board, now: &Now| {
            board.reconcile(now)?;
            let mut out = act(&heard, board, guests, locale, now)?;
            me.evict(board, &mut out, now)?;
            out.recalls.extend(me.miss(board, now)?);
            out.recalls.extend(board.overdue(now)?);
            board.dispatch(locale, now)?;
            Ok(out)
        };
        let then = move |board: &Board, out: Outcomes| {
            let offers = lock(&again.offers).due(board);
            let due = board
                .next_due()
                .map(|at| at.saturating_sub(millis()).max(1));
            let due = due.map_or(TICK, |due| Duration::from_millis(due).min(TICK));
            (out, offers, due)
        };
        let (out, offers, due) = self.write(decide, then).await?;
        for (place, (to, voice, answer)) in out.answers {
            if let Some(asked) = asked.remove(&place) {
                let text = json!(answer).to_string();
                asked.answer(self.options.key.seal(&to, voice, text));
            }
        }
        self.tell_revoked(out.revoked);
        for sent in sent {
            // One that is lost comes again, and is refused then.
            tokio::spawn(sent.ack());
        }
        self.refuse(out.refused);
        self.recall(out.recalls);
        self.offer(offers);
        Ok(due)
    }

    /// Executors whose key was revoked while they are here: what they do is done by somebody else.
    fn evict(&self, board: &mut Board, out: &mut Outcomes, now: &Now) -> Result<(), TaskError> {
        let revoked = board.pool().revoked_keys();
        let old: Vec<(Name, Voice)> = {
            let seen = lock(&self.seen);
            let old = seen
                .voices()
                .filter(|(name, voice)| !counts(revoked, name, *voice));
            old.map(|(name, voice)| (name.clone(), voice)).collect()
        };
        for (name, voice) in old {
            let held = board.pool().get(name.as_str());
            let recalls = if held.is_some_and(|r| r.status().is_held()) {
                board.lost(&name, REVOKED, now)?
            } else {
                board.leave(&name, false, now)?
            };
            out.recalls.extend(recalls);
            out.revoked.push((name, voice));
        }
        Ok(())
    }

    /// Tells those whose keys no longer count, and forgets them.
    fn tell_revoked(self: &Arc<Self>, mut revoked: Vec<(Name, Voice)>) {
        revoked.sort_by(|(a, _), (b, _)| a.cmp(b));
        revoked.dedup();
        let mut seen = lock(&self.seen);
        for (name, voice) in &revoked {
            if seen.voice(name) == Some(*voice) {
                seen.left(name);
            }
        }
        drop(seen);
        let told = revoked.into_iter();
        self.offer(
            told.map(|(name, voice)| Out::revoked(name, voice))
                .collect(),
        );
    }

    /// Executors that are silent while we could have heard them. Who was never here takes no work until it comes.
    fn miss(&self, board: &mut Board, now: &Now) -> Result<Vec<Recall>, TaskError> {
        let patience = self.options.patience;
        let there = self.options.hub.there_for();
        let seen = lock(&self.seen);
        let ours = board
            .pool()
            .resources()
            .filter(|resource| resource.kind().does_tasks() && resource.status().is_in_service());
        let mut absent = Vec::new();
        let mut silent = Vec::new();
        for resource in ours {
            let id = resource.id();
            if !seen.knows(id) && !resource.status().is_held() {
                absent.push(id.clone());
            } else if there.is_some_and(|there| there > patience) && seen.is_silent(id, patience) {
                silent.push(id.clone());
            }
        }
        let mut recalls = Vec::new();
        for id in absent {
            recalls.extend(board.leave(&id, false, now)?);
        }
        for id in silent {
            let why = format!("silent for more than {} s", patience.as_secs());
            recalls.extend(board.lost(&id, &why, now)?);
        }
        Ok(recalls)
    }

    fn offer(self: &Arc<Self>, offers: Vec<Out>) {
        for out in offers {
            let me = Arc::clone(self);
            tokio::spawn(async move { me.hand_over(out).await });
        }
    }

    pub(super) fn recall(self: &Arc<Self>, recalls: Vec<Recall>) {
        self.offer(recalls.into_iter().map(Out::from).collect());
    }

    fn refuse(&self, refused: Vec<Refused>) {
        for Refused { by, task_id, why } in refused {
            tracing::info!(by, task = task_id, why, "a worker's word does not count");
            self.bus.tell(Event::WordRefused { by, task_id, why });
        }
    }

    /// Writes a change, tells what happened, and gives what `then` makes of the board.
    async fn write<T: Send + 'static, U: Send + 'static>(
        self: &Arc<Self>,
        mut decide: impl FnMut(&mut Board, &Now) -> Result<T, TaskError> + Send + 'static,
        then: impl FnOnce(&Board, T) -> U + Send + 'static,
    ) -> Result<U, RpcError> {
        let me = Arc::clone(self);
        blocking(move || {
            let mut loaded = lock(&me.board);
            let before = loaded.tail.clone();
            let decided = me.options.log.change(&mut loaded, |board| {
                let now = Now {
                    at: clock::now(),
                    millis: millis(),
                };
                decide(board, &now).map_err(WriteError::Task)
            });
            me.note_keys(&loaded.board);
            let (out, news) = decided.map_err(RpcError::from)?;
            for event in &news {
                me.tell(event, &loaded.board);
            }
            // Also where it was another dispatcher who changed it.
            if loaded.tail != before {
                me.changed.send_modify(|count| *count += 1);
            }
            Ok(then(&loaded.board, out))
        })
        .await
    }

    fn tell(&self, event: &BoardEvent, board: &Board) {
        let event = match event {
            BoardEvent::Task(event) => {
                let change = &event.change;
                let Some(task) = board.tasks().get(change.task()) else {
                    return;
                };
                Event::TaskChanged {
                    task_id: task.id().to_owned(),
                    change: change.name().to_owned(),
                    state: change.leads().as_str().to_owned(),
                    attempt: task.attempt(),
                    parent: task.is().parent.clone(),
                    executor: task.executor().map(|name| name.as_str().to_owned()),
                    why: change.why().map(str::to_owned),
                }
            }
            BoardEvent::Pool(PoolEvent {
                change: Change::KeyRevoked { id },
                ..
            }) => Event::KeyRevoked {
                resource: id.as_str().to_owned(),
            },
            BoardEvent::Pool(event) => {
                let (Some(id), Some((_, status))) = (event.change.resource(), event.change.leads())
                else {
                    return;
                };
                Event::ResourceState {
                    resource: id.as_str().to_owned(),
                    status: status.as_str().to_owned(),
                }
            }
        };
        self.bus.tell(event);
    }
}

/// Does something at the hub until it works.
async fn until<'a, T>(mut what: impl FnMut() -> Doing<'a, T>) -> T {
    let mut wait = FIRST_WAIT;
    loop {
        match what().await {
            Ok(done) => return done,
            Err(error) => tracing::warn!(%error, "the hub is not there yet"),
        }
        sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a change was not written.
enum WriteError {
    Store(StoreError),
    Task(TaskError),
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<WriteError> for RpcError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Store(error) => error.into(),
            WriteError::Task(error) => error.into(),
        }
    }
}

impl From<TaskError> for RpcError {
    fn from(error: TaskError) -> Self {
        let why = match &error {
            TaskError::Unknown { .. } => Why::NotFound,
            TaskError::Exists { .. } | TaskError::Over { .. } | TaskError::Transition { .. } => {
                Why::Conflict
            }
            TaskError::Pool(contexture::pool::PoolError::Unknown { .. }) => Why::NotFound,
            TaskError::Pool(
                contexture::pool::PoolError::Exists { .. }
                | contexture::pool::PoolError::InUse { .. }
                | contexture::pool::PoolError::Transition { .. },
            ) => Why::Conflict,
            _ => Why::Invalid,
        };
        Self::new(why, error.to_string()).hint(error.hint())
    }
}
