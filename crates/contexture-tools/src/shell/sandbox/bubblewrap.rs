//! Bubblewrap: a program that makes a sandbox of mounts.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::reach::Reach;

/// Bubblewrap, ready to be given a shell's arguments. It starts processes of its own, so it waits for
/// the same line that a shell waits for.
pub fn command(program: &Path, reach: &Reach, cwd: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "read -r go || exit 125\nexec \"$@\"", "sh"])
        .arg(program);
    command.args([
        "--unshare-user-try",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
    ]);
    if !reach.network {
        command.arg("--unshare-net");
    }
    command.args(["--tmpfs", "/", "--dev", "/dev"]);
    // Not below /proc: it is mounted anew, for the processes of this sandbox alone.
    let read = reach.read.iter().filter(|path| !path.starts_with("/proc"));
    for path in read.filter(|path| *path != Path::new("/")) {
        // Others' temporary files may be gone by now.
        command.arg("--ro-bind-try").arg(path).arg(path);
    }
    for link in ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
        if let Ok(target) = std::fs::read_link(link) {
            command.arg("--symlink").arg(target).arg(link);
        }
    }
    command.args(["--proc", "/proc"]);
    for path in reach.write.iter().chain(&reach.protected.pinned) {
        command.arg("--bind").arg(path).arg(path);
    }
    for path in &reach.protected.sealed {
        command.arg("--ro-bind").arg(path).arg(path);
    }
    for path in &reach.masked {
        if path.is_dir() {
            command
                .arg("--tmpfs")
                .arg(path)
                .arg("--remount-ro")
                .arg(path);
        } else {
            // A device that cannot be opened there.
            command.arg("--ro-bind").arg("/dev/null").arg(path);
        }
    }
    command
        .args(["--remount-ro", "/", "--cap-drop", "ALL", "--chdir"])
        .arg(cwd);
    command.args(["--", "/bin/sh"]);
    command
}

/// Whether it can do here what is asked of it.
pub fn works(program: &Path) -> bool {
    let mut probe = std::process::Command::new(program);
    probe.args([
        "--unshare-user-try",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--",
        "/bin/sh",
        "-c",
        ":",
    ]);
    probe
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = probe.spawn() else {
        return false;
    };
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return false,
        }
    }
    _ = child.kill();
    _ = child.wait();
    false
}
