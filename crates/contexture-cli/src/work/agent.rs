//! Tasks by an agent of the project's, of whatever make.

use std::sync::Arc;

use contexture::task::Spent;
use contexture_agent::Cancel;
use contexture_fleet::work::{Came, Executor, Job, Working};
use serde_json::json;

use crate::error::CliError;
use crate::fleet::Reach;

/// Has an agent do tasks: each is a prompt.
pub struct ByAgent {
    fleet: Arc<Reach>,
    name: String,
}

impl ByAgent {
    /// The agent of this name.
    pub fn new(fleet: Arc<Reach>, name: &str) -> Self {
        Self {
            fleet,
            name: name.to_owned(),
        }
    }

    async fn prompt(&self, job: &Job) -> Result<Came, CliError> {
        let afresh = json!({"name": self.name, "newSession": true});
        self.fleet.call("agent.start", afresh).await?;
        let text = format!("{}\n\n{}", job.context, job.description);
        let prompt = json!({"name": self.name, "text": text});
        let done = self.fleet.call("agent.prompt", prompt).await?;
        Ok(contexture_fleet::work::came(&done))
    }
}

impl Executor for ByAgent {
    fn run<'a>(&'a self, job: &'a Job, cancel: &'a Cancel) -> Working<'a> {
        Box::pin(async move {
            if job.max_tokens == Some(0) {
                return Came::hopeless("there are no tokens left for it", Spent::default());
            }
            let done = tokio::select! {
                () = cancel.cancelled() => None,
                done = self.prompt(job) => Some(done),
            };
            match done {
                Some(Ok(came)) => came,
                Some(Err(error)) => Came::failed(error.to_string(), Spent::default()),
                None => {
                    let _ = self
                        .fleet
                        .call("agent.cancel", json!({"name": self.name}))
                        .await;
                    Came::failed("it was called off", Spent::default())
                }
            }
        })
    }
}
