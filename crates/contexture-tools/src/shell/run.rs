//! One command, from its start until nothing of it is left.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::attributes::Modes;
use super::output::{Capture, Folder, private_folder, unique};
use super::processes::{Census, Family};
use super::protected::{Guard, Protected};
use super::repositories::{self, Repositories};
use super::sandbox::{self, Reach, Sandbox, TEMPORARY};
use super::{ShellError, ShellOptions, credentials, environment, words};

/// What to run.
pub struct Job<'a> {
    pub command: &'a str,
    pub cwd: &'a Path,
    pub seconds: u64,
}

/// What came of it.
pub struct Report {
    pub ending: Ending,
    pub stdout: String,
    pub stderr: String,
    pub notes: Vec<String>,
    /// The most bytes that it may print.
    pub largest: u64,
}

/// How a command ended.
pub enum Ending {
    Exited(i32),
    Killed(i32),
    TimedOut(u64),
    TooManyProcesses,
    TooMuchOutput,
}

/// Waits for a line, so that the process can be marked before it starts others. Leaves a watcher behind
/// that ends the group when we are gone and with us the other end of its input. Then it becomes the
/// command's shell.
const WRAPPER: &str = r#"read -r go || exit 125
exec 3<&0 </dev/null
{ read -r go; kill -9 0; } <&3 3<&- >/dev/null 2>&1 &
exec 3<&-
exec /bin/sh -c -- "$1""#;

/// How long processes may take to end when they are asked to.
const GRACE: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(50);

pub async fn run(
    options: &ShellOptions,
    repositories: &Mutex<Repositories>,
    sandbox: Option<Sandbox>,
    job: Job<'_>,
) -> Result<Report, ShellError> {
    let place = options.outputs.display().to_string();
    let folder = Folder::new(&options.outputs, &options.root, options.largest_output)
        .map_err(ShellError::io(place))?;
    let mut run = Run::begin(options, repositories, sandbox, &folder, &job).await?;
    let mut stdout = Capture::new(&folder, "stdout", options.output_cap);
    let mut stderr = Capture::new(&folder, "stderr", options.output_cap);
    let (ending, mut notes) = run.watch(&job, &mut stdout, &mut stderr).await?;
    notes.extend(run.finish());
    Ok(Report {
        ending,
        stdout: stdout.text(),
        stderr: stderr.text(),
        notes,
        largest: options.largest_output,
    })
}

/// A command under way. Dropped, it is ended, and what it left is tidied up.
struct Run<'a> {
    child: Child,
    sandbox: Option<Sandbox>,
    family: Family,
    /// While this is open, the watcher waits.
    _lifeline: ChildStdin,
    place: Place<'a>,
    /// What there is to say whatever the command does.
    notes: Vec<String>,
    ended: bool,
}

/// What is tidied up after a command.
struct Place<'a> {
    /// Only for this command.
    temporary: PathBuf,
    guard: Guard,
    modes: Modes,
    repositories: &'a Mutex<Repositories>,
    inside: repositories::Place,
    before: repositories::Before,
    root: &'a Path,
    folder: &'a Folder,
    tidy: bool,
}

