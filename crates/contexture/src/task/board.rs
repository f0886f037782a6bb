use super::{BoardEvent, TaskChange, TaskError, Tasks};
use crate::pool::{Change, Pool};

/// A pool, and the tasks that are handed out to it.
///
/// What is done to it is noted, until [`Board::take_news`] takes it to be logged. Where it could not be logged, it did
/// not happen: the board is thrown away and read anew.
#[derive(Debug, Clone, Default)]
pub struct Board {
    pool: Pool,
    tasks: Tasks,
    news: Vec<BoardEvent>,
}

impl Board {
    /// The pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The tasks.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Takes in what the log says.
    pub fn follow(&mut self, event: &BoardEvent) -> Result<(), TaskError> {
        match event {
            BoardEvent::Pool(event) => Ok(self.pool.apply(event)?),
            BoardEvent::Task(event) => self.tasks.apply(event),
        }
    }

    /// What happened and is not logged yet.
    pub fn take_news(&mut self) -> Vec<BoardEvent> {
        std::mem::take(&mut self.news)
    }

    /// Has something happen to the pool.
    pub fn change(&mut self, change: Change, at: &str) -> Result<(), TaskError> {
        self.happen(BoardEvent::Pool(change.at(at)))
    }

    pub(super) fn task(&mut self, change: TaskChange, at: &str) -> Result<(), TaskError> {
        self.happen(BoardEvent::Task(change.at(at)))
    }

    fn happen(&mut self, event: BoardEvent) -> Result<(), TaskError> {
        self.follow(&event)?;
        self.news.push(event);
        Ok(())
    }
}

impl From<Pool> for Board {
    fn from(pool: Pool) -> Self {
        Self {
            pool,
            ..Self::default()
        }
    }
}
