//! Which system calls are refused: the network's, and those that lead out of the sandbox.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// From where on a filter holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// From the shell on.
    All,
    /// From a program on that still has to set up a sandbox.
    Outer,
}

/// Which calls of a row are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Always,
    /// Always, but a program that sets up a sandbox needs it.
    Inside,
    /// What would open a socket of another family than the network's, or any.
    Sockets,
    /// What would change the limit that marks a command's processes.
    Mark,
    /// What would type into a terminal.
    Typing,
}
use Which::{Always, Inside, Mark, Sockets, Typing};

/// A call, its number on x86-64, and that on aarch64 and riscv64.
const CALLS: &[(Which, &str, i64, i64)] = &[
    (Sockets, "socket", 41, 198),
    // Would open sockets past this filter.
    (Always, "io_uring_setup", 425, 425),
    (Always, "io_uring_enter", 426, 426),
    (Always, "io_uring_register", 427, 427),
    (Mark, "prlimit64", 302, 261),
    (Mark, "setrlimit", 160, 164),
    (Typing, "ioctl", 16, 29),
    (Always, "ptrace", 101, 117),
    (Always, "process_vm_readv", 310, 270),
    (Always, "process_vm_writev", 311, 271),
    (Always, "pidfd_getfd", 438, 438),
    (Always, "add_key", 248, 217),
    (Always, "request_key", 249, 218),
    (Always, "keyctl", 250, 219),
    (Always, "bpf", 321, 280),
    (Always, "perf_event_open", 298, 241),
    (Always, "userfaultfd", 323, 282),
    (Always, "open_by_handle_at", 304, 265),
    (Always, "init_module", 175, 105),
    (Always, "finit_module", 313, 273),
    (Always, "delete_module", 176, 106),
    (Always, "kexec_load", 246, 104),
    (Always, "kexec_file_load", 320, 294),
    (Always, "reboot", 169, 142),
    (Always, "swapon", 167, 224),
    (Always, "swapoff", 168, 225),
    (Always, "acct", 163, 89),
    (Always, "settimeofday", 164, 170),
    (Always, "clock_settime", 227, 112),
    (Inside, "mount", 165, 40),
    (Inside, "umount2", 166, 39),
    (Inside, "pivot_root", 155, 41),
    (Inside, "chroot", 161, 51),
    (Inside, "open_tree", 428, 428),
    (Inside, "move_mount", 429, 429),
    (Inside, "fsopen", 430, 430),
    (Inside, "fsconfig", 431, 431),
    (Inside, "fsmount", 432, 432),
    (Inside, "fspick", 433, 433),
    (Inside, "mount_setattr", 442, 442),
    (Inside, "unshare", 272, 97),
    (Inside, "setns", 308, 268),
];

/// Calls that have other numbers in the 32-bit form of x86-64's calls.
const X32: &[(&str, i64)] = &[
    ("ioctl", 514),
    ("ptrace", 521),
    ("kexec_load", 528),
    ("process_vm_readv", 539),
    ("process_vm_writev", 540),
];
const X32_BIT: i64 = 0x4000_0000;

/// `EPERM`: what programs expect where something is forbidden.
const REFUSED: u32 = 1;
const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;
const AF_NETLINK: u64 = 16;
const RLIMIT_RTTIME: u64 = 15;
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;

/// Binds this thread. Local sockets are refused too, with a network and without: behind them are
/// programs that do as they are told (a container engine, a desktop). Pairs of sockets are not.
pub fn bind(network: bool, scope: Scope) -> Result<(), String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let filter = rules(network, scope, arch)
        .and_then(|rules| {
            let refused = SeccompAction::Errno(REFUSED);
            SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)
        })
        .and_then(seccompiler::BpfProgram::try_from)
        .map_err(|error| error.to_string())?;
    apply_filter(&filter).map_err(|error| error.to_string())
}

/// What would change attributes of files, by path or descriptor, with the number that all systems have for it, or those on
/// x86-64 and on aarch64 and riscv64.
const ATTRIBUTES: &[(&str, i64, i64)] = &[
    ("setxattr", 188, 5),
    ("lsetxattr", 189, 6),
    ("fsetxattr", 190, 7),
    ("removexattr", 197, 14),
    ("lremovexattr", 198, 15),
    ("fremovexattr", 199, 16),
    ("setxattrat", 463, 463),
    ("removexattrat", 466, 466),
    ("file_setattr", 469, 469),
];
/// The same for owners, with the place of the user's number among the arguments; the group's comes next.
const OWNERS: &[(&str, i64, i64, u8)] = &[
    ("chown", 92, -1, 1),
    ("fchown", 93, 55, 1),
    ("lchown", 94, -1, 1),
    ("fchownat", 260, 54, 2),
];
const IOCTL: (i64, i64) = (16, 29);
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u64 = 0x401C_5820;
/// `EOPNOTSUPP`: programs go on without attributes that a file system does not have.
const UNSUPPORTED: u32 = 95;
/// For a number that is to stay as it is.
const SAME: u64 = u32::MAX as u64;

