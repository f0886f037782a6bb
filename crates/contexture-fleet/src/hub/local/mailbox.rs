//! What waits for one module.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// How many messages wait to be acknowledged at most.
pub(super) const MOST_KEPT: usize = 10_000;
/// How many questions and broadcasts wait at most.
pub(super) const MOST_PASSING: usize = 1_000;

/// The messages of a module, and what passes by. It outlives its inboxes.
#[derive(Default)]
pub(super) struct Mailbox {
    /// Which opening is the latest, counted over all modules; nothing before the first.
    opening: u64,
    open: bool,
    /// All that is not acknowledged, in the order in which it came.
    kept: BTreeMap<u64, Arc<str>>,
    /// Which of them go out next.
    ready: BTreeSet<u64>,
    /// Which of them go out again, and when.
    later: BTreeSet<(Instant, u64)>,
    passing: VecDeque<Passing>,
    /// Whether the last that went out was passing. They take turns, so that neither waits for ever.
    passed: bool,
    wake: Arc<Notify>,
}

/// What is not kept.
pub(super) enum Passing {
    Asked(String, oneshot::Sender<String>),
    Told(String),
}

/// What an inbox gets next.
pub(super) enum Next {
    Message(u64, Arc<str>),
    Passing(Passing),
    /// Something, but not before then.
    At(Instant),
    Nothing,
    /// Nothing any more: somebody else has opened it.
    Over,
}

impl Mailbox {
    /// Whether nothing is lost without it.
    pub(super) fn is_idle(&self) -> bool {
        !self.open && self.kept.is_empty() && self.passing.is_empty()
    }

    /// Whether no message has room in it.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= MOST_KEPT
    }

    /// Opens it: what was not acknowledged goes out again, from the first. Gives what wakes the inbox.
    pub(super) fn open(&mut self, opening: u64) -> Arc<Notify> {
        self.wake.notify_one();
        self.wake = Arc::default();
        (self.opening, self.open) = (opening, true);
        self.later.clear();
        self.ready = self.kept.keys().copied().collect();
        self.passing
            .retain(|passing| matches!(passing, Passing::Asked(..)));
        Arc::clone(&self.wake)
    }

    /// Nobody reads this inbox any more.
    pub(super) fn close(&mut self, opening: u64) {
        if self.opening == opening {
            self.open = false;
        }
    }

    pub(super) fn keep(&mut self, number: u64, text: Arc<str>) {
        self.kept.insert(number, text);
        self.ready.insert(number);
        self.wake.notify_one();
    }

    /// Takes a question; whether there was room.
    pub(super) fn ask(&mut self, text: String, answer: oneshot::Sender<String>) -> bool {
        self.forget_given_up();
        let room = self.passing.len() < MOST_PASSING;
        if room {
            self.passing.push_back(Passing::Asked(text, answer));
            self.wake.notify_one();
        }
        room
    }

    /// Tells those who listen now; whether there was room.
    pub(super) fn tell(&mut self, text: &str) -> bool {
        let room = self.passing.len() < MOST_PASSING;
        if self.open && room {
            self.passing.push_back(Passing::Told(text.to_owned()));
            self.wake.notify_one();
        }
        room
    }

    /// Drops the questions whose askers have gone.
    pub(super) fn forget_given_up(&mut self) {
        self.passing.retain(|passing| match passing {
            Passing::Asked(_, answer) => !answer.is_closed(),
            Passing::Told(_) => true,
        });
    }

    /// Whether somebody else has opened it since.
    pub(super) fn is_over(&self, opening: u64) -> bool {
        self.opening != opening
    }

    pub(super) fn next(&mut self, opening: u64) -> Next {
        if self.is_over(opening) {
            return Next::Over;
        }
        let now = Instant::now();
        while let Some((at, number)) = self.later.first().copied()
            && at <= now
        {
            self.later.pop_first();
            self.ready.insert(number);
        }
        self.forget_given_up();
        if (self.ready.is_empty() || !self.passed)
            && let Some(passing) = self.passing.pop_front()
        {
            self.passed = true;
            return Next::Passing(passing);
        }
        self.passed = false;
        while let Some(number) = self.ready.pop_first() {
            if let Some(text) = self.kept.get(&number) {
                return Next::Message(number, Arc::clone(text));
            }
        }
        match self.later.first() {
            Some((at, _)) => Next::At(*at),
            None => Next::Nothing,
        }
    }

    /// A message was taken; whether it was this opening's to take.
    pub(super) fn acknowledge(&mut self, opening: u64, number: u64) -> bool {
        if self.is_over(opening) {
            return false;
        }
        self.kept.remove(&number);
        true
    }

    /// A message was not taken: it goes out again then.
    pub(super) fn put_back(&mut self, opening: u64, number: u64, at: Instant) {
        if self.opening == opening && self.kept.contains_key(&number) {
            self.later.insert((at, number));
            self.wake.notify_one();
        }
    }
}
