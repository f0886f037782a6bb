use super::{Board, Now, Recall, Refusal, Spent, State, TaskChange, TaskError};
use crate::pool::{Change, Locale, Name, NewResource, Status};

/// How long until the second attempt; twice as long each time.
const FIRST_WAIT: u64 = 1_000;
/// The longest wait between two attempts.
const LONGEST_WAIT: u64 = 60_000;
/// The most of a result that is kept, in bytes. More belongs into files.
const RESULT: usize = 256_000;
/// The most of an error.
const ERROR: usize = 2_000;

/// A word of an executor's.
#[derive(Debug, Clone, Copy)]
pub struct Word<'a> {
    /// Of which task.
    pub task: &'a str,
    /// Of which attempt.
    pub attempt: u32,
    /// Whose: who it is was proven.
    pub by: &'a Name,
    /// Which process of its.
    pub instance: &'a str,
}

impl Board {
    /// An executor begins, and is told what holds now. It may ask twice.
    pub fn claim(
        &mut self,
        word: Word<'_>,
        locale: Locale,
        now: &Now,
    ) -> Result<Result<String, Refusal>, TaskError> {
        let state = match self.theirs(word.task, word.attempt, word.by.as_str()) {
            Ok(state) => state,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if state == State::Dispatched {
            let held: Vec<Name> = self
                .pool()
                .held_by(word.task)
                .map(|r| r.id().clone())
                .collect();
            for id in held {
                let task_id = word.task.to_owned();
                self.change(Change::Started { id, task_id }, &now.at)?;
            }
            let task = self.tasks().known(word.task)?;
            let context = self.context(task, locale, &now.at).ok();
            let change = TaskChange::Started {
                task_id: word.task.to_owned(),
                attempt: word.attempt,
                instance: word.instance.to_owned(),
                context: context.filter(|context| task.context() != Some(context)),
            };
            self.task(change, &now.at)?;
        }
        let task = self.tasks().known(word.task)?;
        Ok(match task.instance() == Some(word.instance) {
            true => Ok(task.context().unwrap_or_default().to_owned()),
            false => Err(Refusal::OtherInstance),
        })
    }

    /// An executor is done. The first word that counts is the one that stays.
    pub fn finish(
        &mut self,
        word: Word<'_>,
        result: &str,
        spent: Spent,
        now: &Now,
    ) -> Result<Result<Vec<Recall>, Refusal>, TaskError> {
        if let Err(refusal) = self.begun(word) {
            return Ok(Err(refusal));
        }
        let change = TaskChange::Finished {
            task_id: word.task.to_owned(),
            attempt: word.attempt,
            result: beginning(result, RESULT),
            spent,
        };
        self.task(change, &now.at)?;
        self.release(word.task, true, now)?;
        Ok(Ok(self.cancel_parts(
            word.task,
            "the whole is over",
            now,
        )?))
    }

    /// An executor could not do it.
    pub fn fail(
        &mut self,
        word: Word<'_>,
        error: &str,
        retry: bool,
        spent: Spent,
        now: &Now,
    ) -> Result<Result<Vec<Recall>, Refusal>, TaskError> {
        if let Err(refusal) = self.begun(word) {
            return Ok(Err(refusal));
        }
        let wait = FIRST_WAIT.saturating_mul(1 << (word.attempt.clamp(1, 8) - 1));
        let wait = retry.then_some(wait.min(LONGEST_WAIT));
        Ok(Ok(self.failed(word.task, error, spent, wait, now)?))
    }

    /// What is out for longer than it may be.
    pub fn overdue(&mut self, now: &Now) -> Result<Vec<Recall>, TaskError> {
        let mut recalls = Vec::new();
        while let Some((deadline, id)) = self.tasks().out.first().cloned()
            && deadline <= now.millis
        {
            let task = self.tasks().known(&id)?;
            recalls.extend(Recall::of(task));
            let error = format!("took longer than {} s", task.limits().seconds);
            recalls.extend(self.failed(&id, &error, Spent::default(), Some(FIRST_WAIT), now)?);
        }
        Ok(recalls)
    }

    /// A resource is gone. What it had to do is done by somebody else.
    pub fn lost(&mut self, id: &Name, why: &str, now: &Now) -> Result<Vec<Recall>, TaskError> {
        let Some(resource) = self.pool().get(id.as_str()) else {
            return Ok(Vec::new());
        };
        let had = resource.task().map(str::to_owned);
        if resource.status().is_in_service() {
            let (id, error) = (id.clone(), beginning(why, ERROR));
            self.change(Change::Failed { id, error }, &now.at)?;
        }
        match had {
            Some(task) if self.tasks().get(&task).is_some_and(|t| t.state().is_out()) => {
                let error = format!("its executor was lost: {why}");
                self.failed(&task, &error, Spent::default(), Some(0), now)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// A resource says that it is here: it takes work from now on, unless its owner retired it.
    pub fn join(&mut self, resource: &NewResource, now: &Now) -> Result<(), TaskError> {
        let id = resource.id.clone();
        let known = self.pool().get(id.as_str());
        if known.is_some_and(|known| known.is_retired()) {
            return Ok(());
        }
        let change = match known.map(|known| known.status()) {
            None => Change::Added {
                resource: resource.clone(),
            },
            Some(Status::Error) => Change::Recovered { id },
            Some(Status::Released) => Change::Restored { id },
            Some(_) => return Ok(()),
        };
        self.change(change, &now.at)
    }

    /// A resource goes, for good or until it comes again. What it had to do is done by somebody else.
    pub fn leave(
        &mut self,
        id: &Name,
        for_good: bool,
        now: &Now,
    ) -> Result<Vec<Recall>, TaskError> {
        let held = self
            .pool()
            .get(id.as_str())
            .is_some_and(|r| r.status().is_held());
        let recalls = match held {
            true => self.lost(id, "it left", now)?,
            false => Vec::new(),
        };
        let status = self
            .pool()
            .get(id.as_str())
            .map(|resource| resource.status());
        let id = id.clone();
        match status {
            Some(Status::Available) if for_good => self.change(Change::Removed { id }, &now.at)?,
            Some(Status::Available | Status::Error) => {
                let by_owner = false;
                self.change(Change::Retired { id, by_owner }, &now.at)?;
            }
            _ => {}
        }
        Ok(recalls)
    }

    /// Puts right what no single program could leave so: a resource that is held for a task which is not out.
    pub fn reconcile(&mut self, now: &Now) -> Result<(), TaskError> {
        let held = self.pool().resources().filter_map(|resource| {
            let task = resource.task()?;
            let out = self.tasks().get(task).is_some_and(|t| t.state().is_out());
            (!out).then(|| task.to_owned())
        });
        let tasks: Vec<String> = held.collect();
        for task in tasks {
            self.release(&task, false, now)?;
        }
        Ok(())
    }

    /// An attempt failed: it is tried again after a wait, where there is one and attempts are left.
    fn failed(
        &mut self,
        id: &str,
        error: &str,
        spent: Spent,
        wait: Option<u64>,
        now: &Now,
    ) -> Result<Vec<Recall>, TaskError> {
        let task = self.tasks().known(id)?;
        let (attempt, most) = (task.attempt(), task.limits().attempts);
        let wait = wait.filter(|_| attempt < most);
        let change = TaskChange::Failed {
            task_id: id.to_owned(),
            attempt,
            error: beginning(error, ERROR),
            spent,
            retry_at: wait.map(|wait| now.millis + wait),
        };
        self.task(change, &now.at)?;
        self.release(id, false, now)?;
        self.cancel_parts(id, "the whole failed", now)
    }

    fn begun(&self, word: Word<'_>) -> Result<(), Refusal> {
        let state = self.theirs(word.task, word.attempt, word.by.as_str())?;
        let task = self.tasks().get(word.task).ok_or(Refusal::Unknown)?;
        match (state, task.instance() == Some(word.instance)) {
            (State::Running, true) => Ok(()),
            (State::Running, false) => Err(Refusal::OtherInstance),
            _ => Err(Refusal::NotBegun),
        }
    }
}

fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n[cut: {} bytes in all]", &text[..end], text.len())
}
