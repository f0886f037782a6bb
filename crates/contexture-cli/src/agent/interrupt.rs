use std::sync::{Arc, Mutex, PoisonError};

use contexture_agent::Cancel;
use tokio::signal::unix::{SignalKind, signal};

use crate::view::Screen;

/// Ctrl-C, for as long as the program runs: stops what is under way.
#[derive(Clone, Default)]
pub struct Interrupt {
    under_way: Arc<Mutex<Option<Cancel>>>,
}

impl Interrupt {
    /// Listens from now on. The first Ctrl-C stops what is under way and leaves a whole log; a second
    /// one does not wait for that.
    pub fn listen(screen: &Arc<Screen>) -> Self {
        let interrupt = Self::default();
        let (under_way, screen) = (Arc::clone(&interrupt.under_way), Arc::clone(screen));
        // Here and not in the task: the line editor puts back what it found, so it must find this.
        let pressed = signal(SignalKind::interrupt());
        tokio::spawn(async move {
            let Ok(mut pressed) = pressed else { return };
            while pressed.recv().await.is_some() {
                let cancel = under_way
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone();
                match cancel {
                    Some(cancel) if cancel.is_cancelled() => {
                        screen.restore();
                        std::process::exit(130);
                    }
                    Some(cancel) => cancel.cancel(),
                    None => {}
                }
            }
        });
        interrupt
    }

    /// What Ctrl-C stops from now on.
    pub fn starts(&self) -> Cancel {
        let cancel = Cancel::default();
        self.set(Some(cancel.clone()));
        cancel
    }

    /// It is over.
    pub fn ends(&self) {
        self.set(None);
    }

    fn set(&self, cancel: Option<Cancel>) {
        *self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = cancel;
    }
}
