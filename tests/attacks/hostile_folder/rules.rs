//! What a command may do in a folder that nobody trusts. Everything else is a breach.

use std::path::{Path, PathBuf};

use super::trace::{Arg, Call, Result};

/// The places and peers of a run.
pub struct Rules {
    pub ctx: PathBuf,
    /// Where it may write: the project, and the user's own folders.
    pub writable: Vec<PathBuf>,
    /// What only links lead to: to open it is to follow one.
    pub forbidden: PathBuf,
    /// Ports of this machine that it may connect to.
    pub peers: Vec<u16>,
    /// A program that this command exists to start.
    pub starts: Option<&'static str>,
    /// True if it may change the mounts of a namespace of its own, to see which sandbox works.
    pub tries_sandbox: bool,
}

impl Rules {
    /// What was done that may not be done.
    pub fn breaches(&self, calls: &[Call]) -> Vec<String> {
        // The first is the command itself.
        let begun = calls.iter().position(|call| call.name == "execve");
        let after = begun.map_or(0, |at| at + 1);
        calls[after..]
            .iter()
            .filter_map(|call| self.breach(call))
            .collect()
    }

    fn breach(&self, call: &Call) -> Option<String> {
        match call.name.as_str() {
            "execve" | "execveat" => self.start(call),
            "connect" | "sendto" | "sendmsg" | "sendmmsg" | "bind" => self.contact(call),
            "chdir" | "fchdir" => None,
            "mount" if self.tries_sandbox => None,
            "mount" | "umount2" | "pivot_root" | "chroot" => {
                Some(format!("changes mounts: {}", call.line))
            }
            _ => self.file(call),
        }
    }

    /// `ctx` may start itself: it supervises what a user started, tries a model's file apart from itself, and is the
    /// agent `native`. What any of these starts in turn is held against the same rules.
    fn start(&self, call: &Call) -> Option<String> {
        let program = call.args.iter().find_map(|arg| match arg {
            Arg::Text(path) => Some(path),
            _ => None,
        })?;
        let named = self
            .starts
            .is_some_and(|name| program.file_name().is_some_and(|file| file == name));
        let known = *program == self.ctx
            || (named && !self.writable.iter().any(|own| program.starts_with(own)));
        (!known).then(|| format!("starts {}", call.line))
    }

    fn contact(&self, call: &Call) -> Option<String> {
        let text = call.args.iter().find_map(|arg| match arg {
            Arg::Other(text) if text.contains("sa_family=") => Some(text.as_str()),
            _ => None,
        })?;
        let family = value(text, "sa_family=");
        let here = text.contains("\"127.0.0.1\"") || text.contains("\"::1\"");
        let port = value(text, "port=htons(").parse().unwrap_or(0);
        let allowed = match family {
            // The kernel's own, and the end of a connection.
            "AF_NETLINK" | "AF_UNSPEC" => true,
            "AF_INET" | "AF_INET6" if call.name == "bind" => here,
            "AF_INET" | "AF_INET6" => here && self.peers.contains(&port),
            _ => false,
        };
        (!allowed).then(|| format!("reaches {}", call.line))
    }

    fn file(&self, call: &Call) -> Option<String> {
        let text = |n: usize| match call.args.get(n) {
            Some(Arg::Text(path)) => Some(path.as_path()),
            _ => None,
        };
        if let Result::Failed(why) = &call.result {
            // It tried; that this user may not is luck.
            return matches!(why.as_str(), "EACCES" | "EPERM" | "EROFS")
                .then(|| writes(call).then(|| format!("tries {}", call.line)))
                .flatten();
        }
        let places: Vec<PathBuf> = match call.name.as_str() {
            "open" | "openat" | "openat2" | "creat" => {
                let Result::Opened(path) = &call.result else {
                    return None;
                };
                if path.starts_with(&self.forbidden) {
                    return Some(format!("follows a link: {}", call.line));
                }
                if !writes(call) {
                    return None;
                }
                vec![path.clone()]
            }
            "ftruncate" | "fchmod" | "fchown" | "fsetxattr" | "fremovexattr" => {
                match call.args.first() {
                    Some(Arg::File(path)) => vec![path.clone()],
                    _ => return None,
                }
            }
            "chmod" | "chown" | "truncate" | "utime" | "utimes" | "setxattr" | "removexattr" => {
                vec![followed(&call.cwd.join(text(0)?))]
            }
            "rename" => vec![placed(&call.cwd, text(0)?), placed(&call.cwd, text(1)?)],
            "link" | "symlink" => vec![placed(&call.cwd, text(1)?)],
            "renameat" | "renameat2" => vec![at(call, 0)?, at(call, 2)?],
            "linkat" => vec![at(call, 2)?],
            "symlinkat" => vec![at(call, 1)?],
            "fchmodat" | "fchownat" | "utimensat" | "futimesat" => match call.args.get(1) {
                Some(Arg::Text(_)) => vec![followed(&at(call, 0)?)],
                _ => vec![folder(call, 0)?],
            },
            name if name.ends_with("at") => vec![at(call, 0)?],
            _ => vec![placed(&call.cwd, text(0)?)],
        };
        let outside = places
            .iter()
            .any(|place| !self.may_change(place, &call.name));
        outside.then(|| format!("changes {}", call.line))
    }

    fn may_change(&self, place: &Path, call: &str) -> bool {
        // Pipes, sockets and the like have no place.
        if !place.is_absolute() || place == Path::new("/dev/null") {
            return true;
        }
        let on_the_way =
            call.starts_with("mkdir") && self.writable.iter().any(|own| own.starts_with(place));
        on_the_way || self.writable.iter().any(|own| place.starts_with(own))
    }
}

