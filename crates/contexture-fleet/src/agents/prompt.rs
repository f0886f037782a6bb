//! Prompts, and answers to what an agent asks meanwhile.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use super::{Agent, Running};
use crate::{RpcError, Updates, Why};

impl Agent {
    /// What is under way, or why it is not.
    pub(crate) fn at_work(&self) -> Result<Arc<Running>, RpcError> {
        self.running().ok_or_else(|| {
            let record = self.record();
            let what = format!(
                "`{}` does not run: it is {}",
                self.name(),
                record.state.as_str()
            );
            let what = match record.why {
                Some(why) => format!("{what}, {why}"),
                None => what,
            };
            RpcError::new(Why::Conflict, what).hint(format!("`ctx agent start {}`", self.name()))
        })
    }

    /// Sends a prompt, and gives what came of it. Whoever stops waiting calls it off.
    pub(crate) async fn prompt(
        self: &Arc<Self>,
        text: String,
        updates: Option<Updates>,
    ) -> Result<Value, RpcError> {
        let running = self.at_work()?;
        let busy = running.idle(self.name())?;
        let off = CallOff(Arc::clone(&running));
        // In a task of its own, so that what was said is written down whoever still waits for it.
        let working = tokio::spawn(async move {
            let done = run(&running, text, updates).await;
            drop(busy);
            done
        });
        let done = working.await;
        std::mem::forget(off);
        done.unwrap_or_else(|_| Err(RpcError::new(Why::Failed, "it ended in the middle")))
    }
}

impl Running {
    /// Its turn for one prompt, unless it works on another.
    pub(super) fn idle(&self, name: &str) -> Result<OwnedMutexGuard<()>, RpcError> {
        Arc::clone(&self.busy).try_lock_owned().map_err(|_| {
            let what = format!("`{name}` works on another prompt");
            let hint = format!("wait for it, or `ctx agent cancel {name}`");
            RpcError::new(Why::Conflict, what).hint(hint)
        })
    }
}

/// Cancels a prompt that nobody waits for.
struct CallOff(Arc<Running>);

impl Drop for CallOff {
    fn drop(&mut self) {
        cancel(&self.0);
    }
}

/// Calls off what an agent does.
pub(crate) fn cancel(running: &Running) {
    running.connection.cancel(&running.own_session_id);
    running.desk.dismiss();
}

async fn run(running: &Running, text: String, updates: Option<Updates>) -> Result<Value, RpcError> {
    let began = Instant::now();
    let delivery = running.context().delivery();
    let sections = delivery.sections.clone();
    running.desk.hear(&text, sections, updates).await?;
    running.context().delivered(&delivery);
    let mut blocks: Vec<Value> = delivery.block.clone().into_iter().collect();
    blocks.push(json!({"type": "text", "text": text}));
    let ended = running
        .connection
        .prompt(&running.own_session_id, blocks)
        .await;
    let error = ended.as_ref().err().map(ToString::to_string);
    let reason = match (&ended, &error) {
        (Ok(ended), _) => Ok(ended.stop_reason.as_str()),
        (Err(_), error) => Err(error.as_deref().unwrap_or_default()),
    };
    let finished = running.desk.finish(reason).await;
    let failure = match &finished {
        Ok((end, _)) => end.failure.as_deref(),
        Err(error) => Some(error.message.as_str()),
    };
    let told = failure.unwrap_or_else(|| reason.unwrap_or_default());
    let usage = ended.as_ref().ok().and_then(|ended| ended.usage.clone());
    running.desk.tell_ended(told, began.elapsed(), usage);
    let (end, said) = finished?;
    if end.counts() {
        running.context().heard(delivery);
    }
    let ended = ended?;
    if let Some(failure) = end.failure {
        return Err(RpcError::new(
            Why::Failed,
            format!("the turn failed: {failure}"),
        ));
    }
    let mut done = json!({
        "sessionId": running.session_id,
        "stopReason": ended.stop_reason,
        "text": said,
    });
    if let Some(usage) = ended.usage {
        done["usage"] = usage;
    }
    Ok(done)
}
