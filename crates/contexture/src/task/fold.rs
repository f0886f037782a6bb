use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::{Limits, NewTask, Spent, State, TaskChange, TaskError, TaskEvent};
use crate::pool::Name;
use crate::text::nearest;

/// A task, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    #[serde(flatten)]
    pub(super) is: NewTask,
    pub(super) state: State,
    /// The attempt that is out, or the last that was.
    pub(super) attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) executor: Option<Name>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) resources: BTreeSet<Name>,
    #[serde(skip)]
    pub(super) instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deadline: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) missing: Vec<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
    /// By itself.
    pub(super) spent: Spent,
    /// By itself and all its parts.
    pub(super) used: Spent,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<Arc<str>>,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    #[serde(skip)]
    pub(super) number: u64,
    /// What it takes, as one text: two that say the same are matched once.
    #[serde(skip)]
    pub(super) wants: Arc<str>,
}

impl Task {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.is.id
    }

    /// What it was made as.
    pub fn is(&self) -> &NewTask {
        &self.is
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// The attempt that is out, or the last that was.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Who has it, or had it last.
    pub fn executor(&self) -> Option<&Name> {
        self.executor.as_ref()
    }

    /// The process of the executor's that began it.
    pub fn instance(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    /// How far it may go.
    pub fn limits(&self) -> &Limits {
        &self.is.limits
    }

    /// What it spent itself.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// What it and all its parts spent.
    pub fn used(&self) -> Spent {
        self.used
    }

    /// What came of it.
    pub fn result(&self) -> Option<&str> {
        self.result.as_deref()
    }

    /// Why it waits, failed or was called off.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The capabilities that it waits for.
    pub fn missing(&self) -> &[Name] {
        &self.missing
    }

    /// What its executor was told.
    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }
}

/// All tasks: a fold of events.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    all: BTreeMap<String, Task>,
    in_order: Vec<String>,
    parts: BTreeMap<String, Vec<String>>,
    /// Those that wait, in the order of their turns.
    pub(super) waiting: BTreeSet<(Reverse<i64>, u64, String)>,
    /// Those that are out, by their deadlines.
    pub(super) out: BTreeSet<(u64, String)>,
}

impl Tasks {
    /// A task.
    pub fn get(&self, id: &str) -> Option<&Task> {
        self.all.get(id)
    }

    /// A task, or an error that names one of nearly the same id.
    pub fn known(&self, id: &str) -> Result<&Task, TaskError> {
        self.get(id).ok_or_else(|| {
            let ids: Vec<&str> = self.in_order.iter().map(String::as_str).collect();
            TaskError::Unknown {
                id: id.chars().take(60).collect(),
                nearest: nearest(id, &ids).map(str::to_owned),
            }
        })
    }

    /// All of them, in the order in which they were made.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Task> {
        self.in_order.iter().filter_map(|id| self.all.get(id))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.in_order.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    /// The parts of a task, in the order in which they were made.
    pub fn parts(&self, id: &str) -> impl Iterator<Item = &Task> {
        let ids = self.parts.get(id).into_iter().flatten();
        ids.filter_map(|id| self.all.get(id))
    }

    /// Those that an executor has.
    pub fn out(&self) -> impl Iterator<Item = &Task> {
        self.out.iter().filter_map(|(_, id)| self.all.get(id))
    }

    /// Takes an event in, or says why it does not fit; then nothing is changed.
    pub(super) fn apply(&mut self, event: &TaskEvent) -> Result<(), TaskError> {
        let TaskEvent { at, change } = event;
        if let TaskChange::Created { task } = change {
            return self.add(task, at);
        }
        let task = self.known(change.task())?;
        let (from, to) = (task.state, change.leads());
        let fits = match change {
            TaskChange::Created { .. } => false,
            TaskChange::Blocked { .. } | TaskChange::Dispatched { .. } => from.is_waiting(),
            // Whoever makes a goal begins it without anybody's handing it out.
            TaskChange::Started { .. } => from == State::Dispatched || from == State::Queued,
            TaskChange::Finished { .. } => from.is_out(),
            TaskChange::Failed { .. } | TaskChange::Cancelled { .. } => !from.is_over(),
        };
        if !fits {
            let id = task.id().to_owned();
            return Err(TaskError::Transition { id, from, to });
        }
        let more = match change {
            TaskChange::Finished { spent, .. } | TaskChange::Failed { spent, .. } => *spent,
            _ => Spent::default(),
        };
        self.change(change.task(), |task| {
            task.state = to;
            at.clone_into(&mut task.updated_at);
            task.spent = task.spent.and(more);
            task.become_what(change);
        });
        let mut whole = Some(change.task().to_owned());
        while let Some(id) = whole {
            let task = self.all.get_mut(&id);
            whole = task.and_then(|task| {
                task.used = task.used.and(more);
                task.is.parent.clone()
            });
        }
        Ok(())
    }

