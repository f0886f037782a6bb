use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::timeout;

use super::calls::Calls;

/// The longest id of a session.
const LONGEST_ID: usize = 256;
/// How long an agent may take to stop when it was told to.
const SETTLE: Duration = Duration::from_secs(30);

/// The sessions of a connection. What an agent says of any other is not listened to.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

/// One of them.
pub(super) struct Session {
    /// Held while a prompt is not answered.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Whether the turn was called off.
    called_off: AtomicBool,
    /// How often turns were called off.
    times: watch::Sender<usize>,
    calls: Mutex<Calls>,
}

impl Sessions {
    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.all().get(id).cloned()
    }

    /// Adds a session, if its id can be one. One that is there stays as it is.
    pub fn open(&self, id: &str) -> bool {
        if id.is_empty() || id.len() > LONGEST_ID || id.contains(char::is_control) {
            return false;
        }
        let mut all = self.all();
        all.entry(id.to_owned()).or_insert_with(|| {
            Arc::new(Session {
                turn: Arc::default(),
                called_off: AtomicBool::new(false),
                times: watch::Sender::new(0),
                calls: Mutex::default(),
            })
        });
        true
    }

    pub fn close(&self, id: &str) {
        self.all().remove(id);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Begins a turn, if there is none. One that was called off is waited for, but not for ever.
    pub async fn begin(&self) -> Option<OwnedMutexGuard<()>> {
        let free = Arc::clone(&self.turn).try_lock_owned().ok();
        let turn = match free {
            None if self.called_off.load(Ordering::Acquire) => {
                let waiting = Arc::clone(&self.turn).lock_owned();
                timeout(SETTLE, waiting).await.ok()
            }
            free => free,
        }?;
        self.called_off.store(false, Ordering::Release);
        Some(turn)
    }

    /// The turn is called off.
    pub fn call_off(&self) {
        self.called_off.store(true, Ordering::Release);
        self.times.send_modify(|times| *times += 1);
    }

    /// The calls that it has announced.
    pub fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the turn was called off: an agent may ask before it has heard of it.
    pub fn is_called_off(&self) -> bool {
        self.called_off.load(Ordering::Acquire)
    }

    /// Resolves when a turn is called off from now on.
    pub fn until_called_off(&self) -> impl Future<Output = ()> + use<> {
        let mut times = self.times.subscribe();
        async move {
            // Whoever is gone calls nothing off.
            if times.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
