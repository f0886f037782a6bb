//! The thread that talks to the database.
//!
//! Callers block, inside of an async runtime or outside of one. So the connections live on a thread
//! of their own with a runtime of its own, and nothing of it ever runs or is dropped on a caller's.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use tokio_postgres::Client;

use super::failure::Failure;
use super::pool::Pool;
use crate::StoreError;

pub struct Worker {
    /// Gone when the thread is to end.
    jobs: Option<UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce(Rc<Pool>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

impl Worker {
    pub fn start(pool: Pool) -> Result<Self, StoreError> {
        let (jobs, todo) = unbounded_channel();
        let thread = thread::Builder::new()
            .name("contexture-postgres".to_owned())
            .spawn(move || work(pool, todo))
            .map_err(|_| ended())?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Runs something on a connection (see [`Pool::run`]) and waits for it.
    pub fn call<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Client) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, wait) = mpsc::sync_channel(1);
        let job: Job = Box::new(move |pool| {
            Box::pin(async move {
                let _ = answer.send(pool.run(&work).await);
            })
        });
        let sent = self
            .jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            return Err(ended());
        }
        wait.recv().unwrap_or_else(|_| Err(ended()))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // It is done at once: no call is under way when this is dropped.
            let _ = thread.join();
        }
    }
}

fn work(pool: Pool, mut jobs: UnboundedReceiver<Job>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build();
    let Ok(runtime) = runtime else {
        // Whoever calls finds the other end of the channel gone.
        return;
    };
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let pool = Rc::new(pool);
        while let Some(job) = jobs.recv().await {
            tokio::task::spawn_local(job(Rc::clone(&pool)));
        }
        pool.close().await;
    });
    drop(local);
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
}

fn ended() -> StoreError {
    StoreError::Database {
        what: "the thread for the database could not start, or has ended".to_owned(),
        hint: "see whether the system lets us start threads, then open the store again".to_owned(),
    }
}
