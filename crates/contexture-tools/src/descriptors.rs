//! Descriptors that this process was started with: kept from every program that it starts.
//!
//! Whoever starts us may have left files, sockets or pipes open, with secrets in them or rights behind them. Rust opens
//! its own so that no other program gets them; these were opened by somebody else.

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;

/// Where the system lists them.
const OPEN: &str = if cfg!(target_os = "linux") {
    "/proc/self/fd"
} else {
    "/dev/fd"
};
/// Standard input, output and error are meant to be inherited.
const STANDARD: RawFd = 2;

/// Keeps the descriptors that were inherited to this process. They stay open under their numbers, because a shell may have
/// named one as a file (`<(…)`). To be called first, when nothing else runs and nothing has been opened yet.
pub fn keep_inherited() -> io::Result<()> {
    let names =
        std::fs::read_dir(OPEN)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let all: Vec<RawFd> = names.filter_map(|name| name.parse().ok()).collect();
    all.into_iter()
        .filter(|number| *number > STANDARD)
        .try_for_each(keep)
}

/// Puts another descriptor of the same file in the place of this one, if it would be inherited.
fn keep(number: RawFd) -> io::Result<()> {
    if !is_inherited(number) {
        return Ok(());
    }
    // What can be opened by nobody, such as a socket, is not of use by its number either.
    let other = duplicate(number).ok();
    nix::unistd::close(number)?;
    let Some(other) = other else { return Ok(()) };
    let kept = fcntl_dupfd_cloexec(&other, number)?;
    if kept.into_raw_fd() == number {
        return Ok(());
    }
    Err(io::Error::other("a descriptor was taken by somebody else"))
}

#[cfg(target_os = "linux")]
fn is_inherited(number: RawFd) -> bool {
    // What we read the list with is closed by now.
    flags(number).is_some_and(|flags| flags & OFlags::CLOEXEC.bits() == 0)
}

#[cfg(not(target_os = "linux"))]
fn is_inherited(_: RawFd) -> bool {
    true
}

#[cfg(target_os = "linux")]
fn flags(number: RawFd) -> Option<u32> {
    let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(flags.trim(), 8).ok()
}

/// The very same file as the descriptor has it, or, where the kernel gives none of our own descriptors to us, the file
/// opened again.
#[cfg(target_os = "linux")]
fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let same = pidfd_open(getpid(), PidfdFlags::empty())
        .and_then(|us| pidfd_getfd(us, number, PidfdGetfdFlags::empty()));
    same.or_else(|_| {
        let mode = OFlags::from_bits_retain(flags(number).unwrap_or_default()) & OFlags::RWMODE;
        let how = mode | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        open(format!("{OPEN}/{number}"), how, Mode::empty())
    })
    .map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    Ok(open(format!("{OPEN}/{number}"), how, Mode::empty())?)
}
