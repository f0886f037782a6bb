//! The engine on its thread: it takes requests one by one, and tells what comes of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::{LogOptions, send_logs_to_tracing};
use tokio::sync::mpsc::UnboundedSender;

use super::ask::Ask;
use super::vocabulary::Vocabulary;
use super::worker::Worker;
use super::{LocalError, Size};
use crate::{Delta, ModelError, Reply};

/// llama.cpp, which is set up once for the process.
pub(super) fn backend() -> Result<&'static LlamaBackend, LocalError> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let made = BACKEND.get_or_init(|| {
        send_logs_to_tracing(LogOptions::default().with_logs_enabled(false));
        LlamaBackend::init().map_err(|error| error.to_string())
    });
    made.as_ref()
        .map_err(|what| LocalError::engine("llama.cpp cannot be set up", what))
}

/// What an engine says while it works.
pub(super) enum News {
    Delta(Delta),
    Done(Box<Result<Reply, ModelError>>),
}

/// A request that waits for its answer.
pub(super) struct Job {
    pub ask: Ask,
    pub news: UnboundedSender<News>,
}

/// A model at work on a thread of its own.
pub(super) struct Engine {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Engine {
    /// Starts one, and waits until it is ready.
    pub fn start(
        model: Arc<LlamaModel>,
        vocabulary: Arc<Vocabulary>,
        size: Size,
    ) -> Result<Self, LocalError> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (ready, is_ready) = mpsc::sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("model".to_owned())
            .spawn(move || {
                let made = Worker::new(&model, &vocabulary, size, &stopped);
                let mut worker = match made {
                    Ok(worker) => {
                        let _ = ready.send(Ok(()));
                        worker
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                        return;
                    }
                };
                while let Ok(job) = todo.recv() {
                    worker.work(&job);
                }
            })
            .map_err(|error| LocalError::engine("no thread for it", error))?;
        let gone = |error| LocalError::engine("the engine ended", error);
        is_ready.recv().map_err(gone)??;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            stop,
        })
    }

    /// Has a request answered. Whoever no longer listens calls it off.
    pub fn ask(&self, ask: Ask, news: UnboundedSender<News>) {
        // An engine that is gone drops the request, and whoever listens hears that.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(Job { ask, news });
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        // It ends between two chunks. A process that exits while it computes would tear the ground
        // from under it.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
