//! What a command can reach: decided once, for every kind of sandbox.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::ShellOptions;
use crate::shell::protected::Protected;

/// What a command can reach.
pub struct Reach {
    /// Folders and files that can be read and run from.
    pub read: Vec<PathBuf>,
    /// Folders that can be written too.
    pub write: Vec<PathBuf>,
    /// What is an exception from that.
    pub protected: Protected,
    pub network: bool,
}

/// Where the system keeps what is nobody's business: people's homes, sockets and run-time secrets,
/// devices.
const HIDDEN: &[&str] = &["/home", "/root", "/run", "/dev", "/var/run"];

/// Exceptions from that. Without the name servers' file there are no names, where there is a network.
const SHOWN: &[&str] = &["/run/systemd/resolve", "/run/resolvconf"];

/// Devices that only this process sees.
pub const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// What programs keep in the home to be able to run. The rest of the home is hidden.
const TOOLS: &[&str] = &[
    ".asdf",
    ".bun",
    ".cargo",
    ".config/git/config",
    ".config/git/ignore",
    ".deno",
    ".gitconfig",
    ".gitignore",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/uv",
    ".npm",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "go",
];

/// Secrets among these.
const SECRETS: &[&str] = &[".cargo/credentials", ".cargo/credentials.toml"];

impl Reach {
    pub fn of(options: &ShellOptions, protected: Protected, temporary: &Path) -> Self {
        let mut hidden: Vec<PathBuf> = HIDDEN.iter().map(PathBuf::from).collect();
        hidden.extend([
            options.home.clone(),
            options.home.canonicalize().unwrap_or_default(),
        ]);
        hidden.retain(|path| path.is_absolute());
        let mut read = Vec::new();
        carve(Path::new("/"), &hidden, &mut read);
        let secrets: Vec<_> = SECRETS.iter().map(|name| options.home.join(name)).collect();
        for tool in TOOLS {
            carve(&options.home.join(tool), &secrets, &mut read);
        }
        read.extend(SHOWN.iter().map(PathBuf::from));
        read.extend(options.readable.iter().cloned());
        read.push(options.outputs.clone());
        read.retain(|path| path.exists());
        let mut write = vec![options.root.clone(), temporary.to_owned()];
        write.extend(
            options
                .writable
                .iter()
                .filter(|path| path.exists())
                .cloned(),
        );
        Self {
            read,
            write,
            protected,
            network: options.network,
        }
    }
}

/// The largest folders below `path` that hold nothing hidden: what is allowed can only be added up,
/// never taken away from. Links count for where they lead to.
fn carve(path: &Path, hidden: &[PathBuf], into: &mut Vec<PathBuf>) {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        return into.push(path.to_owned());
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            carve(&entry.path(), hidden, into);
        }
    }
}
