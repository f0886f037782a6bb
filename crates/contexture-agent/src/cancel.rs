use std::sync::Arc;

use tokio::sync::watch;

/// A way to stop a run, from anywhere: Ctrl-C, a closed connection.
#[derive(Clone)]
pub struct Cancel {
    flag: Arc<watch::Sender<bool>>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self {
            flag: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Cancel {
    /// Stops the run. Saying it twice is saying it once.
    pub fn cancel(&self) {
        self.flag.send_replace(true);
    }

    /// Whether it was stopped.
    pub fn is_cancelled(&self) -> bool {
        *self.flag.borrow()
    }

    /// Waits until it is.
    pub async fn cancelled(&self) {
        let mut flag = self.flag.subscribe();
        // The sender is ours: it cannot go away before we do.
        let _ = flag.wait_for(|stopped| *stopped).await;
    }
}
