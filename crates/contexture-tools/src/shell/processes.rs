//! The processes of a command: how they are found, limited and ended.
//!
//! A process can leave its group and its session, lose its parent and change its environment. It cannot
//! change a hard limit that a system call filter keeps from it. So a limit that means nothing here (the
//! time that a *real-time* thread may run) carries a number which is the command's own. It is inherited
//! by all that the command starts, and read in `/proc/PID/limits`.
//!
//! Without the filter, a program that knows of this can hide. On other systems than Linux only the
//! process group is found.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// The most processes that a command may have at a time.
pub const MOST: usize = 512;

/// All that a command started.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    group: Pid,
    mark: u64,
}

impl Family {
    /// Limits and marks a process that leads a group and has no children yet.
    pub fn found(leader: Pid) -> Self {
        let mark = std::hash::BuildHasher::hash_one(
            &std::hash::RandomState::new(),
            leader.as_raw_nonzero(),
        );
        // Long enough that nothing runs into it, and below what "unlimited" is.
        let family = Self {
            group: leader,
            mark: (mark >> 2) | 1 << 60,
        };
        system::limit(leader, family.mark);
        family
    }

    /// How many live.
    pub fn count(self) -> usize {
        system::living(self).len()
    }

    /// Sends a signal to all of them. Gives how many there were.
    pub fn signal(self, signal: Signal) -> usize {
        // The group at once: nothing can fork away meanwhile.
        _ = kill_process_group(self.group, signal);
        let living = system::living(self);
        for process in &living {
            process.signal(signal);
        }
        living.len()
    }

    /// Ends all of them at once, and what they start meanwhile. Gives how many are left, which is none
    /// unless they fork faster than they can be found.
    pub fn kill(self) -> usize {
        for round in 0..50 {
            if self.signal(Signal::KILL) == 0 {
                return 0;
            }
            std::thread::sleep(Duration::from_millis(1 + round / 2));
        }
        self.count()
    }
}

/// Counts now and then, and at once when the system has many new threads: those are cheap to know,
/// while counting costs more the more processes there are.
#[derive(Default)]
pub struct Census {
    looked: usize,
    /// The fewest threads that the system had.
    fewest: Option<usize>,
}

impl Census {
    pub fn finds_too_many(&mut self, family: Family) -> bool {
        self.looked += 1;
        let now = system::threads().unwrap_or_default();
        let fewest = self.fewest.unwrap_or(now).min(now);
        self.fewest = Some(fewest);
        if now - fewest > MOST / 2 {
            // Nobody would get to count against a fork bomb, so the group stands still meanwhile.
            _ = kill_process_group(family.group, Signal::STOP);
            let too_many = family.count() > MOST;
            if !too_many {
                _ = kill_process_group(family.group, Signal::CONT);
            }
            return too_many;
        }
        self.looked.is_multiple_of(20) && family.count() > MOST
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::os::fd::OwnedFd;

    use rustix::process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, pidfd_open, pidfd_send_signal,
        prlimit,
    };

    use super::{Family, MOST};

    /// The largest file that a command may write.
    const LARGEST_FILE: u64 = 16 << 30;

    pub struct Process(OwnedFd);

    impl Process {
        pub fn signal(&self, signal: Signal) {
            _ = pidfd_send_signal(&self.0, signal);
        }
    }

    pub fn limit(process: Pid, mark: u64) {
        // The kernel counts all threads of the user. Root is not bound by it.
        let threads = threads().map(|now| (now + MOST) as u64);
        let limits = [
            (Resource::Rttime, Some(mark)),
            (Resource::Core, Some(0)),
            (Resource::Fsize, Some(LARGEST_FILE)),
            (Resource::Nproc, threads),
        ];
        for (resource, limit) in limits {
            let Some(limit) = limit else { continue };
            let ours = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            let limit = Some(limit.min(ours));
            let new = Rlimit {
                current: limit,
                maximum: limit,
            };
            // Some systems let nobody limit another process. Then only the group is found.
            _ = prlimit(Some(process), resource, new);
        }
    }

    pub fn living(family: Family) -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| member(family, pid)).collect()
    }

    /// The process is held before it is looked at, so that another one with its number is not taken
    /// for it.
    fn member(family: Family, pid: i32) -> Option<Process> {
        let held = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may hold anything: state, parent, group.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        if matches!(fields.next(), Some("Z" | "X")) {
            return None;
        }
        let group = fields.nth(1)?.parse();
        if group == Ok(family.group.as_raw_nonzero().get()) {
            return Some(Process(held));
        }
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let mark = family.mark.to_string();
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max realtime timeout"))?;
        line.split_whitespace()
            .any(|word| word == mark)
            .then_some(Process(held))
    }

    pub fn threads() -> Option<usize> {
        let load = fs::read_to_string("/proc/loadavg").ok()?;
        let (_, all) = load.split(' ').nth(3)?.split_once('/')?;
        all.parse().ok().filter(|all| *all > 0)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {

    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

    use super::Family;

    pub struct Process(Pid);

    impl Process {
        pub fn signal(&self, signal: Signal) {
            _ = kill_process_group(self.0, signal);
        }
    }

    pub fn limit(_: Pid, _: u64) {}

    pub fn living(family: Family) -> Vec<Process> {
        let lives = test_kill_process_group(family.group).is_ok();
        lives.then_some(Process(family.group)).into_iter().collect()
    }

    pub fn threads() -> Option<usize> {
        None
    }
}
