//! The hub of one process: in its memory, and gone with it.

mod mailbox;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture::pool::Name;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::recent::{Recent, known_by};
use super::{
    Asked, Delivery, Doing, Hub, HubError, Inbox, Presence, Sent, Watch, fits, taken_over,
};
use mailbox::{MOST_KEPT, MOST_PASSING, Mailbox, Next, Passing};

/// How long a message that was dropped stays away, so that nobody spins.
const AGAIN: Duration = Duration::from_secs(1);
/// How many words on who is here wait for a slow watcher. What it misses is said again with the next beat.
const WORDS: usize = 1_024;

/// A hub in this process. Clones are the same hub.
#[derive(Clone)]
pub struct LocalHub(Arc<Shared>);

struct Shared {
    since: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Counts messages and openings.
    last: u64,
    mailboxes: HashMap<Name, Mailbox>,
    recent: Recent,
    cards: BTreeMap<Name, String>,
    watchers: Vec<mpsc::Sender<Presence>>,
}

impl Default for LocalHub {
    fn default() -> Self {
        Self(Arc::new(Shared {
            since: Instant::now(),
            state: Mutex::default(),
        }))
    }
}

impl Hub for LocalHub {
    fn send<'a>(&'a self, to: &'a Name, id: &'a str, text: String) -> Doing<'a, ()> {
        Box::pin(async move {
            fits(text.len())?;
            let mut state = self.0.state();
            let (id, now) = (known_by(to, id), std::time::Instant::now());
            if state.recent.has(&id, now) {
                return Ok(());
            }
            let number = state.next_number();
            let mailbox = state.mailboxes.entry(to.clone()).or_default();
            if mailbox.is_full() {
                return Err(HubError::Refused {
                    why: format!("{MOST_KEPT} messages wait for `{to}` already"),
                });
            }
            mailbox.keep(number, text.into());
            state.recent.add(&id, now);
            Ok(())
        })
    }

    fn ask<'a>(&'a self, to: &'a Name, text: String, patience: Duration) -> Doing<'a, String> {
        Box::pin(async move {
            fits(text.len())?;
            let (sender, answer) = oneshot::channel();
            let asked = self
                .0
                .state()
                .mailboxes
                .entry(to.clone())
                .or_default()
                .ask(text, sender);
            if !asked {
                return Err(HubError::Refused {
                    why: format!("{MOST_PASSING} questions wait for `{to}` already"),
                });
            }
            let answered = timeout(patience, answer).await;
            self.0.tidy(to);
            match answered {
                Ok(Ok(text)) => fits(text.len()).map(|()| text),
                _ => Err(HubError::NoAnswer {
                    module: to.to_string(),
                }),
            }
        })
    }

    fn broadcast(&self, text: String) -> Doing<'_, ()> {
        Box::pin(async move {
            fits(text.len())?;
            for (module, mailbox) in &mut self.0.state().mailboxes {
                if !mailbox.tell(&text) {
                    tracing::warn!(%module, "too slow for a broadcast");
                }
            }
            Ok(())
        })
    }

    fn open<'a>(&'a self, module: &'a Name) -> Doing<'a, Inbox> {
        Box::pin(async move {
            let (opening, wake) = {
                let mut state = self.0.state();
                let opening = state.next_number();
                let mailbox = state.mailboxes.entry(module.clone()).or_default();
                (opening, mailbox.open(opening))
            };
            // Room for one: what waits in here is not with the reader, and not in the mailbox either.
            let (sender, receiver) = mpsc::channel(1);
            let (shared, module) = (Arc::clone(&self.0), module.clone());
            tokio::spawn(async move {
                deliver(&shared, &module, opening, &wake, &sender).await;
                if let Some(mailbox) = shared.state().mailboxes.get_mut(&module) {
                    mailbox.close(opening);
                }
                shared.tidy(&module);
            });
            Ok(Inbox(receiver))
        })
    }

    fn beat<'a>(&'a self, module: &'a Name, card: String) -> Doing<'a, ()> {
        Box::pin(async move {
            fits(card.len())?;
            let mut state = self.0.state();
            state.cards.insert(module.clone(), card.clone());
            let module = module.clone();
            state.say(&Presence::Here { module, card });
            Ok(())
        })
    }

    fn leave<'a>(&'a self, module: &'a Name) -> Doing<'a, ()> {
        Box::pin(async move {
            let mut state = self.0.state();
            if state.cards.remove(module).is_some() {
                let module = module.clone();
                state.say(&Presence::Left { module });
            }
            Ok(())
        })
    }

    fn watch(&self) -> Doing<'_, Watch> {
        Box::pin(async move {
            let mut state = self.0.state();
            let (sender, receiver) = mpsc::channel(state.cards.len() + WORDS);
            for (module, card) in &state.cards {
                let (module, card) = (module.clone(), card.clone());
                let _ = sender.try_send(Presence::Here { module, card });
            }
            state.watchers.push(sender);
            Ok(Watch(receiver))
        })
    }

    fn there_for(&self) -> Option<Duration> {
        Some(self.0.since.elapsed())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self, module: &Name, opening: u64) -> bool {
        let state = self.state();
        let mailbox = state.mailboxes.get(module);
        mailbox.is_none_or(|mailbox| mailbox.is_over(opening))
    }

    /// Forgets a mailbox that holds nothing.
    fn tidy(&self, module: &Name) {
        let mut state = self.state();
        if let Some(mailbox) = state.mailboxes.get_mut(module) {
            mailbox.forget_given_up();
            if mailbox.is_idle() {
                state.mailboxes.remove(module);
            }
        }
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn say(&mut self, word: &Presence) {
        self.watchers.retain(|watcher| {
            !matches!(
                watcher.try_send(word.clone()),
                Err(mpsc::error::TrySendError::Closed(_))
            )
        });
    }
}

