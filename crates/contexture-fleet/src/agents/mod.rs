//! Agents: what they are, kept in the log, and their lives.
//!
//! An [`Agent`] is made once and started and stopped any number of times. What it is and in what state is
//! a stream of records of which the last one counts; what is under way lives in [`Running`]. A daemon that
//! comes back starts those again that were meant to run.

mod context;
mod desk;
mod life;
mod prompt;
mod record;
mod workspace;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::inject::AgentInstanceMeta;
use contexture_agent::clock;
use contexture_store::{Expected, From, Key, Kind, Log, Record as Line, StoreError, Stream};
use serde_json::json;

pub(crate) use life::Running;
pub(crate) use prompt::cancel;
pub use record::{Permissions, Record, Spec, State};

use crate::tokens::{hex, random};
use crate::{RpcError, Why};

/// All agents of a fleet.
pub(crate) struct Agents {
    log: Arc<dyn Log>,
    all: Mutex<BTreeMap<Key, Arc<Agent>>>,
}

/// An agent.
pub(crate) struct Agent {
    key: Key,
    log: Arc<dyn Log>,
    record: Mutex<Record>,
    running: Mutex<Option<Arc<Running>>>,
    /// Starting and stopping, one after the other.
    turn: tokio::sync::Mutex<()>,
    /// Whoever wants it stopped does not wait for its start.
    off: tokio::sync::Notify,
}

impl Agents {
    /// Reads the agents that were made before.
    pub fn open(log: Arc<dyn Log>) -> Result<Self, StoreError> {
        let mut all = BTreeMap::new();
        for info in log.list(Kind::Agent)? {
            let mut last = None;
            for line in log.read(&info.stream, From::Start)? {
                // A record that we cannot read is older or newer than we are, and another may follow.
                last = line?.read::<Record>().ok().or(last);
            }
            if let Some(mut record) = last {
                record.correct_stale_state();
                let key = info.stream.key;
                all.insert(key.clone(), Arc::new(Agent::new(key, &log, record)));
            }
        }
        Ok(Self {
            log,
            all: Mutex::new(all),
        })
    }

    /// Makes an agent.
    pub fn create(&self, spec: Spec) -> Result<Arc<Agent>, RpcError> {
        let key = Key::new(spec.name.as_str())?;
        let mut all = self.lock();
        if all.contains_key(&key) {
            let what = format!("there is an agent `{key}` already");
            return Err(RpcError::new(Why::Conflict, what)
                .hint(format!("choose another name, or `ctx agent rm {key}`")));
        }
        let agent = Arc::new(Agent::new(key.clone(), &self.log, Record::new(spec)));
        agent.write(&agent.record())?;
        all.insert(key, Arc::clone(&agent));
        Ok(agent)
    }

    /// An agent by its name.
    pub fn get(&self, name: &str) -> Result<Arc<Agent>, RpcError> {
        let all = self.lock();
        let found = Key::new(name).ok().and_then(|key| all.get(&key).cloned());
        found.ok_or_else(|| {
            let names: Vec<&str> = all.keys().map(Key::as_str).collect();
            let what = format!("there is no agent `{}`", crate::live::clipped(name));
            let hint = match contexture::text::nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`ctx agent list` shows them".to_owned(),
            };
            RpcError::new(Why::NotFound, what).hint(hint)
        })
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<Arc<Agent>> {
        self.lock().values().cloned().collect()
    }

    /// Forgets an agent that does not run. Its sessions stay in the log.
    pub fn remove(&self, agent: &Agent) -> Result<(), StoreError> {
        self.log.remove(&agent.stream())?;
        self.lock().remove(&agent.key);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Agent>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    fn new(key: Key, log: &Arc<dyn Log>, record: Record) -> Self {
        Self {
            key,
            log: Arc::clone(log),
            record: Mutex::new(record),
            running: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            off: tokio::sync::Notify::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.key.as_str()
    }

    /// What it is and in what state.
    pub fn record(&self) -> Record {
        let record = self.record.lock();
        record.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What providers are told of it.
    pub fn meta(&self) -> AgentInstanceMeta {
        self.record().meta()
    }

    /// Changes what is known of it: first in the log.
    pub fn change(&self, change: impl FnOnce(&mut Record)) -> Result<Record, StoreError> {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = record.clone();
        change(&mut next);
        next.updated_at = clock::now();
        self.write(&next)?;
        record.clone_from(&next);
        Ok(next)
    }

    /// What is under way, while it runs.
    pub fn running(&self) -> Option<Arc<Running>> {
        let running = self.running.lock();
        running.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_running(&self, running: Option<Arc<Running>>) -> Option<Arc<Running>> {
        let mut now = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut now, running)
    }

    fn write(&self, record: &Record) -> Result<(), StoreError> {
        let mut line = json!(record);
        // Two changes may come within a millisecond.
        let random = random().map_or_else(|_| String::new(), |bytes| hex(&bytes[..6]));
        line["id"] = json!(format!("{}-{random}", record.updated_at));
        self.log
            .append(&self.stream(), Expected::Any, &[Line::new(&line)?])?;
        Ok(())
    }

    fn stream(&self) -> Stream {
        Stream::new(Kind::Agent, self.key.clone())
    }
}
