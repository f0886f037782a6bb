use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::{Available, Reach, Sandbox, available, bubblewrap, landlock, mounts, seccomp};

/// Binds this thread, and all that it starts. It must end afterwards.
pub fn bind(sandbox: Sandbox, reach: &Reach) -> Result<(), String> {
    match sandbox {
        Sandbox::Bubblewrap => {
            mounts::keep_devices();
            return seccomp::bind(reach.network, seccomp::Scope::Outer);
        }
        Sandbox::Mounts => mounts::seal(reach)?,
        Sandbox::Landlock => seccomp::keep_attributes()?,
    }
    mounts::drop_powers();
    landlock::bind(reach)?;
    seccomp::bind(reach.network, seccomp::Scope::All)
}

/// What to start for a shell.
pub fn program(sandbox: Option<Sandbox>, reach: &Reach, cwd: &Path) -> Command {
    match (sandbox, &available().bubblewrap) {
        (Some(Sandbox::Bubblewrap), Some(program)) => bubblewrap::command(program, reach, cwd),
        _ => Command::new("/bin/sh"),
    }
}

/// Tries everything, each in a thread that is thrown away.
pub fn probe() -> Available {
    Available {
        landlock_abi: landlock::abi(),
        seccomp: try_out(|| seccomp::bind(false, seccomp::Scope::All)),
        mounts: try_out(mounts::try_out),
        bubblewrap: find("bwrap").filter(|program| bubblewrap::works(program)),
    }
}

fn try_out(work: impl FnOnce() -> Result<(), String> + Send + 'static) -> bool {
    std::thread::spawn(work)
        .join()
        .is_ok_and(|done| done.is_ok())
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}
