use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{Board, Now, Spent, Task, TaskChange, TaskError};
use crate::pool::{
    Change, ContextOptions, Locale, Matching, Name, Outcome, Requirement, Resource, ResourceType,
    Status,
};
use crate::{ContextError, pool};

/// A task that was handed out: its executor is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// Which.
    pub task_id: String,
    /// Which attempt.
    pub attempt: u32,
    /// To whom.
    pub executor: Name,
}

/// An attempt that no longer counts: its executor is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recall {
    /// Which task.
    pub task_id: String,
    /// Which attempt.
    pub attempt: u32,
    /// Who has it.
    pub executor: Name,
}

impl Recall {
    /// Of a task that is out.
    pub(super) fn of(task: &Task) -> Option<Self> {
        let executor = task.executor().filter(|_| task.state().is_out())?;
        Some(Self {
            task_id: task.id().to_owned(),
            attempt: task.attempt(),
            executor: executor.clone(),
        })
    }
}

/// Why a task waits.
#[derive(Clone)]
struct Lack {
    missing: Vec<Name>,
    why: String,
}

/// Why a task is blocked: the spec's word for that nobody can take it now.
const SHORTAGE: &str = "resource_shortage";

impl Board {
    /// Hands out what can be handed out, in the order of turns. What cannot is blocked, with what it waits for; one
    /// that cannot does not stop the others.
    pub fn dispatch(&mut self, locale: Locale, now: &Now) -> Result<Vec<Handed>, TaskError> {
        let mut handed = Vec::new();
        // What is taken only becomes more: who found nobody finds nobody later in the same round.
        let mut short: HashMap<Arc<str>, Lack> = HashMap::new();
        let turns: Vec<String> = self
            .tasks()
            .waiting
            .iter()
            .map(|turn| turn.2.clone())
            .collect();
        for id in turns {
            let Some(task) = self.tasks().get(&id) else {
                continue;
            };
            if task.retry_at.is_some_and(|at| at > now.millis) {
                continue;
            }
            if self.tasks().left(&id).max_tokens == Some(0) {
                self.give_up(&id, "there are no tokens left for it", now)?;
                continue;
            }
            let wants = Arc::clone(&task.wants);
            let lack = match short.get(&wants) {
                Some(lack) => Some(lack.clone()),
                None => match self.chosen(task) {
                    Ok((executor, resources)) => {
                        match self.hand(&id, executor, resources, locale, now) {
                            Ok(out) => handed.push(out),
                            // One that cannot be told to anybody must not hold up the others.
                            Err(error @ TaskError::Invalid { .. }) => {
                                self.release(&id, false, now)?;
                                self.give_up(&id, &error.to_string(), now)?;
                            }
                            Err(error) => return Err(error),
                        }
                        None
                    }
                    Err(lack) => Some(short.entry(wants).or_insert(lack).clone()),
                },
            };
            if let Some(lack) = lack {
                self.block(&id, lack, now)?;
            }
        }
        Ok(handed)
    }

    /// When something is due by itself, in milliseconds since 1970: a deadline, or another attempt.
    pub fn next_due(&self) -> Option<u64> {
        let tasks = self.tasks();
        let deadline = tasks.out.first().map(|(at, _)| *at);
        let waiting = tasks.waiting.iter().filter_map(|turn| tasks.get(&turn.2));
        let retries = waiting.filter_map(|task| task.retry_at);
        retries.chain(deadline).min()
    }

    /// What a task's executor is told of the pool and of its task.
    pub fn context(&self, task: &Task, locale: Locale, at: &str) -> Result<String, ContextError> {
        let is = task.is();
        let options = ContextOptions {
            task_id: Some(is.id.clone()),
            task_description: Some(is.description.clone()),
            required_capabilities: is.requires.iter().map(|r| r.capability.clone()).collect(),
            bd_task_id: is.bd_task_id.clone(),
            orchestrator_note: is.note.clone(),
        };
        self.pool().agent_context(options, at)?.render(locale)
    }

    /// Who does it, and with what.
    fn chosen(&self, task: &Task) -> Result<(Name, BTreeSet<Name>), Lack> {
        let is = task.is();
        if let Some(to) = &is.to {
            self.is_free(to, task)?;
        }
        let mut matching = self.pool().matching(&is.requires);
        if let Some(to) = is.to.as_ref().and_then(|to| self.pool().get(to.as_str())) {
            prefer(&mut matching, &is.requires, to);
        }
        if !matching.is_met() {
            return Err(lacking(&matching));
        }
        let mut resources: BTreeSet<Name> = matching.resources().into_iter().cloned().collect();
        let found = matching
            .outcomes
            .iter()
            .filter_map(|outcome| match outcome {
                Outcome::Found(found) => self.pool().get(found.resource.as_str()),
                Outcome::Missing(_) => None,
            });
        let executor = match &is.to {
            Some(to) => Some(to.clone()),
            None => {
                let mut does = found.filter(|resource| resource.kind().does_tasks());
                does.next().map(|resource| resource.id().clone())
            }
        };
        let executor = match executor {
            Some(executor) => executor,
            None => self.any_executor()?,
        };
        resources.insert(executor.clone());
        Ok((executor, resources))
    }