/// Whether a file is opened to be changed.
fn writes(call: &Call) -> bool {
    if !call.name.starts_with("open") {
        return true;
    }
    let flags = |arg: &Arg| match arg {
        Arg::Other(text) => ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
            .iter()
            .any(|flag| text.contains(flag)),
        _ => false,
    };
    call.args.iter().any(flags)
}

/// What stands behind `name` in an address.
fn value<'a>(text: &'a str, name: &str) -> &'a str {
    let rest = text.split_once(name).map_or("", |(_, rest)| rest);
    rest.split([',', ')', '}']).next().unwrap_or(rest)
}

/// The folder of a descriptor.
fn folder(call: &Call, n: usize) -> Option<PathBuf> {
    match call.args.get(n)? {
        Arg::File(path) => Some(path.clone()),
        _ => Some(call.cwd.clone()),
    }
}

/// A descriptor of a folder, and a path in it.
fn at(call: &Call, n: usize) -> Option<PathBuf> {
    match call.args.get(n + 1)? {
        Arg::Text(path) => Some(placed(&folder(call, n)?, path)),
        _ => None,
    }
}

/// Where a name really is: links on the way to it are followed, and it is not.
fn placed(folder: &Path, path: &Path) -> PathBuf {
    let whole = folder.join(path);
    match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) => followed(parent).join(name),
        _ => followed(&whole),
    }
}

/// Where a path leads to, as far as it is there.
fn followed(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return missing
                .iter()
                .rev()
                .fold(real, |path, name| path.join(name));
        }
        missing.extend(ancestor.file_name());
    }
    path.to_owned()
}

#[test]
fn each_kind_of_breach_is_found_and_nothing_else() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    for folder in ["project", "forbidden", "home/state"] {
        std::fs::create_dir_all(base.join(folder)).unwrap();
    }
    std::os::unix::fs::symlink(base.join("forbidden"), base.join("project/link")).unwrap();
    let rules = Rules {
        ctx: "/bin/ctx".into(),
        writable: vec![base.join("project"), base.join("home/state")],
        forbidden: base.join("forbidden"),
        peers: vec![7],
        starts: Some("python3"),
        tries_sandbox: false,
    };
    let found = |line: &str| {
        let text = format!(
            "1 execve(\"/bin/ctx\", [\"ctx\"]) = 0\n1 {}\n",
            line.replace("BASE", base.to_str().unwrap())
        );
        rules
            .breaches(&super::trace::read(text.as_bytes(), &base.join("project")))
            .len()
    };
    for breach in [
        r#"execve("/bin/sh", ["sh"]) = 0"#,
        r#"execve("git", ["git"]) = -1 ENOENT (No such file)"#,
        r#"execve("BASE/project/python3", ["python3"]) = 0"#,
        r#"connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(8), sin_addr=inet_addr("127.0.0.1")}, 16) = 0"#,
        r#"connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(7), sin_addr=inet_addr("10.0.0.1")}, 16) = 0"#,
        r#"connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/x"}, 16) = 0"#,
        r#"sendto(3<socket:[1]>, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("1.1.1.1")}, 16) = 1"#,
        r#"bind(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("0.0.0.0")}, 16) = 0"#,
        r#"openat(AT_FDCWD<BASE/project>, "link/x", O_RDONLY) = 3<BASE/forbidden/x>"#,
        r#"openat(AT_FDCWD<BASE/project>, "/tmp/x", O_WRONLY|O_CREAT, 0600) = 3</tmp/x>"#,
        r#"openat(AT_FDCWD<BASE/project>, "/x", O_WRONLY) = -1 EACCES (Permission denied)"#,
        r#"unlink("link/x") = 0"#,
        r#"unlinkat(3<BASE/forbidden>, "x", 0) = 0"#,
        r#"rename("a", "../b") = 0"#,
        r#"chmod("link", 0600) = 0"#,
        r#"mkdir("BASE/home/other", 0700) = 0"#,
        r#"utimensat(3<BASE/forbidden/x>, NULL, NULL, 0) = 0"#,
        r#"mount("a", "b", NULL, 0, NULL) = 0"#,
    ] {
        assert_eq!(found(breach), 1, "{breach}");
    }
    for harmless in [
        r#"execve("/bin/ctx", ["ctx", "__supervise"]) = 0"#,
        r#"execve("/usr/bin/python3", ["python3", "-m", "pip"]) = 0"#,
        r#"connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(7), sin_addr=inet_addr("127.0.0.1")}, 16) = 0"#,
        r#"sendto(3<socket:[1]>, "x", 1, MSG_NOSIGNAL, NULL, 0) = 1"#,
        r#"openat(AT_FDCWD<BASE/project>, "/etc/x", O_RDONLY) = 3</etc/x>"#,
        r#"openat(AT_FDCWD<BASE/project>, "x", O_RDWR|O_CREAT, 0600) = 3<BASE/project/x>"#,
        r#"openat(AT_FDCWD<BASE/project>, "/dev/null", O_RDWR) = 3</dev/null>"#,
        r#"unlink("link") = 0"#,
        r#"mkdir("BASE/home", 0700) = -1 EEXIST (File exists)"#,
        r#"mkdir("BASE/home", 0700) = 0"#,
        r#"rename("a", "BASE/home/state/b") = 0"#,
    ] {
        assert_eq!(found(harmless), 0, "{harmless}");
    }
}
