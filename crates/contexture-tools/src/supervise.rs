//! A process between us and a program that we start, so that nothing stays behind when we are killed.
//!
//! Whoever is ended by `kill -9` cannot clean up. So somebody else has to notice: the supervisor watches
//! its parent, and when that is gone, when it is told to end, or when the program ends, it ends all that
//! the program started, also what left its process group. The program itself is tied to the supervisor by
//! the kernel (on Linux), should that be killed first.
//!
//! `ctx` offers it as a hidden command. Other programs give [`run`] the arguments behind a command of
//! their own, and name that command in [`mcp::Options`](crate::mcp::Options) or in
//! [`Program`](crate::process::Program).

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use contexture::text::hidden::legible;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{interval, sleep, timeout};

/// How often to look whether the parent is there.
const LOOK: Duration = Duration::from_millis(100);
/// How long a program may take to end by itself.
const GRACE: Duration = Duration::from_millis(1_000);
/// How often to look for what is left.
const SWEEPS: usize = 50;

const EXEC: &str = "--exec";
const REST: &str = "--";

/// The arguments with which `supervisor` starts `command`.
pub(crate) fn arguments(command: &OsStr, args: &[String]) -> Vec<OsString> {
    let mut all = vec![getpid().to_string().into(), REST.into(), command.into()];
    all.extend(args.iter().map(OsString::from));
    all
}

/// Supervises a program: the arguments are those that came behind the command's name. Returns when
/// nothing of it is left.
pub fn run(args: &[OsString]) -> ExitCode {
    let (exec, rest) = match args {
        [first, rest @ ..] if first == EXEC => (true, rest),
        rest => (false, rest),
    };
    let (parent, command) = match rest {
        [parent, dashes, command @ ..] if dashes == REST && !command.is_empty() => {
            (parent.to_str().and_then(|text| text.parse().ok()), command)
        }
        _ => return ExitCode::from(2),
    };
    let Some(parent) = parent.and_then(Pid::from_raw) else {
        return ExitCode::from(2);
    };
    if exec {
        return become_program(parent, command);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime.map(|runtime| runtime.block_on(watch(parent, args, command))) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) | Err(error) => {
            complain(&command[0], &error);
            ExitCode::from(127)
        }
    }
}

/// Says why the program did not start, to whoever reads its standard error.
fn complain(program: &OsStr, error: &std::io::Error) {
    let line = format!("{}: {error}", legible(&program.to_string_lossy()));
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Ties this process to its parent, and becomes the program.
fn become_program(parent: Pid, command: &[OsString]) -> ExitCode {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if getppid() != Some(parent) {
        return ExitCode::FAILURE;
    }
    let mut program = std::process::Command::new(&command[0]);
    let error = program.args(&command[1..]).exec();
    complain(&command[0], &error);
    ExitCode::from(127)
}

async fn watch(parent: Pid, args: &[OsString], command: &[OsString]) -> std::io::Result<ExitCode> {
    // What the program leaves behind becomes our child, so that it can be found.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
    let mut told = signal(SignalKind::terminate())?;
    let mut asked = signal(SignalKind::interrupt())?;
    let mut hung = signal(SignalKind::hangup())?;
    let mut look = interval(LOOK);
    let mut child = start(args, command)?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.ok(),
            _ = told.recv() => break None,
            _ = asked.recv() => break None,
            _ = hung.recv() => break None,
            _ = look.tick() => if getppid() != Some(parent) { break None; },
        }
    };
    let status = match (status, group) {
        (None, Some(group)) => end(&mut child, group).await,
        (status, _) => status,
    };
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    sweep().await;
    Ok(code(status))
}

/// Starts the program in a group of its own.
fn start(args: &[OsString], command: &[OsString]) -> std::io::Result<Child> {
    let mut program = if cfg!(target_os = "linux") {
        // By way of ourselves: only a process itself can say what its parent's death does to it.
        let own: Vec<OsString> = std::env::args_os().skip(1).collect();
        let before = &own[..own.len().saturating_sub(args.len())];
        let mut program = Command::new(std::env::current_exe()?);
        program
            .args(before)
            .arg(EXEC)
            .arg(getpid().to_string())
            .arg(REST)
            .args(command);
        program
    } else {
        let mut program = Command::new(&command[0]);
        program.args(&command[1..]);
        program
    };
    program.process_group(0).spawn()
}

async fn end(child: &mut Child, group: Pid) -> Option<ExitStatus> {
    let _ = kill_process_group(group, Signal::TERM);
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status.ok();
    }
    let _ = kill_process_group(group, Signal::KILL);
    timeout(GRACE, child.wait()).await.ok()?.ok()
}

/// Ends what left the group. Each one that ends may leave us its children.
async fn sweep() {
    for _ in 0..SWEEPS {
        let left = children();
        if left.is_empty() {
            return;
        }
        for pid in left {
            let _ = kill_process(pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// The processes whose parent we are.
fn children() -> Vec<Pid> {
    let us = getpid().to_string();
    let Ok(folder) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pid = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let ours = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // `PID (NAME) STATE PARENT …`, where the name may hold anything.
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        behind.split_whitespace().nth(1) == Some(&us)
    };
    let all = folder.filter_map(Result::ok).filter_map(pid);
    all.filter(ours).filter_map(Pid::from_raw).collect()
}

fn code(status: Option<ExitStatus>) -> ExitCode {
    let Some(status) = status else {
        return ExitCode::FAILURE;
    };
    let number = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    ExitCode::from(u8::try_from(number).unwrap_or(1))
}
