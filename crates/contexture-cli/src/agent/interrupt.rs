use std::sync::{Arc, Mutex, PoisonError};

use contexture_agent::Cancel;

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
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
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