impl<'a> Run<'a> {
    async fn begin(
        options: &'a ShellOptions,
        repositories: &'a Mutex<Repositories>,
        sandbox: Option<Sandbox>,
        folder: &'a Folder,
        job: &Job<'_>,
    ) -> Result<Self, ShellError> {
        let temporary = std::env::temp_dir().join(format!("{TEMPORARY}{}", unique()));
        let in_temporary = || ShellError::io(temporary.display().to_string());
        private_folder(&temporary, false).map_err(in_temporary())?;
        let temporary = temporary.canonicalize().map_err(in_temporary())?;
        let seals = sandbox.is_some_and(Sandbox::seals);
        let inside = repositories::Place::new(options, seals);
        let before = lock(repositories).before(&inside);
        let protected = Protected::of(
            &options.root,
            &options.writable,
            &options.outputs,
            &before.sealed,
        );
        let denied = credentials::denied(options);
        let place = Place {
            guard: Guard::of(&protected, seals, &options.root),
            modes: match sandbox {
                Some(Sandbox::Landlock) => Modes::new(&options.home, &denied, &inside.roots),
                _ => Modes::default(),
            },
            repositories,
            inside,
            before,
            root: &options.root,
            folder,
            temporary,
            tidy: false,
        };
        let reach = Reach::new(options, seals, &denied, protected, &place.temporary);
        let shown = |path: &PathBuf| path.display().to_string();
        let closed = reach.closed.iter().map(shown);
        let notes = closed.map(|path| words::closed(&path)).collect();
        let mut command = sandbox::program(sandbox, &reach, job.cwd);
        command
            .args(["-c", WRAPPER, "sh", job.command])
            .env_clear()
            .envs(environment::clean(&options.home, &place.temporary))
            .current_dir(job.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut fresh = start(command, sandbox, reach).await?;
        let gone = || ShellError::io("/bin/sh")(std::io::Error::other("it ended before it began"));
        let group = fresh.group().ok_or_else(gone)?;
        let family = Family::found(group);
        let stdin = fresh.0.as_mut().and_then(|child| child.stdin.take());
        let mut lifeline = stdin.ok_or_else(gone)?;
        // A sandbox that cannot be set up closes this; what it says then is the command's output.
        let lines = if sandbox == Some(Sandbox::Bubblewrap) {
            2
        } else {
            1
        };
        _ = lifeline.write_all(&b"\n\n"[..lines]).await;
        Ok(Self {
            child: fresh.0.take().ok_or_else(gone)?,
            sandbox,
            family,
            _lifeline: lifeline,
            place,
            notes,
            ended: false,
        })
    }

    /// Waits for the end of the command, brings it about when there is a reason to, and ends what is
    /// left.
    async fn watch(
        &mut self,
        job: &Job<'_>,
        stdout: &mut Capture<'_>,
        stderr: &mut Capture<'_>,
    ) -> Result<(Ending, Vec<String>), ShellError> {
        let (out, err) = (self.child.stdout.take(), self.child.stderr.take());
        let full = AtomicBool::new(false);
        let pump = async {
            tokio::join!(stdout.fill(out, &full), stderr.fill(err, &full));
        };
        tokio::pin!(pump);
        let mut pumped = false;
        let deadline = Instant::now() + Duration::from_secs(job.seconds);
        let mut census = Census::default();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ending = loop {
            tokio::select! {
                status = self.child.wait() => {
                    let status = status.map_err(ShellError::io("/bin/sh"))?;
                    // It may have ended because nobody reads any more.
                    break if full.load(Ordering::Relaxed) {
                        Ending::TooMuchOutput
                    } else {
                        ending(status)
                    };
                }
                () = &mut pump, if !pumped => pumped = true,
                () = sleep_until(deadline) => break Ending::TimedOut(job.seconds),
                _ = tick.tick() => {
                    if full.load(Ordering::Relaxed) {
                        break Ending::TooMuchOutput;
                    }
                    if census.finds_too_many(self.family) {
                        break Ending::TooManyProcesses;
                    }
                }
            }
        };
        let notes = self.end(&ending).await;
        // Whoever held the other ends is gone; who escaped does not keep us.
        if !pumped {
            _ = timeout(GRACE, &mut pump).await;
        }
        Ok((ending, notes))
    }

    /// Ends what still runs: first it is asked to, then it is made to.
    async fn end(&mut self, ending: &Ending) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        let ask = match ending {
            // The kernel is ending what was left: it had a world of its own.
            Ending::Exited(_) | Ending::Killed(_) if self.sandbox == Some(Sandbox::Bubblewrap) => {
                false
            }
            Ending::Exited(_) | Ending::Killed(_) => {
                // One of them is the watcher.
                let left = self.family.count().saturating_sub(1);
                if left > 0 {
                    notes.push(words::left_running(left));
                }
                left > 0
            }
            Ending::TimedOut(_) => true,
            Ending::TooManyProcesses | Ending::TooMuchOutput => false,
        };
        if ask {
            self.family.signal(Signal::TERM);
            let until = Instant::now() + GRACE;
            while Instant::now() < until && self.family.count() > 0 {
                // A child that nobody waits for would count for ever.
                _ = self.child.try_wait();
                sleep(Duration::from_millis(10)).await;
            }
        }
        let left = self.family.kill();
        if left > 0 {
            notes.push(words::still_running(left));
        }
        _ = timeout(GRACE, self.child.wait()).await;
        self.ended = true;
        notes
    }

    /// Puts back what is protected. Gives what there is to say about it.
    fn finish(mut self) -> Vec<String> {
        self.place.tidy_up()
    }
}

impl Place<'_> {
    fn tidy_up(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.tidy, true) {
            return Vec::new();
        }
        let mut said = self.guard.put_back(self.root, self.folder);
        said.extend(self.modes.put_back());
        let mut repositories = lock(self.repositories);
        said.extend(repositories.after(&self.inside, &self.before, self.folder));
        said
    }
}

fn lock(repositories: &Mutex<Repositories>) -> MutexGuard<'_, Repositories> {
    repositories.lock().unwrap_or_else(PoisonError::into_inner)
}

// Its fields are dropped afterwards, so tidying up comes when nothing runs any more.
impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.family.kill();
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.temporary);
        self.tidy_up();
    }
}

/// Starts the command from a thread of its own, which is bound and then ends.
async fn start(
    mut command: Command,
    sandbox: Option<Sandbox>,
    reach: Reach,
) -> Result<Fresh, ShellError> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    let work = move || {
        let _inside = runtime.enter();
        let bound = sandbox.map_or(Ok(()), |sandbox| sandbox::bind(sandbox, &reach));
        let started = bound
            .map_err(|what| ShellError::Sandbox { what })
            .and_then(|()| command.spawn().map_err(ShellError::io("/bin/sh")))
            .map(|child| Fresh(Some(child)));
        // If nobody wants it any more, it is dropped and so ended.
        _ = tell.send(started);
    };
    let thread = std::thread::Builder::new()
        .name("exec_shell".to_owned())
        .spawn(work);
    thread.map_err(ShellError::io("a thread for the command"))?;
    let ended = |_| ShellError::Sandbox {
        what: "its thread ended".to_owned(),
    };
    told.await.map_err(ended)?
}

/// A process that has not begun. Dropped, its group is ended.
struct Fresh(Option<Child>);

impl Fresh {
    fn group(&self) -> Option<Pid> {
        let pid = self.0.as_ref()?.id()?;
        Pid::from_raw(i32::try_from(pid).ok()?)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some(group) = self.group() {
            _ = kill_process_group(group, Signal::KILL);
        }
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Killed(signal.unwrap_or_default()),
    }
}
