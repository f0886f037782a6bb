//! What keeps a command in its place.
//!
//! Landlock and seccomp bind the *thread* that asks for it, and all that this thread starts. So a
//! thread is made for each command, bound, and the command is started from there.

mod reach;

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod seccomp;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "other.rs"]
mod system;

use std::fmt;
use std::path::PathBuf;

pub(super) use reach::{Reach, TEMPORARY};
pub(super) use system::{bind, program};

/// A way to keep a command in its place, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sandbox {
    /// Landlock and seccomp, and protected files mounted read-only. Needs the right to mount.
    Mounts,
    /// Bubblewrap: protected files are mounted read-only.
    Bubblewrap,
    /// Landlock and seccomp. Landlock cannot except a file from a folder that may be written, so
    /// protected files are put back when the command is done.
    Landlock,
}

impl Sandbox {
    /// Whether protected files cannot be changed at all.
    pub fn seals(self) -> bool {
        !matches!(self, Self::Landlock)
    }

    /// What of all that is promised it cannot enforce, because no kernel has the means without mounts.
    pub fn gaps(self) -> &'static [&'static str] {
        match self {
            Self::Mounts | Self::Bubblewrap => &[],
            Self::Landlock => &[
                "permissions and times of files outside of the project can be changed; those of credentials and of what \
                 lies right in the home get their permissions back",
                "protected files are put back only when a command has ended",
                "the command lines of other processes can be read",
            ],
        }
    }
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mounts => "Landlock, seccomp and mounts",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "Landlock and seccomp",
        })
    }
}

/// What works on this system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Available {
    /// The version of Landlock that the kernel has. 3 is the first that is enough.
    pub landlock_abi: Option<u32>,
    /// Whether system calls can be refused.
    pub seccomp: bool,
    /// Whether a thread may mount.
    pub mounts: bool,
    /// Bubblewrap, where it is installed and works.
    pub bubblewrap: Option<PathBuf>,
}

/// Says what works on this system. It is tried out once, in threads and processes of its own.
pub fn available() -> &'static Available {
    static AVAILABLE: std::sync::OnceLock<Available> = std::sync::OnceLock::new();
    AVAILABLE.get_or_init(system::probe)
}

impl Available {
    /// Whether this one works.
    pub fn has(&self, sandbox: Sandbox) -> bool {
        let landlock = self.landlock_abi >= Some(3) && self.seccomp;
        match sandbox {
            Sandbox::Mounts => landlock && self.mounts,
            Sandbox::Bubblewrap => self.bubblewrap.is_some(),
            Sandbox::Landlock => landlock,
        }
    }

    /// The best one that works.
    pub fn best(&self) -> Option<Sandbox> {
        [Sandbox::Mounts, Sandbox::Bubblewrap, Sandbox::Landlock]
            .into_iter()
            .find(|sandbox| self.has(*sandbox))
    }

    /// What is missing for any of them.
    pub(super) fn missing(&self) -> String {
        if cfg!(not(target_os = "linux")) {
            return "there is none for this system".to_owned();
        }
        let landlock = match self.landlock_abi {
            None => "the kernel has no Landlock".to_owned(),
            Some(abi) if abi < 3 => format!("the kernel's Landlock is too old (version {abi})"),
            Some(_) => "the kernel has no seccomp".to_owned(),
        };
        format!("{landlock}, and bubblewrap is not installed or does not work")
    }
}
