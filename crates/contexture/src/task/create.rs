use super::{Board, Limits, NewTask, Now, Recall, Refusal, Spent, State, TaskChange, TaskError};

/// The longest description, in bytes: it is told to a model and sent in one message.
const DESCRIPTION: usize = 200_000;
/// How deep tasks may stand in tasks.
const DEPTH: usize = 16;

impl Board {
    /// Makes a task, and gives its id. To say the same under the same id again is to say it once.
    pub fn create(&mut self, mut new: NewTask, now: &Now) -> Result<String, TaskError> {
        if new.description.trim().is_empty() {
            return Err(invalid(
                "a task needs a description",
                "say what is to be done",
            ));
        }
        if new.description.len() > DESCRIPTION {
            return Err(invalid(
                &format!("a description has at most {DESCRIPTION} bytes"),
                "keep long things in files that the executor can read",
            ));
        }
        if !(1..=Limits::MAX_ATTEMPTS).contains(&new.limits.attempts) {
            return Err(invalid(
                &format!("`attempts` must be from 1 to {}", Limits::MAX_ATTEMPTS),
                "leave it out for 3",
            ));
        }
        if !(1..=Limits::MAX_SECONDS).contains(&new.limits.seconds) {
            return Err(invalid(
                &format!("`seconds` must be from 1 to {}", Limits::MAX_SECONDS),
                "leave it out for 900",
            ));
        }
        if let Some(parent) = &new.parent {
            let state = self.tasks().known(parent)?.state();
            if state.is_over() {
                let id = parent.clone();
                return Err(TaskError::Over { id, state });
            }
            if self.depth(parent) >= DEPTH {
                return Err(invalid(
                    "tasks stand too deep in tasks",
                    "give it to the whole",
                ));
            }
        }
        if new.id.is_empty() {
            new.id = self.fresh();
        } else if let Some(known) = self.tasks().get(&new.id) {
            let limits = known.limits().clone();
            let same = NewTask {
                limits,
                ..new.clone()
            };
            let id = new.id;
            return match *known.is() == same {
                true => Ok(id),
                false => Err(TaskError::Exists { id }),
            };
        }
        if let Some(parent) = &new.parent {
            new.limits = self.tasks().narrowed(&new.limits, parent);
        }
        let id = new.id.clone();
        self.task(TaskChange::Created { task: new }, &now.at)?;
        Ok(id)
    }

    /// Makes a goal: a task that whoever makes it works on, without a resource of the pool.
    pub fn begin(
        &mut self,
        description: String,
        limits: Limits,
        by: &str,
        now: &Now,
    ) -> Result<String, TaskError> {
        let new = NewTask {
            description,
            limits,
            ..NewTask::default()
        };
        let task_id = self.create(new, now)?;
        let started = TaskChange::Started {
            task_id: task_id.clone(),
            attempt: 1,
            instance: by.to_owned(),
            context: None,
        };
        self.task(started, &now.at)?;
        Ok(task_id)
    }

    /// Ends a goal, and calls off what is left of its parts: gives whom to tell.
    pub fn end(
        &mut self,
        id: &str,
        came: Result<String, String>,
        spent: Spent,
        now: &Now,
    ) -> Result<Vec<Recall>, TaskError> {
        let task = self.tasks().known(id)?;
        let (task_id, attempt, state) = (id.to_owned(), task.attempt(), task.state());
        if state.is_over() {
            return Err(TaskError::Over { id: task_id, state });
        }
        let change = match came {
            Ok(result) => TaskChange::Finished {
                task_id,
                attempt,
                result,
                spent,
            },
            Err(error) => TaskChange::Failed {
                task_id,
                attempt,
                error,
                spent,
                retry_at: None,
            },
        };
        self.task(change, &now.at)?;
        self.release(id, false, now)?;
        self.cancel_parts(id, "the whole is over", now)
    }

    /// Calls a task off, with all its parts: gives whom to tell.
    pub fn cancel(&mut self, id: &str, why: &str, now: &Now) -> Result<Vec<Recall>, TaskError> {
        let task = self.tasks().known(id)?;
        let state = task.state();
        if state.is_over() {
            let id = id.to_owned();
            return Err(TaskError::Over { id, state });
        }
        let mut recalls: Vec<Recall> = Recall::of(task).into_iter().collect();
        let change = TaskChange::Cancelled {
            task_id: id.to_owned(),
            why: why.to_owned(),
        };
        self.task(change, &now.at)?;
        self.release(id, false, now)?;
        recalls.extend(self.cancel_parts(id, why, now)?);
        Ok(recalls)
    }

    pub(super) fn cancel_parts(
        &mut self,
        id: &str,
        why: &str,
        now: &Now,
    ) -> Result<Vec<Recall>, TaskError> {
        let parts = self.tasks().parts(id);
        let left: Vec<String> = parts
            .filter(|part| !part.state().is_over())
            .map(|part| part.id().to_owned())
            .collect();
        let mut recalls = Vec::new();
        for part in left {
            recalls.extend(self.cancel(&part, why, now)?);
        }
        Ok(recalls)
    }

    /// Lets all go that a task has.
    pub(super) fn release(
        &mut self,
        id: &str,
        completed: bool,
        now: &Now,
    ) -> Result<(), TaskError> {
        for event in self.pool().release(id, completed, &now.at) {
            self.change(event.change, &event.at)?;
        }
        Ok(())
    }

    /// The first of `task-1`, `task-2`, … that nobody has.
    fn fresh(&self) -> String {
        let tasks = self.tasks();
        let mut n = tasks.len() + 1;
        loop {
            let id = format!("task-{n}");
            if tasks.get(&id).is_none() {
                return id;
            }
            n += 1;
        }
    }

    fn depth(&self, id: &str) -> usize {
        let parent = |id: &str| self.tasks().get(id)?.is().parent.as_deref();
        let mut depth = 1;
        let mut at = id;
        while let Some(above) = parent(at) {
            depth += 1;
            at = above;
        }
        depth
    }

    /// The task, if this word of an executor's counts for it.
    pub(super) fn theirs(&self, id: &str, attempt: u32, by: &str) -> Result<State, Refusal> {
        let task = self.tasks().get(id).ok_or(Refusal::Unknown)?;
        if attempt != task.attempt() {
            return Err(Refusal::Attempt {
                said: attempt,
                now: task.attempt(),
            });
        }
        if task.executor().map(|name| name.as_str()) != Some(by) {
            return Err(Refusal::NotYours { by: by.to_owned() });
        }
        match task.state() {
            state if state.is_out() => Ok(state),
            state => Err(Refusal::NotOut(state)),
        }
    }
}

fn invalid(what: &str, hint: &'static str) -> TaskError {
    TaskError::Invalid {
        what: what.to_owned(),
        hint,
    }
}
