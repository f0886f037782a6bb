//! The shell: commands of a model, run in a sandbox, bounded, and ended with all that they started.
//!
//! ```no_run
//! # async fn f() -> Result<(), contexture_tools::shell::ShellError> {
//! use contexture_tools::{Tool, shell::{Shell, ShellOptions}};
//!
//! let shell = Shell::new(ShellOptions::new("/path/of/a/project"))?;
//! let arguments = serde_json::json!({"command": "cargo test 2>&1 | tail -20"});
//! let outcome = shell.call(arguments.as_object().unwrap()).await;
//! println!("{}", outcome.summary);
//! # Ok(()) }
//! ```

mod attributes;
mod credentials;
mod environment;
mod error;
mod output;
mod parts;
mod processes;
mod protected;
mod report;
mod repositories;
mod run;
pub mod sandbox;
mod words;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};

use crate::{Calling, Effect, Outcome, Tool, ToolSpec};
use repositories::Repositories;
use run::Job;
use sandbox::Sandbox;

pub use credentials::{CREDENTIALS, Credentials};
pub use error::ShellError;
pub use parts::{Unclear, allowed_by_prefix, parts};
pub use protected::is_protected;

/// What commands may do.
#[derive(Debug, Clone)]
pub struct ShellOptions {
    /// The project: commands begin here, and can write here.
    pub root: PathBuf,
    /// Where whole outputs go that are too long for the model. Default: `.contexture/outputs` in the
    /// root.
    pub outputs: PathBuf,
    /// The user's home, of which commands see little and write nothing.
    pub home: PathBuf,
    /// Whether the network can be reached. Default: no.
    pub network: bool,
    /// Folders outside of the root that can be written.
    pub writable: Vec<PathBuf>,
    /// Folders and files in the home, or hidden otherwise, that can be read.
    pub readable: Vec<PathBuf>,
    /// Files and folders that cannot be read, beside [`CREDENTIALS`]: absolute, below `~`, or in the root. What is readable
    /// inside of one by [`Self::readable`] stays so.
    pub deny_read: Vec<PathBuf>,
    /// What to do when no sandbox works. Default: refuse.
    pub unsandboxed: Unsandboxed,
    /// Which sandbox to use. Default: the best that works.
    pub sandbox: Option<Sandbox>,
    /// How many bytes of stdout, and of stderr, the model reads. The rest is cut out of the middle.
    pub output_cap: usize,
    /// How many bytes of stdout, or of stderr, are kept in a file. A command that prints more is ended.
    pub largest_output: u64,
}

/// What to do when no sandbox works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsandboxed {
    /// Nothing is run.
    Refuse,
    /// Commands run without one, and each result says so.
    Run,
}

impl ShellOptions {
    /// What is usual for a project.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self {
            outputs: root.join(".contexture/outputs"),
            root,
            home: std::env::home_dir().unwrap_or_default(),
            network: false,
            writable: Vec::new(),
            readable: Vec::new(),
            deny_read: Vec::new(),
            unsandboxed: Unsandboxed::Refuse,
            sandbox: None,
            output_cap: 16 * 1024,
            largest_output: 16 << 20,
        }
    }
}

/// The tool `exec_shell`.
pub struct Shell {
    options: ShellOptions,
    spec: ToolSpec,
    repositories: Mutex<Repositories>,
    /// Whether it was said what the sandbox cannot prevent.
    said_gaps: AtomicBool,
}

/// The longest argument that the kernel takes, with room for its end.
const LONGEST_COMMAND: usize = 128 * 1024 - 1024;

impl Shell {
    /// A shell for a project. Fails if its root is no folder, or one that holds the home.
    pub fn new(mut options: ShellOptions) -> Result<Self, ShellError> {
        let bad = |why: String| ShellError::BadRoot {
            root: options.root.clone(),
            why,
        };
        let given = options.root.clone();
        let root = given
            .canonicalize()
            .map_err(|error| bad(error.to_string()))?;
        if !root.is_dir() {
            return Err(bad("is no folder".to_owned()));
        }
        let home = options.home.canonicalize();
        if home.is_ok_and(|home| home.starts_with(&root)) {
            return Err(bad(
                "holds the home folder, where commands must not write".to_owned()
            ));
        }
        if let Ok(inside) = options.outputs.strip_prefix(&given) {
            options.outputs = root.join(inside);
        }
        options.root = root;
        for folder in &mut options.writable {
            *folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        }
        let spec = ToolSpec {
            name: words::NAME.to_owned(),
            description: words::description(options.network),
            parameters: words::parameters(),
            category: words::CATEGORY.to_owned(),
            effect: Effect::Acts,
        };
        Ok(Self {
            options,
            spec,
            repositories: Mutex::default(),
            said_gaps: AtomicBool::default(),
        })
    }

