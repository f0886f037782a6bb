//! A server that is a program: started with a clean environment, in a group of its own, and ended with
//! all that it started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

/// What a server inherits of our environment. Keys are not among it.
const INHERITED: [&str; 11] = [
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ",
    "USER",
];
/// How long a server may take to leave when its input has ended.
const GRACE: Duration = Duration::from_secs(2);
/// How much of what it says on its standard error is kept.
const KEPT: usize = 4 << 10;
/// The longest line that is read from it.
const LONGEST_LINE: usize = 15 << 20;

/// What is started.
pub(super) struct Program<'a> {
    pub command: &'a str,
    pub args: &'a [String],
    pub env: BTreeMap<String, String>,
    pub folder: &'a Path,
    pub supervisor: Option<&'a [OsString]>,
}

impl Program<'_> {
    /// Whether there is something to start: a supervisor could only say so too late.
    fn exists(&self) -> bool {
        if self.command.contains('/') {
            return self.folder.join(self.command).is_file();
        }
        let given = self.env.get("PATH").map(OsString::from);
        let path = given
            .or_else(|| std::env::var_os("PATH"))
            .unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(self.command).is_file())
    }
}

/// A program under way. Dropping it ends it.
pub(super) struct Process {
    child: Child,
    pid: Option<Pid>,
    supervised: bool,
    said: Arc<Mutex<Vec<u8>>>,
    drain: tokio::task::JoinHandle<()>,
}

impl Process {
    /// Starts a program, and gives its output and input.
    pub fn start(program: &Program<'_>) -> io::Result<(Self, Lines<ChildStdout>, ChildStdin)> {
        if !program.exists() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "there is no such program",
            ));
        }
        let mut command = match program.supervisor {
            Some([first, before @ ..]) => {
                let mut command = Command::new(first);
                let own = crate::supervise::arguments(program.command.as_ref(), program.args);
                command.args(before).args(own);
                command
            }
            _ => {
                let mut command = Command::new(program.command);
                command.args(program.args);
                command
            }
        };
        command.env_clear();
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let mut child = command
            .envs(&program.env)
            .current_dir(program.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err(io::Error::other("its pipes are missing"));
        };
        let said = Arc::default();
        let process = Self {
            pid: child.id().and_then(|id| Pid::from_raw(id.cast_signed())),
            child,
            supervised: program.supervisor.is_some(),
            drain: tokio::spawn(drain(stderr, Arc::clone(&said))),
            said,
        };
        Ok((process, Lines::new(stdout), stdin))
    }

    /// How it ended and what it said last, for an error message. Ends it.
    pub async fn post_mortem(mut self) -> String {
        // What it said right before its end may still be in the pipe.
        let _ = timeout(Duration::from_millis(200), &mut self.drain).await;
        let status = match self.left(Duration::from_millis(200)).await {
            true => self.reap().await,
            false => None,
        };
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said);
        let last: Vec<&str> = said
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let last = last[last.len().saturating_sub(5)..].join(" / ");
        let start = last.len().saturating_sub(600);
        let start = (start..last.len()).find(|at| last.is_char_boundary(*at));
        let words = start.map_or("", |start| &last[start..]);
        match (status, words) {
            (None, "") => "it closed its output".to_owned(),
            (None, words) => format!("it closed its output; it said: {words}"),
            (Some(status), "") => format!("it ended ({status})"),
            (Some(status), words) => format!("it ended ({status}); it said: {words}"),
        }
    }

    /// Ends it, politely first. Its input has been closed.
    pub async fn end(mut self) {
        if !self.left(GRACE).await {
            self.signal(Signal::TERM);
            self.left(GRACE).await;
        }
        self.reap().await;
    }

    /// Whether it ended within this time. It is not collected yet, so that its number stays its own.
    async fn left(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        loop {
            match self.pid.map(|pid| waitid(WaitId::Pid(pid), options)) {
                Some(Ok(None)) if Instant::now() < until => sleep(Duration::from_millis(20)).await,
                Some(Ok(None)) => return false,
                _ => return true,
            }
        }
    }

    /// Ends whatever is left, and collects it.
    async fn reap(&mut self) -> Option<std::process::ExitStatus> {
        self.signal(Signal::KILL);
        let status = timeout(GRACE, self.child.wait()).await.ok()?.ok();
        self.pid = None;
        status
    }

    fn signal(&self, signal: Signal) {
        let Some(pid) = self.pid else { return };
        // A supervisor ends the rest, if it is asked and not killed. One that has left is done.
        let _ = match self.supervised {
            true => kill_process(pid, Signal::TERM),
            false => kill_process_group(pid, signal),
        };
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.drain.abort();
        self.signal(Signal::KILL);
    }
}

/// Reads all that a server says on its standard error, and keeps the end of it.
async fn drain(mut stderr: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = vec![0; 8 << 10];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&chunk[..read]);
        let beyond = said.len().saturating_sub(KEPT);
        said.drain(..beyond);
    }
}

/// Output in lines. One that is too long is an error, so that whoever waits for it need not wait for
/// nothing.
pub(super) struct Lines<R> {
    inner: R,
    since: usize,
}

impl<R> Lines<R> {
    fn new(inner: R) -> Self {
        Self { inner, since: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, into))?;
        let fresh = &into.filled()[before..];
        self.since = match fresh.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => fresh.len() - at - 1,
            None => self.since + fresh.len(),
        };
        Poll::Ready(match self.since > LONGEST_LINE {
            true => Err(io::Error::other("a line is too long")),
            false => Ok(()),
        })
    }
}
