use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;

use contexture::task::Spent;
use contexture_agent::Cancel;

/// Does tasks: an agent's loop, another program's agent, or whatever is given one.
pub trait Executor: Send + Sync + 'static {
    /// Does a task. When it is cancelled, it ends soon; when it is dropped, at once.
    fn run<'a>(&'a self, job: &'a Job, cancel: &'a Cancel) -> Working<'a>;
}

/// A task under way.
pub type Working<'a> = Pin<Box<dyn Future<Output = Came> + Send + 'a>>;

/// A task, as whoever does it gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which.
    pub task_id: String,
    /// For which time.
    pub attempt: u32,
    /// Who does it: the resource.
    pub executor: String,
    /// What is to be done.
    pub description: String,
    /// Its id in the tracker of work.
    pub bd_task_id: Option<String>,
    /// What holds now: the pool, the task, what the orchestrator has to say.
    pub context: String,
    /// The tools that it may use; nothing: all that it has.
    pub tools: Option<BTreeSet<String>>,
    /// Those of them that the task takes: without one of these it cannot be done.
    pub needs: BTreeSet<String>,
    /// The most tokens.
    pub max_tokens: Option<u64>,
    /// The most money, in millionths of a dollar.
    pub max_cost_micros: Option<u64>,
}

/// What came of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    /// The result; or why there is none, and whether another try may help.
    pub of: Result<String, (String, bool)>,
    /// What it cost.
    pub spent: Spent,
}

impl Came {
    /// A result.
    pub fn done(result: impl Into<String>, spent: Spent) -> Self {
        Self {
            of: Ok(result.into()),
            spent,
        }
    }

    /// An error that another try may pass.
    pub fn failed(error: impl Into<String>, spent: Spent) -> Self {
        Self {
            of: Err((error.into(), true)),
            spent,
        }
    }

    /// An error that another try would meet again.
    pub fn hopeless(error: impl Into<String>, spent: Spent) -> Self {
        Self {
            of: Err((error.into(), false)),
            spent,
        }
    }
}