    /// The sandbox that commands run in, if any.
    pub fn sandbox(&self) -> Option<Sandbox> {
        let available = sandbox::available();
        match self.options.sandbox {
            Some(sandbox) => available.has(sandbox).then_some(sandbox),
            None => available.best(),
        }
    }

    async fn run(
        &self,
        arguments: &Map<String, Value>,
        sandbox: Option<Sandbox>,
    ) -> Result<Outcome, ShellError> {
        let command = command(arguments)?;
        let cwd = self.cwd(arguments)?;
        if sandbox.is_none() && self.options.unsandboxed == Unsandboxed::Refuse {
            return Err(ShellError::NoSandbox {
                why: sandbox::available().missing(),
            });
        }
        let job = Job {
            command,
            cwd: &cwd,
            seconds: seconds(arguments)?,
        };
        let mut report = run::run(&self.options, &self.repositories, sandbox, job).await?;
        if let Some(sandbox) = sandbox.filter(|sandbox| !sandbox.gaps().is_empty())
            && !self.said_gaps.swap(true, Ordering::Relaxed)
        {
            report.notes.push(words::gaps(sandbox));
        }
        Ok(report.outcome(command, sandbox.is_some()))
    }

    /// The folder to run in. It is looked at after links are followed.
    fn cwd(&self, arguments: &Map<String, Value>) -> Result<PathBuf, ShellError> {
        let bad = |why: String| ShellError::BadArgument { name: "cwd", why };
        let root = &self.options.root;
        let cwd = match arguments.get("cwd") {
            None | Some(Value::Null) => return Ok(root.clone()),
            Some(Value::String(cwd)) => root.join(cwd),
            Some(_) => return Err(bad("must be a string".to_owned())),
        };
        let cwd = cwd
            .canonicalize()
            .map_err(|error| bad(format!("cannot be used: {error}")))?;
        if !cwd.starts_with(root) {
            return Err(bad("is outside of the project".to_owned()));
        }
        if !cwd.is_dir() {
            return Err(bad("is no folder".to_owned()));
        }
        Ok(cwd)
    }
}

impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: &'a Map<String, Value>) -> Calling<'a> {
        Box::pin(async move {
            self.run(arguments, self.sandbox())
                .await
                .unwrap_or_else(|error| Outcome::failed(format!("{error}\n{}", error.hint())))
        })
    }
}

fn command(arguments: &Map<String, Value>) -> Result<&str, ShellError> {
    let bad = |why: &str| ShellError::BadArgument {
        name: "command",
        why: why.to_owned(),
    };
    match arguments.get("command").and_then(Value::as_str) {
        None => Err(bad("must be a string")),
        Some(command) if command.trim().is_empty() => Err(bad("is empty")),
        Some(command) if command.contains('\0') => Err(bad("has a NUL in it")),
        Some(command) if command.len() > LONGEST_COMMAND => Err(bad(
            "is too long: write a script in the project, and run that",
        )),
        Some(command) => Ok(command),
    }
}

fn seconds(arguments: &Map<String, Value>) -> Result<u64, ShellError> {
    let seconds = match arguments.get("timeoutSeconds") {
        None | Some(Value::Null) => return Ok(words::DEFAULT_TIMEOUT),
        Some(seconds) => seconds.as_u64(),
    };
    seconds
        .filter(|seconds| (1..=words::LONGEST_TIMEOUT).contains(seconds))
        .ok_or_else(|| ShellError::BadArgument {
            name: "timeoutSeconds",
            why: format!(
                "must be a whole number from 1 to {}",
                words::LONGEST_TIMEOUT
            ),
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    /// As if no sandbox worked here.
    async fn without_sandbox(unsandboxed: Unsandboxed) -> (Result<Outcome, ShellError>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let options = ShellOptions {
            unsandboxed,
            home: "/nonexistent".into(),
            ..ShellOptions::new(folder.path())
        };
        let arguments = serde_json::json!({"command": "touch ran"});
        let shell = Shell::new(options).unwrap();
        let outcome = shell.run(arguments.as_object().unwrap(), None).await;
        (outcome, folder.path().join("ran").exists())
    }

    #[tokio::test]
    async fn without_a_sandbox_it_refuses() {
        let (outcome, ran) = without_sandbox(Unsandboxed::Refuse).await;
        let error = outcome.unwrap_err();
        assert!(matches!(error, ShellError::NoSandbox { .. }));
        assert!(error.hint().contains("install bubblewrap"));
        assert!(!ran);
    }

    #[tokio::test]
    async fn or_it_runs_and_says_so() {
        let (outcome, ran) = without_sandbox(Unsandboxed::Run).await;
        let outcome = outcome.unwrap();
        assert!(ran && !outcome.failed);
        assert!(outcome.summary.contains("without a sandbox"));
        let said = |text: &str| text.contains("without a sandbox");
        assert!(matches!(&outcome.content, contexture::Content::Text(text) if said(text)));
    }
}
