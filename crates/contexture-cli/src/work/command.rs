//! Tasks by any program.

use std::ffi::OsString;
use std::path::PathBuf;

use contexture::task::Spent;
use contexture_agent::Cancel;
use contexture_fleet::work::{Came, Executor, Job, Working};
use contexture_tools::inherit::ChildKind;
use contexture_tools::process::{Process, Program};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::error::CliError;

/// Has a program do tasks: each is its input, and what it prints is the result.
pub struct ByCommand {
    words: Vec<String>,
    folder: PathBuf,
    supervisor: Vec<OsString>,
}

/// The most of a result that is read.
const MOST: u64 = 300_000;

impl ByCommand {
    /// The program of these words, which starts in this folder.
    pub fn new(words: &[String], folder: PathBuf) -> Result<Self, CliError> {
        let us = std::env::current_exe()?;
        Ok(Self {
            words: words.to_owned(),
            folder,
            supervisor: vec![us.into(), "__supervise".into()],
        })
    }

    async fn run(&self, job: &Job) -> std::io::Result<Came> {
        let (command, args) = match self.words.split_first() {
            Some(words) => words,
            None => return Ok(Came::hopeless("there is nothing to run", Spent::default())),
        };
        let program = Program::new(ChildKind::Worker, command, &self.folder)
            .args(args)
            .env("CONTEXTURE_TASK_ID", job.task_id.as_str())
            .env("CONTEXTURE_TASK_ATTEMPT", job.attempt.to_string())
            .env("CONTEXTURE_TASK_CONTEXT", job.context.as_str())
            .supervisor(Some(&self.supervisor));
        let (process, output, mut input) = Process::start(&program)?;
        let description = job.description.clone();
        // One that does not read is no failure.
        tokio::spawn(async move { input.write_all(description.as_bytes()).await });
        let mut result = Vec::new();
        output.take(MOST).read_to_end(&mut result).await?;
        let (status, said) = process.finish().await;
        let result = String::from_utf8_lossy(&result);
        Ok(match status {
            Some(status) if status.success() => Came::done(result.trim_end(), Spent::default()),
            Some(status) => {
                Came::failed(format!("it ended with {status}: {said}"), Spent::default())
            }
            None => Came::failed("it did not end", Spent::default()),
        })
    }
}

impl Executor for ByCommand {
    fn run<'a>(&'a self, job: &'a Job, cancel: &'a Cancel) -> Working<'a> {
        Box::pin(async move {
            let came = tokio::select! {
                () = cancel.cancelled() => return Came::failed("it was called off", Spent::default()),
                came = self.run(job) => came,
            };
            came.unwrap_or_else(|error| {
                let what = format!("{}: {error}", self.words.join(" "));
                Came::hopeless(what, Spent::default())
            })
        })
    }
}
