//! What a command can reach: decided once, for every kind of sandbox.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::protected::Protected;
use crate::shell::{ShellOptions, credentials};

/// What a command can reach.
#[derive(Default)]
pub struct Reach {
    /// Folders and files that can be read and run from.
    pub read: Vec<PathBuf>,
    /// Folders that can be written too.
    pub write: Vec<PathBuf>,
    /// Folders of which only the names in them can be read: below them is something that must stay hidden, and this
    /// sandbox can only allow what is there already.
    pub closed: Vec<PathBuf>,
    /// Credentials in all that, which are hidden by mounting nothing over them.
    pub masked: Vec<PathBuf>,
    /// What is an exception from that.
    pub protected: Protected,
    pub network: bool,
}

/// How the name of a command's private temporary folder begins.
pub const TEMPORARY: &str = "contexture-";

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

impl Reach {
    /// Decides it for a command. `hides` says whether the sandbox can hide what lies in a folder that can be read.
    pub fn new(
        options: &ShellOptions,
        hides: bool,
        denied: &[PathBuf],
        protected: Protected,
        temporary: &Path,
    ) -> Self {
        let mut granted = vec![options.root.as_path(), temporary, &options.outputs];
        granted.extend(options.writable.iter().map(PathBuf::as_path));
        granted.extend(options.readable.iter().map(PathBuf::as_path));
        let denied = credentials::except(denied, &granted);
        let mut hidden: Vec<PathBuf> = HIDDEN.iter().map(PathBuf::from).collect();
        hidden.extend([
            options.home.clone(),
            options.home.canonicalize().unwrap_or_default(),
        ]);
        hidden.retain(|path| path.is_absolute());
        if !hides {
            hidden.extend(denied.iter().cloned());
        }
        // What is allowed can only be added up, never taken away from.
        let apart: &[PathBuf] = if hides { &[] } else { &denied };
        let mut read = Vec::new();
        carve(Path::new("/"), &hidden, &mut read, &mut Vec::new());
        let tools = TOOLS.iter().map(|tool| options.home.join(tool));
        let shown = SHOWN.iter().map(PathBuf::from);
        let given = options.readable.iter().cloned();
        for path in tools.chain(shown).chain(given) {
            carve(&path, apart, &mut read, &mut Vec::new());
        }
        read.push(options.outputs.clone());
        read.retain(|path| path.exists());
        let (mut write, mut closed) = (Vec::new(), Vec::new());
        let given = options.writable.iter().filter(|path| path.exists());
        for path in given.chain([&options.root]) {
            carve(path, apart, &mut write, &mut closed);
        }
        write.push(temporary.to_owned());
        let reached = |path: &PathBuf| {
            let mut all = read.iter().chain(&write);
            hides && all.any(|reached| path.starts_with(reached))
        };
        Self {
            masked: denied.into_iter().filter(reached).collect(),
            read,
            write,
            closed,
            protected,
            network: options.network,
        }
    }
}

/// The largest folders below `path` that hold nothing hidden. Those that do are `closed`. Links count for where they lead
/// to.
fn carve(path: &Path, hidden: &[PathBuf], into: &mut Vec<PathBuf>, closed: &mut Vec<PathBuf>) {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        return into.push(path.to_owned());
    }
    closed.push(path.to_owned());
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        // The private folders of other commands come and go, and are none of this one's business.
        let is_private = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(TEMPORARY.as_bytes());
        if !is_private && entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            carve(&entry.path(), hidden, into, closed);
        }
    }
}