/// Brings what comes to a reader until it has gone, or somebody else reads.
async fn deliver(
    shared: &Arc<Shared>,
    module: &Name,
    opening: u64,
    wake: &Notify,
    reader: &mpsc::Sender<Delivery>,
) {
    loop {
        // Room first: what has no room yet stays in the mailbox, for whoever reads next.
        let room = tokio::select! {
            room = reader.reserve() => room,
            () = wake.notified() => {
                if shared.is_over(module, opening) {
                    return;
                }
                continue;
            }
        };
        let Ok(room) = room else {
            return;
        };
        match next(shared, module, opening, wake, reader).await {
            Some(delivery) => room.send(delivery),
            None => return,
        }
    }
}

async fn next(
    shared: &Arc<Shared>,
    module: &Name,
    opening: u64,
    wake: &Notify,
    reader: &mpsc::Sender<Delivery>,
) -> Option<Delivery> {
    loop {
        let next = shared.state().mailboxes.get_mut(module)?.next(opening);
        let again = match next {
            Next::Message(number, text) => {
                let holding = Holding {
                    shared: Arc::clone(shared),
                    module: module.clone(),
                    opening,
                    number,
                };
                return Some(Delivery::Sent(holding.into_sent(&text)));
            }
            Next::Passing(Passing::Asked(text, answer)) => {
                return Some(Delivery::Asked(Asked { text, answer }));
            }
            Next::Passing(Passing::Told(text)) => return Some(Delivery::Told(text)),
            Next::Over => return None,
            Next::At(at) => Some(at),
            Next::Nothing => None,
        };
        let due = async {
            match again {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = wake.notified() => {}
            () = reader.closed() => return None,
        }
    }
}

/// A message that is with the reader. Dropped, it comes again.
struct Holding {
    shared: Arc<Shared>,
    module: Name,
    opening: u64,
    number: u64,
}

impl Holding {
    fn into_sent(self, text: &str) -> Sent {
        Sent {
            text: text.to_owned(),
            ack: Box::new(move || Box::pin(async move { self.acknowledge() })),
        }
    }

    fn acknowledge(&self) -> Result<(), HubError> {
        let taken = match self.shared.state().mailboxes.get_mut(&self.module) {
            Some(mailbox) => mailbox.acknowledge(self.opening, self.number),
            None => false,
        };
        self.shared.tidy(&self.module);
        if taken {
            return Ok(());
        }
        Err(taken_over(&self.module))
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if let Some(mailbox) = self.shared.state().mailboxes.get_mut(&self.module) {
            mailbox.put_back(self.opening, self.number, Instant::now() + AGAIN);
        }
    }
}