/// Binds this thread: it changes no extended attributes, and gives no file to anybody else. Neither Landlock nor a filter
/// knows which file a call is about, so this holds in the project too.
pub fn keep_attributes() -> Result<(), String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let of_arch = |x86, generic| match arch {
        TargetArch::x86_64 => vec![x86, x86 | X32_BIT],
        _ => vec![generic],
    };
    let bind = |rules: Rules, error: u32| {
        let refused = SeccompAction::Errno(error);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)
            .and_then(seccompiler::BpfProgram::try_from)
            .map_err(|error| error.to_string())?;
        apply_filter(&filter).map_err(|error| error.to_string())
    };
    let mut rules = Rules::new();
    for (_, x86, generic) in ATTRIBUTES {
        rules.extend(
            of_arch(*x86, *generic)
                .into_iter()
                .map(|call| (call, vec![])),
        );
    }
    let flags =
        [FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR].map(|call| all_of(&[(1, SeccompCmpOp::Eq, call)]));
    let flags = flags.into_iter().collect::<Result<Vec<_>, _>>();
    let flags = flags.map_err(|error| error.to_string())?;
    let mut ioctl = of_arch(IOCTL.0, IOCTL.1);
    ioctl.extend((arch == TargetArch::x86_64).then_some(514 | X32_BIT));
    rules.extend(ioctl.into_iter().map(|call| (call, flags.clone())));
    bind(rules, UNSUPPORTED)?;
    let mut rules = Rules::new();
    let user = u64::from(rustix::process::geteuid().as_raw());
    let group = u64::from(rustix::process::getegid().as_raw());
    for (_, x86, generic, at) in OWNERS {
        let others =
            |at: u8, own: u64| all_of(&[(at, SeccompCmpOp::Ne, own), (at, SeccompCmpOp::Ne, SAME)]);
        let refused = [others(*at, user), others(*at + 1, group)];
        let refused = refused.into_iter().collect::<Result<Vec<_>, _>>();
        let refused = refused.map_err(|error| error.to_string())?;
        let calls = of_arch(*x86, *generic)
            .into_iter()
            .filter(|call| *call >= 0);
        rules.extend(calls.map(|call| (call, refused.clone())));
    }
    bind(rules, REFUSED)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(network: bool, scope: Scope, arch: TargetArch) -> Result<Rules, BackendError> {
    let mut all = Rules::new();
    for (which, name, x86, generic) in CALLS {
        let rules = match which {
            Inside if scope == Scope::Outer => continue,
            // It makes a network of its own, and needs the kernel's for that: with nobody else in it.
            Sockets if scope == Scope::All && !network => vec![],
            Always | Inside => vec![],
            Sockets => vec![all_of(&[
                (0, SeccompCmpOp::Ne, AF_INET),
                (0, SeccompCmpOp::Ne, AF_INET6),
                (0, SeccompCmpOp::Ne, AF_NETLINK),
            ])?],
            Mark if *name == "setrlimit" => {
                vec![all_of(&[(0, SeccompCmpOp::Eq, RLIMIT_RTTIME)])?]
            }
            Mark => vec![SeccompRule::new(vec![
                is(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, RLIMIT_RTTIME)?,
                // Asking for it is allowed.
                is(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?,
            ])?],
            Typing => vec![
                all_of(&[(1, SeccompCmpOp::Eq, TIOCSTI)])?,
                all_of(&[(1, SeccompCmpOp::Eq, TIOCLINUX)])?,
            ],
        };
        if arch == TargetArch::x86_64 {
            let other = X32.iter().find(|(other, _)| other == name);
            all.insert(
                other.map_or(*x86, |(_, number)| *number) | X32_BIT,
                rules.clone(),
            );
            all.insert(*x86, rules);
        } else {
            all.insert(*generic, rules);
        }
    }
    Ok(all)
}

fn all_of(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let one = |(index, op, value): &(u8, SeccompCmpOp, u64)| {
        is(*index, SeccompCmpArgLen::Dword, op.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(one).collect::<Result<_, _>>()?)
}

fn is(
    index: u8,
    length: SeccompCmpArgLen,
    op: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, length, op, value)
}
