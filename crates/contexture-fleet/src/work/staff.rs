//! Executors that run with the dispatcher: one worker for each, on the hub of this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use contexture::pool::{Name, NewResource, Resource};
use contexture::task::Spent;
use contexture_agent::Cancel;
use serde_json::Value;

use super::{Came, Executor, Job, Worker, WorkerOptions, Working};
use crate::fleet::Fleet;

/// Does tasks with what the fleet has: an agent of the executor's name, else the native loop.
struct Staff {
    fleet: Weak<Fleet>,
    native: Option<Arc<dyn Executor>>,
}

impl Fleet {
    /// Hands out tasks, with an executor in this process for each of the pool that runs here, until `stop`.
    pub async fn work(self: &Arc<Self>, native: Option<Arc<dyn Executor>>, stop: Cancel) {
        let staff: Arc<dyn Executor> = Arc::new(Staff {
            fleet: Arc::downgrade(self),
            native,
        });
        let mut at_work: BTreeMap<Name, Cancel> = BTreeMap::new();
        let mut changes = self.dispatcher.changes();
        self.staff(&staff, &mut at_work).await;
        let handing_out = tokio::spawn(Arc::clone(&self.dispatcher).run(stop.clone()));
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = changes.changed() => self.staff(&staff, &mut at_work).await,
            }
        }
        // The dispatcher first: they do not leave the pool because a process ends that they can do without.
        let _ = handing_out.await;
        for stop in at_work.values() {
            stop.cancel();
        }
    }

    /// Before it is added, so that it is not missed before it could come.
    pub(crate) fn expect(&self, resources: &[NewResource]) {
        let here = |resource: &&NewResource| {
            resource.kind.does_tasks() && !resource.worker && !self.dispatcher.is_shared()
        };
        for resource in resources.iter().filter(here) {
            self.dispatcher.expect(&resource.id);
        }
    }

    /// One worker for each executor of the pool that runs here.
    async fn staff(&self, staff: &Arc<dyn Executor>, at_work: &mut BTreeMap<Name, Cancel>) {
        if self.dispatcher.is_shared() {
            return;
        }
        let here = |resource: &&Resource| resource.kind().does_tasks() && !resource.is_worker();
        let wanted = self.dispatcher.look(move |board| {
            let wanted = board.pool().resources().filter(here);
            wanted
                .map(|resource| resource.is().clone())
                .collect::<Vec<NewResource>>()
        });
        let wanted = match wanted.await {
            Ok(wanted) => wanted,
            Err(error) => return tracing::warn!(%error, "the pool cannot be read"),
        };
        at_work.retain(|name, stop| {
            let still = wanted.iter().any(|resource| resource.id == *name);
            if !still {
                stop.cancel();
            }
            still
        });
        for resource in wanted {
            if at_work.contains_key(&resource.id) {
                continue;
            }
            let name = resource.id.clone();
            let seat = self.dispatcher.key().seat(&name, true);
            let hub = Arc::clone(self.dispatcher.hub());
            let options = WorkerOptions::default();
            let Ok(worker) = Worker::new(hub, seat, resource, Arc::clone(staff), options) else {
                continue;
            };
            self.dispatcher.expect(&name);
            let stop = Cancel::default();
            at_work.insert(name, stop.clone());
            tokio::spawn(worker.run(stop));
        }
    }
}

impl Executor for Staff {
    fn run<'a>(&'a self, job: &'a Job, cancel: &'a Cancel) -> Working<'a> {
        Box::pin(async move {
            let Some(fleet) = self.fleet.upgrade() else {
                return Came::failed("the fleet is closing", Spent::default());
            };
            if let Ok(agent) = fleet.agents.get(&job.executor) {
                drop(agent);
                return by_agent(&fleet, job, cancel).await;
            }
            drop(fleet);
            match &self.native {
                Some(native) => native.run(job, cancel).await,
                None => Came::hopeless("nobody here does tasks", Spent::default()),
            }
        })
    }
}

/// Has an agent of the fleet do it, of whatever make.
async fn by_agent(fleet: &Arc<Fleet>, job: &Job, cancel: &Cancel) -> Came {
    if job.max_tokens == Some(0) {
        return Came::hopeless("there are no tokens left for it", Spent::default());
    }
    let doing = async {
        let agent = fleet.agents.get(&job.executor)?;
        fleet.start_afresh(&agent).await?;
        let text = format!("{}\n\n{}", job.context, job.description);
        agent.prompt(text, None).await
    };
    let done = tokio::select! {
        () = cancel.cancelled() => return Came::failed("it was called off", Spent::default()),
        done = doing => done,
    };
    match done {
        Ok(done) => came(&done),
        Err(error) => Came::failed(error.to_string(), Spent::default()),
    }
}

/// What came of a prompt, as `agent.prompt` answers.
pub fn came(done: &Value) -> Came {
    let spent = spent(&done["usage"]);
    match done["stopReason"].as_str() {
        Some("end_turn") => Came::done(done["text"].as_str().unwrap_or_default(), spent),
        other => Came::failed(format!("it ended: {}", other.unwrap_or("?")), spent),
    }
}

/// What an agent says that it used.
fn spent(usage: &Value) -> Spent {
    let number = |key: &str| usage[key].as_u64();
    let parts = || Some(number("inputTokens")?.saturating_add(number("outputTokens")?));
    Spent {
        tokens: number("totalTokens").or_else(parts).unwrap_or_default(),
        cost_micros: 0,
    }
}
