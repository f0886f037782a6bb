//! Tells everyone who listens what happened, in one order.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_agent::clock;
use contexture_tools::secrets::mask::Mask;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::Event;

/// How many events are remembered for whoever comes back after a short absence, and how far somebody may
/// fall behind.
const REMEMBERED: usize = 1_024;
/// The most memory that what is remembered takes.
const MAX_REMEMBERED_BYTES: usize = 16 << 20;

/// An event, with its place in the order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Happened {
    /// Its number, from 1, in the order of this process.
    pub id: u64,
    /// When.
    pub at: String,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// The event bus. Telling never waits: who is too slow misses something, and learns how much. Nothing that it tells
/// holds a secret: whatever happens is masked here, once for everybody who listens.
pub struct Bus {
    mask: Arc<dyn Mask>,
    state: Mutex<State>,
    everyone: broadcast::Sender<Arc<Happened>>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    recent: VecDeque<Arc<Happened>>,
    /// The memory that these take.
    held: usize,
}

/// What somebody hears.
#[derive(Debug)]
pub struct Subscription {
    before: VecDeque<Arc<Happened>>,
    live: broadcast::Receiver<Arc<Happened>>,
    missed: u64,
}

impl Default for Bus {
    fn default() -> Self {
        Self::new(Arc::new(()))
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").finish_non_exhaustive()
    }
}

impl Bus {
    /// A bus that masks what this recognises.
    pub fn new(mask: Arc<dyn Mask>) -> Self {
        Self {
            mask,
            state: Mutex::default(),
            everyone: broadcast::channel(REMEMBERED).0,
        }
    }

    /// Tells everyone.
    pub fn tell(&self, mut event: Event) {
        event.hide(&self.mask);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last += 1;
        let happened = Arc::new(Happened {
            id: state.last,
            at: clock::now(),
            event,
        });
        state.held += happened.event.held();
        state.recent.push_back(Arc::clone(&happened));
        while state.recent.len() > REMEMBERED || state.held > MAX_REMEMBERED_BYTES {
            let Some(oldest) = state.recent.pop_front() else {
                break;
            };
            state.held -= oldest.event.held();
        }
        // Under the lock, so that everyone hears the same order. Nobody listening is no error.
        let _ = self.everyone.send(happened);
    }

    /// Forgets what an agent said word by word: it is in its session's log.
    pub fn forget_updates(&self, agent: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        state.recent.retain(|happened| {
            let goes =
                matches!(&happened.event, Event::AgentUpdate { agent: of, .. } if of == agent);
            state.held -= if goes { happened.event.held() } else { 0 };
            !goes
        });
        state.recent.shrink_to_fit();
    }

    /// Listens from now on; with `after`, also to what happened behind that one and is remembered.
    pub fn subscribe(&self, after: Option<u64>) -> Subscription {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let after = after.unwrap_or(state.last).min(state.last);
        let recent = state.recent.iter();
        let before: VecDeque<_> = recent.filter(|known| known.id > after).cloned().collect();
        Subscription {
            // All of what happened since, but for what is remembered.
            missed: state.last - after - before.len() as u64,
            before,
            live: self.everyone.subscribe(),
        }
    }
}

impl Subscription {
    /// The next event; none when the fleet has ended.
    pub async fn next(&mut self) -> Option<Arc<Happened>> {
        if let Some(happened) = self.before.pop_front() {
            return Some(happened);
        }
        loop {
            match self.live.recv().await {
                Ok(happened) => return Some(happened),
                Err(broadcast::error::RecvError::Lagged(missed)) => self.missed += missed,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// How many events were missed since this was last asked.
    pub fn missed(&mut self) -> u64 {
        std::mem::take(&mut self.missed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn state(agent: &str) -> Event {
        Event::AgentState {
            agent: agent.to_owned(),
            state: "running".to_owned(),
            why: None,
        }
    }

    #[tokio::test]
    async fn who_comes_back_hears_what_was_missed_and_in_order() {
        let bus = Bus::default();
        for agent in ["a", "b", "c"] {
            bus.tell(state(agent));
        }
        let mut back = bus.subscribe(Some(1));
        bus.tell(state("d"));
        for (id, agent) in [(2, "b"), (3, "c"), (4, "d")] {
            let happened = back.next().await.unwrap();
            assert_eq!((happened.id, happened.event.agent()), (id, Some(agent)));
        }
        assert_eq!(back.missed(), 0);
        let mut new = bus.subscribe(None);
        bus.tell(state("e"));
        assert_eq!(new.next().await.unwrap().id, 5);
    }

    #[tokio::test]
    async fn who_is_too_slow_learns_how_much_was_missed() {
        let bus = Bus::default();
        let mut slow = bus.subscribe(None);
        for _ in 0..REMEMBERED + 10 {
            bus.tell(state("a"));
        }
        assert_eq!(slow.next().await.unwrap().id, 11);
        assert_eq!(slow.missed(), 10);
        drop(slow);
        // Nor is more remembered than that.
        let mut back = bus.subscribe(Some(3));
        assert_eq!((back.missed(), back.next().await.unwrap().id), (7, 11));
    }

    fn update(agent: &str, text: &str) -> Event {
        Event::AgentUpdate {
            agent: agent.to_owned(),
            session_id: "s".to_owned(),
            update: serde_json::json!({"text": text}),
        }
    }

    /// Attack 50: what is remembered is bounded by what it holds.
    #[tokio::test]
    async fn long_updates_are_remembered_for_less_time_and_those_of_an_agent_forgotten() {
        let bus = Bus::default();
        let text = "x".repeat(1 << 20);
        for _ in 0..100 {
            bus.tell(update("a", &text));
        }
        let state_of = |bus: &Bus| bus.state.lock().unwrap().recent.len();
        assert_eq!(state_of(&bus), (MAX_REMEMBERED_BYTES >> 20) - 1);
        bus.tell(state("b"));
        bus.forget_updates("c");
        assert_eq!(state_of(&bus), MAX_REMEMBERED_BYTES >> 20);
        bus.forget_updates("a");
        assert_eq!(state_of(&bus), 1);
        let mut back = bus.subscribe(Some(90));
        assert_eq!((back.missed(), back.next().await.unwrap().id), (10, 101));
    }
}