    fn add(&mut self, new: &NewTask, at: &str) -> Result<(), TaskError> {
        let id = &new.id;
        if self.all.contains_key(id) {
            return Err(TaskError::Exists { id: id.clone() });
        }
        if let Some(parent) = &new.parent {
            self.known(parent)?;
            self.parts
                .entry(parent.clone())
                .or_default()
                .push(id.clone());
        }
        let wants = serde_json::json!([new.requires, new.to]);
        let task = Task {
            is: new.clone(),
            state: State::Queued,
            attempt: 0,
            executor: None,
            resources: BTreeSet::new(),
            instance: None,
            deadline: None,
            retry_at: None,
            reason: None,
            missing: Vec::new(),
            why: None,
            result: None,
            spent: Spent::default(),
            used: Spent::default(),
            context: None,
            created_at: at.to_owned(),
            updated_at: at.to_owned(),
            number: self.in_order.len() as u64,
            wants: wants.to_string().into(),
        };
        self.in_order.push(id.clone());
        self.index(&task);
        self.all.insert(id.clone(), task);
        Ok(())
    }

    /// Changes a task: the indexes never know it otherwise than it is.
    fn change(&mut self, id: &str, change: impl FnOnce(&mut Task)) {
        if let Some(mut task) = self.all.remove(id) {
            self.waiting.remove(&turn(&task));
            self.out.remove(&until(&task));
            change(&mut task);
            self.index(&task);
            self.all.insert(id.to_owned(), task);
        }
    }

    fn index(&mut self, task: &Task) {
        if task.state.is_waiting() {
            self.waiting.insert(turn(task));
        }
        if task.state.is_out() {
            self.out.insert(until(task));
        }
    }
}

fn turn(task: &Task) -> (Reverse<i64>, u64, String) {
    (Reverse(task.is.priority), task.number, task.is.id.clone())
}

fn until(task: &Task) -> (u64, String) {
    (task.deadline.unwrap_or(u64::MAX), task.is.id.clone())
}

impl Task {
    /// What goes with another state.
    fn become_what(&mut self, change: &TaskChange) {
        if !self.state.is_out() {
            self.resources.clear();
            self.deadline = None;
            self.instance = None;
        }
        self.reason = None;
        self.missing.clear();
        self.retry_at = None;
        match change {
            TaskChange::Created { .. } => {}
            TaskChange::Blocked {
                reason,
                missing,
                why,
                ..
            } => {
                self.reason = Some(reason.clone());
                self.missing.clone_from(missing);
                self.why = Some(why.clone());
            }
            TaskChange::Dispatched {
                attempt,
                executor,
                resources,
                deadline,
                context,
                ..
            } => {
                self.attempt = *attempt;
                self.executor = Some(executor.clone());
                self.resources.clone_from(resources);
                self.deadline = Some(*deadline);
                self.context = Some(context.as_str().into());
                self.why = None;
            }
            TaskChange::Started {
                attempt,
                instance,
                context,
                ..
            } => {
                self.attempt = *attempt;
                self.instance = Some(instance.clone());
                if let Some(context) = context {
                    self.context = Some(context.as_str().into());
                }
                self.why = None;
            }
            TaskChange::Finished { result, .. } => {
                self.result = Some(result.clone());
                self.why = None;
            }
            TaskChange::Failed {
                error, retry_at, ..
            } => {
                self.retry_at = *retry_at;
                self.why = Some(error.clone());
            }
            TaskChange::Cancelled { why, .. } => self.why = Some(why.clone()),
        }
    }
}
