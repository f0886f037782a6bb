//! A program that we speak with or run: started with a clean environment, in a group of its own, and ended
//! with all that it started.
//!
//! MCP servers, ACP agents and their terminals are all started here, so what holds for one holds for all:
//! none inherits our keys (see [`crate::inherit`]), none outlives us (where there is a supervisor, see
//! [`crate::supervise`]), and none can say more in a line than is read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use contexture::json::Footprint;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::inherit::{self, ChildKind};

/// How long a program may take to leave when its input has ended.
const GRACE: Duration = Duration::from_secs(2);
/// How much of what it says on its standard error is kept.
const KEPT: usize = 4 << 10;
/// How often to look whether it has ended.
const LOOK: Duration = Duration::from_millis(100);
/// The longest line that is usually read.
pub const LONGEST_LINE: usize = 15 << 20;

/// What is started.
pub struct Program<'a> {
    /// The program: a name that is looked for in `PATH`, or a path from the folder.
    pub command: &'a str,
    /// Its arguments.
    pub args: &'a [String],
    /// What it is to us, which decides what it may be given of ours.
    pub kind: ChildKind,
    /// What its environment has beside what all inherit ([`inherit::BASE`]).
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    pub folder: &'a Path,
    /// The command that supervises it (see [`crate::supervise`]). Without one, what leaves its group, and
    /// all of it when we are killed, stays behind.
    pub supervisor: Option<&'a [OsString]>,
}

impl<'a> Program<'a> {
    /// A program in a folder, without arguments.
    pub fn new(kind: ChildKind, command: &'a str, folder: &'a Path) -> Self {
        Self {
            kind,
            command,
            args: &[],
            env: BTreeMap::new(),
            folder,
            supervisor: None,
        }
    }

    /// With these arguments.
    #[must_use]
    pub fn args(self, args: &'a [String]) -> Self {
        Self { args, ..self }
    }

    /// With a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// With variables of its environment.
    #[must_use]
    pub fn envs<N: Into<String>, V: Into<String>>(
        mut self,
        all: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let all = all.into_iter();
        self.env
            .extend(all.map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// With a supervisor.
    #[must_use]
    pub fn supervisor(self, supervisor: Option<&'a [OsString]>) -> Self {
        Self { supervisor, ..self }
    }

    /// Whether there is something to start: a supervisor could only say so too late.
    pub fn exists(&self) -> bool {
        if self.command.contains('/') {
            return self.folder.join(self.command).is_file();
        }
        let given = self.env.get("PATH").map(OsString::from);
        let path = given
            .or_else(|| std::env::var_os("PATH"))
            .unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(self.command).is_file())
    }

    /// The command that starts it, if there is something to start.
    fn command(&self) -> io::Result<Command> {
        if !self.exists() {
            let kind = io::ErrorKind::NotFound;
            return Err(io::Error::new(kind, "there is no such program"));
        }
        let mut command = match self.supervisor {
            Some([first, before @ ..]) => {
                let mut command = Command::new(first);
                let own = crate::supervise::arguments(self.command.as_ref(), self.args);
                command.args(before).args(own);
                command
            }
            _ => {
                let mut command = Command::new(self.command);
                command.args(self.args);
                command
            }
        };
        command.env_clear();
        let given = self.env.iter();
        command
            .envs(inherit::base())
            .envs(given.filter(|(name, _)| self.kind.may_have(name)))
            .current_dir(self.folder)
            .process_group(0);
        Ok(command)
    }
}

/// A program under way. Dropping it ends it.
pub struct Process {
    child: Child,
    pid: Option<Pid>,
    supervised: bool,
    said: Arc<Mutex<Vec<u8>>>,
    /// Why its output is not read any more.
    fault: Arc<OnceLock<String>>,
    drain: Option<tokio::task::JoinHandle<()>>,
}

impl Process {
    /// Starts a program, and gives its output and input. What it says on its standard error is read, and
    /// the end of it kept.
    pub fn start(program: &Program<'_>) -> io::Result<(Self, Lines<ChildStdout>, ChildStdin)> {
        let mut command = program.command()?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = Self::spawn(command, program)?;
        let child = &mut process.child;
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err(io::Error::other("its pipes are missing"));
        };
        process.drain = Some(tokio::spawn(drain(stderr, Arc::clone(&process.said))));
        let mut lines = Lines::new(stdout, LONGEST_LINE);
        lines.fault = Arc::clone(&process.fault);
        Ok((process, lines, stdin))
    }

