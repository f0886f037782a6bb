//! Limits that follow from the number of files that the process may have open: connections must leave some for work.

use rustix::process::{Resource, getrlimit};

/// Numbers of connections, calls and streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Idle connections that have not shown a secret.
    pub unknown: usize,
    /// The same, of one peer.
    pub unknown_of_peer: usize,
    /// Idle connections that have shown a secret.
    pub known: usize,
    /// New connections whose first bytes have not been looked at. At most this many others come meanwhile, which is
    /// less than it takes to close one: no connection is closed before its request was read, however fast others come.
    pub unread: usize,
    /// Calls and streams of all sessions together.
    pub of_sessions: usize,
}

impl Limits {
    /// The limits of this process.
    pub fn new() -> Self {
        Self::from_open_files(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
    }

    /// The limits of a process that may have so many files open.
    pub fn from_open_files(files: u64) -> Self {
        let share = |part: u64, max: u64| {
            let share = (files / part).clamp(16, max);
            usize::try_from(share).unwrap_or_default()
        };
        let unknown = share(4, 256);
        let unknown_of_peer = unknown * 3 / 4;
        Self {
            unknown,
            unknown_of_peer,
            known: share(8, 128),
            unread: unknown_of_peer / 3,
            of_sessions: share(4, 256),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_work() {
        for files in [0, 64, 256, 1_024, 1 << 20, u64::MAX] {
            let Limits {
                unknown,
                unknown_of_peer,
                known,
                unread,
                of_sessions,
            } = Limits::from_open_files(files);
            assert!(unread > 0 && unread < unknown_of_peer && unknown_of_peer < unknown);
            assert!(known > 0 && of_sessions > 0);
            if files >= 64 {
                let all = unknown + known + of_sessions;
                assert!(
                    u64::try_from(all).is_ok_and(|all| all <= files / 4 * 3),
                    "{files}"
                );
            }
        }
    }
}