    /// Whether the one that was chosen can take it.
    fn is_free(&self, to: &Name, task: &Task) -> Result<(), Lack> {
        let why = match self.pool().get(to.as_str()) {
            None => format!("there is no resource `{to}`"),
            Some(resource) if !resource.kind().does_tasks() => {
                format!(
                    "`{to}` is of type `{}`, which does no tasks",
                    resource.kind().as_str()
                )
            }
            Some(resource) if resource.status() != Status::Available => {
                format!("`{to}` is {}", resource.status().as_str())
            }
            Some(_) => return Ok(()),
        };
        let missing = task.is().requires.iter().map(|r| r.capability.clone());
        Err(Lack {
            missing: missing.collect(),
            why,
        })
    }

    /// Of the free executors the one that failed least, for what takes no agent in particular.
    fn any_executor(&self) -> Result<Name, Lack> {
        let free = self.pool().resources().filter(|resource| {
            resource.kind() == ResourceType::Executor && resource.status() == Status::Available
        });
        let best = free.min_by_key(|resource| (resource.error_count(), resource.id()));
        let best = best.map(|resource| resource.id().clone());
        best.ok_or_else(|| Lack {
            missing: Vec::new(),
            why: "no executor is free".to_owned(),
        })
    }

    fn hand(
        &mut self,
        id: &str,
        executor: Name,
        resources: BTreeSet<Name>,
        locale: Locale,
        now: &Now,
    ) -> Result<Handed, TaskError> {
        for resource in &resources {
            let (id, task) = (resource.clone(), pool::Task::new(id));
            self.change(Change::Allocated { id, task }, &now.at)?;
        }
        let task = self.tasks().known(id)?;
        let attempt = task.attempt().saturating_add(1);
        // A board of another version may hold any number.
        let seconds = task.limits().seconds.saturating_mul(1_000);
        let deadline = now.millis.saturating_add(seconds);
        let context = self.context(task, locale, &now.at);
        let context = context.map_err(|error| TaskError::Invalid {
            what: error.to_string(),
            hint: "the pool's table must have room for the task's own words",
        })?;
        let task_id = id.to_owned();
        let change = TaskChange::Dispatched {
            task_id: task_id.clone(),
            attempt,
            executor: executor.clone(),
            resources,
            deadline,
            context,
        };
        self.task(change, &now.at)?;
        Ok(Handed {
            task_id,
            attempt,
            executor,
        })
    }

    fn block(&mut self, id: &str, lack: Lack, now: &Now) -> Result<(), TaskError> {
        let task = self.tasks().known(id)?;
        let Lack { missing, why } = lack;
        // Said once: who is busy with what changes all the time.
        if task.reason.as_deref() == Some(SHORTAGE) && task.missing == missing {
            return Ok(());
        }
        let change = TaskChange::Blocked {
            task_id: id.to_owned(),
            reason: SHORTAGE.to_owned(),
            missing,
            why,
        };
        self.task(change, &now.at)
    }

    /// Fails a task for good, before it was handed out again.
    fn give_up(&mut self, id: &str, error: &str, now: &Now) -> Result<(), TaskError> {
        let attempt = self.tasks().known(id)?.attempt();
        let change = TaskChange::Failed {
            task_id: id.to_owned(),
            attempt,
            error: error.to_owned(),
            spent: Spent::default(),
            retry_at: None,
        };
        self.task(change, &now.at)
    }
}

/// The one that was chosen does itself what it can.
fn prefer(matching: &mut Matching, requires: &[Requirement], to: &Resource) {
    for (outcome, requirement) in matching.outcomes.iter_mut().zip(requires) {
        if let Outcome::Found(found) = outcome
            && let Some(level) = to.can().get(&found.capability)
            && *level >= requirement.min_level
            && requirement.kind.is_none_or(|kind| kind == to.kind())
        {
            found.resource = to.id().clone();
            found.level = *level;
        }
    }
}

fn lacking(matching: &Matching) -> Lack {
    let short = matching
        .shortages()
        .filter(|short| !short.requirement.optional);
    let (mut missing, mut why) = (Vec::new(), Vec::new());
    for shortage in short {
        missing.push(shortage.requirement.capability.clone());
        why.push(shortage.to_string());
    }
    Lack {
        missing,
        why: why.join("; "),
    }
}