    /// Starts a program that is given nothing to read, and gives all that it prints in one stream, in the
    /// order in which it printed it.
    pub fn start_apart(program: &Program<'_>) -> io::Result<(Self, pipe::Receiver)> {
        let (output, into) = io::pipe()?;
        let mut command = program.command()?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::from(into.try_clone()?))
            .stderr(Stdio::from(into));
        let output = pipe::Receiver::from_owned_fd(output.into())?;
        // With the command goes our end of the pipe: else it would never end.
        Ok((Self::spawn(command, program)?, output))
    }

    fn spawn(mut command: Command, program: &Program<'_>) -> io::Result<Self> {
        let child = command.spawn()?;
        Ok(Self {
            pid: child.id().and_then(|id| Pid::from_raw(id.cast_signed())),
            child,
            supervised: program.supervisor.is_some(),
            drain: None,
            said: Arc::default(),
            fault: Arc::default(),
        })
    }

    /// Why its output is not read any more, once that is so.
    pub fn fault(&self) -> Arc<OnceLock<String>> {
        Arc::clone(&self.fault)
    }

    /// Waits until it has ended by itself. Nothing that it started is ended by this.
    pub async fn ended(&mut self) {
        while !self.left(Duration::ZERO).await {
            sleep(LOOK).await;
        }
    }

    /// Waits until it has ended by itself, ends what it left behind, and gives how it ended and what it said last on
    /// its standard error.
    pub async fn finish(mut self) -> (Option<ExitStatus>, String) {
        while !self.left(LOOK).await {}
        if let Some(drain) = &mut self.drain {
            let _ = timeout(LOOK, drain).await;
        }
        let status = self.reap().await;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        (status, last_words(&said))
    }

    /// Ends it at once, with all that it started, and gives how it ended.
    pub async fn kill(mut self) -> Option<ExitStatus> {
        self.reap().await
    }

    /// How it ended and what it said last, for an error message. Ends it.
    pub async fn post_mortem(self) -> String {
        if let Some(fault) = self.fault.get().cloned() {
            return self.post_mortem_of(&fault).await;
        }
        match self.examine().await {
            (None, words) => with_words("it closed its output", &words),
            (Some(ended), words) => with_words(&ended, &words),
        }
    }

    /// The same, where it is known why nothing more is read from it.
    pub async fn post_mortem_of(self, why: &str) -> String {
        match self.examine().await {
            (None, words) => with_words(why, &words),
            (Some(ended), words) => with_words(&format!("{why}; {ended}"), &words),
        }
    }

    /// How it ended, if it has, and what it said last.
    async fn examine(mut self) -> (Option<String>, String) {
        // What it said right before its end may still be in the pipe.
        if let Some(drain) = &mut self.drain {
            let _ = timeout(Duration::from_millis(200), drain).await;
        }
        let status = match self.left(Duration::from_millis(200)).await {
            true => self.reap().await,
            false => None,
        };
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = status.map(|status| format!("it ended ({status})"));
        (ended, last_words(&said))
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
    async fn reap(&mut self) -> Option<ExitStatus> {
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
        if let Some(drain) = &self.drain {
            drain.abort();
        }
        self.signal(Signal::KILL);
    }
}

/// The last lines, on one.
fn last_words(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(str::trim);
    let last: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let last = last[last.len().saturating_sub(5)..].join(" / ");
    let start = last.len().saturating_sub(600);
    let start = (start..last.len()).find(|at| last.is_char_boundary(*at));
    let end = start.map_or("", |start| &last[start..]);
    // Not inside a word: half a key would not be recognised.
    match (start, end.split_once(char::is_whitespace)) {
        (Some(1..), Some((_, rest))) => rest.to_owned(),
        (Some(1..), None) => String::new(),
        _ => end.to_owned(),
    }
}

fn with_words(ended: &str, words: &str) -> String {
    match words {
        "" => ended.to_owned(),
        words => format!("{ended}; it said: {words}"),
    }
}

/// Reads all that a program says on its standard error, and keeps the end of it.
async fn drain(mut stderr: impl AsyncRead + Unpin, said: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = vec![0; 8 << 10];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&chunk[..read]);
        let beyond = said.len().saturating_sub(KEPT);
        if beyond > 0 {
            let rest = said[beyond..].iter();
            let word = rest.take_while(|byte| !byte.is_ascii_whitespace()).count();
            said.drain(..beyond + word);
        }
    }
}

/// Output in lines. One that is too long, or would take too much memory as JSON, is an error, so that whoever
/// waits for it need not wait for nothing.
pub struct Lines<R> {
    inner: R,
    since: usize,
    longest: usize,
    footprint: Footprint,
    max_held: usize,
    fault: Arc<OnceLock<String>>,
}

impl<R> Lines<R> {
    /// Lines of at most so many bytes.
    pub fn new(inner: R, longest: usize) -> Self {
        Self {
            inner,
            since: 0,
            longest,
            footprint: Footprint::default(),
            max_held: usize::MAX,
            fault: Arc::default(),
        }
    }

    /// With another longest line.
    #[must_use]
    pub fn longest(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    /// Lines of JSON, each of which may take at most so much memory once it is parsed.
    #[must_use]
    pub fn holding(self, max_held: usize) -> Self {
        Self { max_held, ..self }
    }

    /// Measures what was read. An error says what is wrong with it.
    fn measure(&mut self, fresh: &[u8]) -> Result<(), String> {
        for part in fresh.split_inclusive(|byte| *byte == b'\n') {
            let line = part.strip_suffix(b"\n").unwrap_or(part);
            self.since += line.len();
            if self.since > self.longest {
                return Err(format!("a line is longer than {} MiB", self.longest >> 20));
            }
            if self.max_held < usize::MAX {
                self.footprint.add(line);
            }
            if self.footprint.bytes() > self.max_held {
                return Err(format!(
                    "a message would take more than {} MiB of memory",
                    self.max_held >> 20
                ));
            }
            if line.len() < part.len() {
                (self.since, self.footprint) = (0, Footprint::default());
            }
        }
        Ok(())
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
        let measured = self.measure(&into.filled()[before..]);
        Poll::Ready(measured.map_err(|fault| {
            let _ = self.fault.set(fault.clone());
            io::Error::other(fault)
        }))
    }
}
